// SPDX-License-Identifier: Apache-2.0
// The order of batches, and the threads that load them ahead of time.
//
//   claimed          the next batch that a worker takes on
//   delivered        the next batch that the consumer gets; batch b lives in slot b % slots
//
//   batches of a pass   0 1 2 3 | 4 5 6 7 | 8 9 ...
//                       delivered         claimed
//                               [ ready or loading: at most `slots` ]
//
// Workers sleep while the window is full, the consumer while the batch at `delivered` is not ready. Nobody spins: on few
// cores that would take them from the computing thread.
//
// A dataset's read can't be interrupted. The loader's end waits for each worker until the batch that it loads has taken
// `timeout_s`, then leaves it behind, since the error that tells of it may be on its way through that end. So workers share
// the ownership of all that they use.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/deadline.hpp"
#include "core/parallel_for.hpp"
#include "core/start_thread.hpp"
#include "data/loader_options.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/data/data_loader.hpp"

namespace tutti::data::detail {

BatchSource::~BatchSource() = default;

void throw_moved_from() { throw Error("DataLoader: it was moved from, its dataset is another loader's now"); }

namespace {

struct Slot {
  bool is_ready = false;
  std::exception_ptr error;
};

// What a worker does.
struct Load {
  std::shared_ptr<const Pass> pass;  // null: nothing
  std::int64_t batch = 0;
  Deadline::Clock::time_point begun;
};

// Adds the time of a scope to a sum.
class WaitScope {
 public:
  explicit WaitScope(std::int64_t& total) noexcept : total_(total), begin_(trace::now_ns()) {}
  ~WaitScope() { total_ += trace::now_ns() - begin_; }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  phase::Scope phase_{phase::Kind::kDataWait};
  trace::Range range_{"data_wait"};
  std::int64_t& total_;
  std::int64_t begin_;
};

}  // namespace

struct LoaderState : std::enable_shared_from_this<LoaderState> {
  LoaderState(std::shared_ptr<BatchSource> batch_source, std::size_t dataset_size, std::string dataset_name,
              DataLoaderOptions opts)
      : source(std::move(batch_source)), dataset(std::move(dataset_name)), options(std::move(opts)) {
    validate(options);
    timeout_s = options.timeout_s > 0 ? options.timeout_s : default_timeout_s();
    sampler = sampler_of(options, static_cast<std::int64_t>(dataset_size));
    const std::int64_t samples = sampler->size();
    const bool partial = !options.drop_last && samples % options.batch_size != 0;
    batches = samples / options.batch_size + (partial ? 1 : 0);  // no sum that a huge batch_size overflows
    slots.resize(LoaderEngine::slot_count(options));
    loads.resize(static_cast<std::size_t>(options.num_workers));
  }
  LoaderState(const LoaderState&) = delete;
  LoaderState& operator=(const LoaderState&) = delete;

  void start_workers();
  void stop() noexcept;
  void work(Load& own) noexcept;
  bool ends_in_time(std::unique_lock<std::mutex>& lock, const Load& load);
  void abandon_pass();
  void load_inline(std::size_t slot);
  void wait_until_ready(std::unique_lock<std::mutex>& lock, std::size_t slot);
  std::exception_ptr load(std::int64_t batch, const Pass& of) noexcept;
  BatchRequest request(std::int64_t batch, const Pass& of) const noexcept;
  Deadline deadline() const { return Deadline(timeout_s); }

  std::size_t slot_of(std::int64_t batch) const noexcept {
    return static_cast<std::size_t>(batch) % slots.size();
  }
  bool can_claim() const noexcept {
    return pass != nullptr && claimed < batches &&
           claimed - delivered < static_cast<std::int64_t>(slots.size());
  }

  std::shared_ptr<BatchSource> source;
  std::string dataset;
  DataLoaderOptions options;
  double timeout_s = 0;
  std::shared_ptr<Sampler> sampler;
  std::int64_t batches = 0;
  std::int64_t wait_ns = 0;  // of the consumer's alone
  std::uint64_t epoch = 0;   // of the current pass
  bool has_started = false;
  std::vector<std::thread> workers;

  std::mutex mutex;  // guards all below
  std::condition_variable work_there;
  std::condition_variable batch_ready;
  std::shared_ptr<const Pass> pass;  // null: between passes
  std::int64_t claimed = 0;
  std::int64_t delivered = 0;
  std::vector<Slot> slots;
  int loading = 0;   // workers that load a batch
  int sleeping = 0;  // workers that wait for one
  bool is_stopping = false;
  std::vector<Load> loads;  // one a worker
};

BatchRequest LoaderState::request(std::int64_t batch, const Pass& of) const noexcept {
  const auto first = static_cast<std::size_t>(batch * options.batch_size);
  const std::size_t count = std::min(static_cast<std::size_t>(options.batch_size), of.indices.size() - first);
  const std::size_t valid = of.valid_count > first ? std::min(of.valid_count - first, count) : 0;
  return {.indices = {of.indices.data() + first, count},
          .valid_count = valid,
          .epoch = of.epoch,
          .seed = options.seed,
          .dataset = dataset.c_str()};
}

std::exception_ptr LoaderState::load(std::int64_t batch, const Pass& of) noexcept {
  try {
    const trace::Range range("load_batch", batch);
    source->load(slot_of(batch), request(batch, of));
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void LoaderState::work(Load& own) noexcept {
  mark_thread_serial();
  trace::set_thread_name("loader");
  pthread_setname_np(pthread_self(), "tutti-loader");
  std::unique_lock lock(mutex);
  while (true) {
    while (!is_stopping && !can_claim()) {
      ++sleeping;
      work_there.wait(lock);
      --sleeping;
    }
    if (is_stopping) return;
    own = {.pass = pass, .batch = claimed++, .begun = Deadline::Clock::now()};
    ++loading;
    lock.unlock();
    std::exception_ptr error = load(own.batch, *own.pass);
    lock.lock();
    --loading;
    Slot& slot = slots[slot_of(own.batch)];
    slot.is_ready = true;
    slot.error = std::move(error);
    const std::shared_ptr<const Pass> done = std::exchange(own.pass, nullptr);
    if (own.batch == delivered || pass != done || is_stopping) batch_ready.notify_one();
  }
}

void LoaderState::start_workers() {
  if (!workers.empty()) return;
  try {
    workers.reserve(loads.size());
    for (Load& own : loads)
      workers.push_back(start_thread([self = shared_from_this(), &own] { self->work(own); }));
  } catch (const std::system_error& error) {
    const std::size_t started = workers.size();
    stop();  // they sleep, so none is left behind
    is_stopping = false;
    throw Error(concat("DataLoader of ", dataset, ": thread ", started + 1, " of its ", options.num_workers,
                       " workers can't start: ", error.code().message()));
  } catch (...) {
    stop();
    is_stopping = false;
    throw;
  }
}

// False once the worker's batch has taken too long.
bool LoaderState::ends_in_time(std::unique_lock<std::mutex>& lock, const Load& load) {
  const std::chrono::duration<double> gone = Deadline::Clock::now() - load.begun;
  const Deadline limit(timeout_s - gone.count());
  return batch_ready.wait_until(lock, limit.time_point(), [&load] { return load.pass == nullptr; });
}

void LoaderState::stop() noexcept {
  std::unique_lock lock(mutex);
  is_stopping = true;
  work_there.notify_all();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (ends_in_time(lock, loads[i])) {
      lock.unlock();
      workers[i].join();
      lock.lock();
      continue;
    }
    const BatchRequest late = request(loads[i].batch, *loads[i].pass);
    logging::warning("DataLoader of ", dataset, ": its end leaves a worker behind that loads batch ",
                     loads[i].batch, " of epoch ", late.epoch, " (samples ", late.indices.front(), " to ",
                     late.indices.back(), ") for more than ", timeout_s, " s");
    workers[i].detach();
  }
  workers.clear();
}

// Gives up what is left of a pass. Batches that are being loaded are waited for: their slots are needed.
void LoaderState::abandon_pass() {
  std::unique_lock lock(mutex);
  pass = nullptr;
  const Deadline limit = deadline();
  while (loading > 0) {
    const bool in_time =
        batch_ready.wait_until(lock, limit.time_point()) == std::cv_status::no_timeout || loading == 0;
    TUTTI_CHECK(in_time, TimeoutError, "DataLoader of ", dataset, ": ", loading,
                " batches of the pass before are still being loaded after ", limit.seconds(), " s");
  }
  for (std::int64_t batch = delivered; batch < claimed; ++batch) {
    const std::size_t slot = slot_of(batch);
    slots[slot] = Slot();
    source->discard(slot);
  }
  claimed = 0;
  delivered = 0;
}

void LoaderState::load_inline(std::size_t slot) {
  ++claimed;
  slots[slot].error = load(delivered, *pass);
  slots[slot].is_ready = true;
}

void LoaderState::wait_until_ready(std::unique_lock<std::mutex>& lock, std::size_t slot) {
  if (slots[slot].is_ready) return;
  const Deadline limit = deadline();
  while (!slots[slot].is_ready) {
    if (batch_ready.wait_until(lock, limit.time_point()) == std::cv_status::no_timeout) continue;
    if (slots[slot].is_ready) return;
    const BatchRequest wanted = request(delivered, *pass);
    throw TimeoutError(concat("DataLoader of ", dataset, ": batch ", delivered, " of epoch ", epoch,
                              " (samples ", wanted.indices.front(), " to ", wanted.indices.back(),
                              ") is not there after ", limit.seconds(), " s"));
  }
}

// ---- LoaderEngine -----------------------------------------------------------------------------------------------------

LoaderEngine::LoaderEngine(std::shared_ptr<BatchSource> source, std::size_t dataset_size,
                           const std::string& dataset, DataLoaderOptions options)
    : state_(std::make_shared<LoaderState>(std::move(source), dataset_size, dataset, std::move(options))) {}

LoaderEngine::~LoaderEngine() { state_->stop(); }

std::size_t LoaderEngine::slot_count(const DataLoaderOptions& options) {
  validate(options);  // a source asks before there is an engine
  if (options.num_workers == 0) return 1;
  return static_cast<std::size_t>(options.num_workers) * static_cast<std::size_t>(options.prefetch_factor);
}

std::size_t LoaderEngine::batches_at_once(const DataLoaderOptions& options) {
  return options.num_workers > 0 ? slot_count(options) + 1 : 1;
}

void LoaderEngine::start_pass() {
  LoaderState& state = *state_;
  const WaitScope waiting(state.wait_ns);
  state.abandon_pass();
  state.start_workers();  // they sleep until there is a pass; one that can't start leaves none behind
  auto pass = std::make_shared<const Pass>(state.sampler->next());
  TUTTI_CHECK(static_cast<std::int64_t>(pass->indices.size()) == state.sampler->size(), ValueError,
              "DataLoader of ", state.dataset, ": the sampler gave ", pass->indices.size(),
              " indices, its size() is ", state.sampler->size());
  state.epoch = pass->epoch;
  state.has_started = true;
  {
    const std::lock_guard lock(state.mutex);
    state.pass = std::move(pass);
  }
  state.work_there.notify_all();
}

bool LoaderEngine::take(std::size_t& slot) {
  LoaderState& state = *state_;
  const WaitScope waiting(state.wait_ns);
  std::unique_lock lock(state.mutex);
  if (state.pass == nullptr || state.delivered == state.batches) {
    state.pass = nullptr;
    return false;
  }
  slot = state.slot_of(state.delivered);
  if (state.options.num_workers > 0) {
    state.wait_until_ready(lock, slot);
  } else {
    lock.unlock();  // nobody else is there, and the dataset may ask its loader something
    state.load_inline(slot);
    lock.lock();
  }
  if (std::exception_ptr error = std::exchange(state.slots[slot].error, nullptr)) {
    lock.unlock();
    release(slot);
    std::rethrow_exception(error);
  }
  return true;
}

void LoaderEngine::release(std::size_t slot) {
  LoaderState& state = *state_;
  bool wake = false;
  {
    const std::lock_guard lock(state.mutex);
    state.slots[slot].is_ready = false;
    ++state.delivered;
    wake = state.sleeping > 0 && state.can_claim();
  }
  if (wake) state.work_there.notify_one();
}

std::int64_t LoaderEngine::batches() const noexcept { return state_->batches; }

std::int64_t LoaderEngine::position() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->delivered;
}

std::uint64_t LoaderEngine::epoch() const noexcept {
  return state_->has_started ? state_->epoch : state_->sampler->epoch();
}

double LoaderEngine::wait_seconds() const noexcept { return static_cast<double>(state_->wait_ns) * 1e-9; }
Sampler& LoaderEngine::sampler() const noexcept { return *state_->sampler; }
const DataLoaderOptions& LoaderEngine::options() const noexcept { return state_->options; }

}  // namespace tutti::data::detail
