// SPDX-License-Identifier: Apache-2.0
//
// backward      |--layer n--|--layer n-1--|--layer n-2--| ... |--layer 1--|
// on_grad_ready      ^gn          ^gn-1        ^gn-2               ^g1
// bucket 0           [pack........]launch======all_reduce======>
// bucket 1                                     [pack..]launch=====all_reduce====>
// finalize                                                                        wait, hand gradients back
//
// on_grad_ready         runs when a parameter's gradient is complete. With gradient_as_bucket_view the gradient was written
//                       into its bucket already; otherwise it is packed there.
// launch_ready_buckets  starts the reduction of every bucket that is full, strictly in order: all ranks issue the same
//                       collectives in the same order, whatever the order in which their gradients arrive.
// comm hook             what starts it: an all-reduce that averages, or the user's hook, which sums.
// finalize              runs when backward has ended: waits, divides what a hook summed, hands gradients back.
//
// The last bucket carries some numbers more, the status: whether a rank has failed, and how many training forwards had no backward
// on it. With a comm hook it travels on its own after all buckets, since hooks may fail too. A rank fails if it misses a
// gradient, if its comm hook throws, or if its backward throws for another reason (abandon). It launches its unfinished buckets
// all the same, so that no other rank waits for ever; then all ranks know, exchange what has happened, and throw in this step.
// Where ranks have skipped different numbers of backwards, this one would average gradients of different steps.
#include "parallel/reducer.hpp"

#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "parallel/bucket_layout.hpp"
#include "parallel/step_status.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/engine.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::parallel {

namespace {

std::size_t to_bytes(double mebibytes, const char* option) {
  TUTTI_CHECK(mebibytes > 0 && mebibytes < 1e9, ValueError, "DistributedDataParallel: ", option,
              " must be a positive number of MiB, given ", mebibytes);
  return static_cast<std::size_t>(mebibytes * 1024 * 1024);
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.impl()->data == b.impl()->data && a.strides() == b.strides() && a.shares_storage(b);
}

}  // namespace

// ---- construction -------------------------------------------------------------------------------------------------------

Reducer::Reducer(std::vector<nn::NamedTensor> parameters, std::shared_ptr<comm::ProcessGroup> group,
                 const DistributedDataParallelOptions& options)
    : group_(std::move(group)), as_bucket_view_(options.gradient_as_bucket_view) {
  slots_.reserve(parameters.size());
  for (nn::NamedTensor& entry : parameters) {
    slots_.push_back({std::move(entry.name), std::move(entry.tensor), {}, 0, false});
  }
  build_buckets(options);
  attach_hooks();
}

void Reducer::build_buckets(const DistributedDataParallelOptions& options) {
  std::vector<Tensor> parameters;
  for (const Slot& slot : slots_) parameters.push_back(slot.parameter);
  const std::vector<BucketLayout> layouts =
      assign_buckets(parameters, to_bytes(options.first_bucket_cap_mb, "first_bucket_cap_mb"),
                     to_bytes(options.bucket_cap_mb, "bucket_cap_mb"));
  buckets_.resize(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i) make_bucket(i, layouts.size(), layouts[i]);
}

void Reducer::make_bucket(std::size_t index, std::size_t count, const BucketLayout& layout) {
  Bucket& bucket = buckets_[index];
  const bool last = index + 1 == count;
  const auto status_numel = static_cast<std::int64_t>(last ? kStatusBytes / size_of(layout.dtype) : 0);
  bucket.whole = group_->allocate({layout.numel + status_numel}, layout.dtype, layout.device);
  raw::fill(bucket.whole, 0);
  bucket.grads.index_ = index;
  bucket.grads.is_last_ = last;
  bucket.grads.group_ = group_.get();
  bucket.grads.buffer_ = raw::slice(bucket.whole, 0, 0, layout.numel, 1);
  if (last) status_ = raw::slice(bucket.whole, 0, layout.numel, layout.numel + status_numel, 1);
  for (const BucketSlot& place : layout.slots) {
    Slot& slot = slots_[place.parameter];
    const Tensor& parameter = slot.parameter;
    const Dims strides =
        raw::is_dense(parameter) ? parameter.strides() : raw::contiguous_strides(parameter.sizes());
    slot.view =
        raw::as_strided(raw::slice(bucket.whole, 0, place.offset, place.offset + parameter.numel(), 1),
                        parameter.sizes(), strides);
    slot.bucket = index;
    bucket.slots.push_back(place.parameter);
    bucket.grads.parameters_.push_back(parameter);
    bucket.grads.gradients_.push_back(slot.view);
  }
  bucket.pending = bucket.slots.size();
}

void Reducer::attach_hooks() {
  write_into_buckets();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    handles_.push_back(autograd::register_post_accumulate_grad_hook(
        slots_[i].parameter, [this, i](const Tensor&) { on_grad_ready(i); }));
  }
}

void Reducer::write_into_buckets() {
  for (const Slot& slot : slots_) {
    if (as_bucket_view_) autograd::set_grad_destination(slot.parameter, slot.view);
  }
}

void Reducer::write_elsewhere() noexcept {
  for (const Slot& slot : slots_) {
    if (as_bucket_view_ && slot.parameter.requires_grad()) autograd::clear_grad_destination(slot.parameter);
  }
}

// ---- one backward: four steps ---------------------------------------------------------------------------------------------

void Reducer::on_grad_ready(std::size_t slot_index) {
  if (!sync_) return;
  const trace::Range range("on_grad_ready", static_cast<std::int64_t>(slot_index));
  if (!in_progress_ || abandoned_) start_backward();
  Slot& slot = slots_[slot_index];
  TUTTI_CHECK(!slot.ready, AutogradError, "DistributedDataParallel: parameter ", slot.name,
              " got a second gradient in one backward");
  store_in_bucket(slot);
  slot.ready = true;
  if (--buckets_[slot.bucket].pending == 0) launch_ready_buckets();
}

void Reducer::launch_ready_buckets() {
  const trace::Range range("launch_ready_buckets", static_cast<std::int64_t>(next_bucket_));
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    Bucket& bucket = buckets_[next_bucket_++];
    bucket.work = run_comm_hook(bucket);
  }
}

comm::Work Reducer::run_comm_hook(Bucket& bucket) {
  const trace::Range range("comm_hook", static_cast<std::int64_t>(bucket.grads.index()));
  if (!comm_hook_) return group_->all_reduce(bucket.whole, comm::ReduceOp::kMean);
  const autograd::NoGradGuard no_grad;
  try {
    return comm_hook_(bucket.grads);
  } catch (...) {
    if (hook_failure_ == nullptr) hook_failure_ = std::current_exception();
  }
  // The others' hooks communicate: in place of what this one would have sent.
  return group_->all_reduce(bucket.grads.buffer());
}

void Reducer::finalize() {
  const trace::Range range("finalize");
  const autograd::NoGradGuard no_grad;
  const bool incomplete = next_bucket_ < buckets_.size();
  if (incomplete) launch_incomplete_buckets();
  const std::exception_ptr failure = wait_for_buckets();
  const std::exception_ptr status_failure =
      comm_hook_ ? agree_on_status(incomplete || failure != nullptr || owes_a_step_) : failure;
  if (status_failure != nullptr) {  // the group has failed, and all ranks know that
    drop_step();
    std::rethrow_exception(failure != nullptr ? failure : status_failure);
  }
  if (const StepStatus status = read_status(status_); !status.good()) throw_failures(failure, status);
  try {
    for (Bucket& bucket : buckets_) hand_back(bucket);
  } catch (...) {
    drop_step();
    throw;
  }
  reset();
}

// ---- one forward ----------------------------------------------------------------------------------------------------------

namespace {

// Lives as long as a forward's graph, in hooks on its outputs.
class ForwardWatch {
 public:
  explicit ForwardWatch(std::shared_ptr<std::atomic<std::uint64_t>> skipped) : skipped_(std::move(skipped)) {}
  ~ForwardWatch() {
    if (!had_backward_) ++*skipped_;
  }
  ForwardWatch(const ForwardWatch&) = delete;
  ForwardWatch& operator=(const ForwardWatch&) = delete;
  void note_backward() noexcept { had_backward_ = true; }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> skipped_;
  std::atomic<bool> had_backward_ = false;
};

}  // namespace

void Reducer::watch_forward(const std::vector<Tensor>& outputs) {
  std::shared_ptr<ForwardWatch> watch;
  for (const Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad() || output.is_leaf()) continue;
    if (watch == nullptr) watch = std::make_shared<ForwardWatch>(skipped_);
    autograd::register_hook(output, [watch](const Tensor&) {
      // One that throws later was none: it may not have reached a parameter.
      autograd::queue_callback([watch] { watch->note_backward(); });
      return Tensor();
    }).detach();
  }
}

// ---- what they need ---------------------------------------------------------------------------------------------------------

// Callbacks of a backward that throws are dropped: that is how the Reducer learns of it.
class Reducer::Watch {
 public:
  explicit Watch(Reducer& reducer) : reducer_(&reducer) {}
  ~Watch() {
    if (reducer_ != nullptr) reducer_->abandon();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void finalize() {
    TUTTI_CHECK(reducer_ != nullptr, AutogradError,
                "DistributedDataParallel was destroyed while its backward ran");
    std::exchange(reducer_, nullptr)->finalize();
  }
  void forget() noexcept { reducer_ = nullptr; }

 private:
  Reducer* reducer_;
};

Reducer::~Reducer() {
  if (const std::shared_ptr<Watch> watch = watch_.lock()) watch->forget();
  write_elsewhere();
}

void Reducer::start_backward() {
  settle();
  if (!comm_hook_) write_status(status_, owes_a_step_, *skipped_);
  in_progress_ = true;
  const auto watch = std::make_shared<Watch>(*this);
  watch_ = watch;
  autograd::queue_callback([watch] { watch->finalize(); });
}

// After this the bucket holds the gradient, and with bucket views the parameter's .grad is the bucket's memory.
void Reducer::store_in_bucket(Slot& slot) const {
  const Tensor grad = slot.parameter.grad();
  TUTTI_CHECK(grad.defined(), AutogradError, "DistributedDataParallel: the gradient of ", slot.name,
              " was taken away by a hook that was registered before the module was wrapped");
  if (same_memory(grad, slot.view)) return;
  TUTTI_CHECK(grad.dtype() == slot.view.dtype() && grad.device() == slot.view.device(), AutogradError,
              "DistributedDataParallel: the gradient of ", slot.name, " is ", grad.dtype(), " on ",
              grad.device(), ", its bucket ", slot.view.dtype(), " on ", slot.view.device(),
              "; convert and move the module before wrapping it");
  raw::copy(slot.view, grad);
  if (as_bucket_view_) Tensor(slot.parameter).set_grad(raw::alias(slot.view));
}

// The others may be waiting for them.
void Reducer::launch_incomplete_buckets() {
  if (!comm_hook_) write_status(status_, true, *skipped_);
  for (Bucket& bucket : buckets_) bucket.pending = 0;
  launch_ready_buckets();
}

// The first failure, once all have ended: a hook's functions may use what their caller owns.
std::exception_ptr Reducer::wait_for_buckets() noexcept {
  std::exception_ptr failure = hook_failure_;
  for (std::size_t i = 0; i < next_bucket_; ++i) {
    try {
      buckets_[i].work.wait();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  return failure;
}

void Reducer::launch_status(bool failed) {
  write_status(status_, failed, *skipped_);
  status_work_ = group_->all_reduce(status_, comm::ReduceOp::kMean);
}

std::exception_ptr Reducer::agree_on_status(bool failed) {
  launch_status(failed);
  try {
    status_work_.wait();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void Reducer::hand_back(Bucket& bucket) {
  if (comm_hook_) {
    dispatch::Pointwise divide{dispatch::kFunctor<functors::Div>, "div", bucket.whole.dtype(),
                               bucket.whole.dtype()};
    divide.scalar_input = 1;
    divide.scalar = group_->size();
    const Tensor sums = bucket.grads.buffer();
    dispatch::pointwise_into(sums, divide, {&sums});
  }
  for (const std::size_t index : bucket.slots) {
    Slot& slot = slots_[index];
    if (!as_bucket_view_) {
      const Tensor grad = slot.parameter.grad();
      TUTTI_CHECK(grad.defined(), AutogradError, "DistributedDataParallel: the gradient of ", slot.name,
                  " was taken away by a hook before it was averaged");
      raw::copy(grad, slot.view);
      raw::bump_version(grad);
    }
  }
}

void Reducer::reset() {
  for (Slot& slot : slots_) slot.ready = false;
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.slots.size();
    bucket.work = comm::Work();
  }
  status_work_ = comm::Work();
  report_ = comm::Work();
  hook_failure_ = nullptr;
  next_bucket_ = 0;
  in_progress_ = false;
  abandoned_ = false;
}

// ---- settings ---------------------------------------------------------------------------------------------------------------

void Reducer::set_comm_hook(CommHook hook) {
  settle();
  TUTTI_CHECK(!in_progress_, AutogradError, "register_comm_hook: not during a backward");
  comm_hook_ = std::move(hook);
}

bool Reducer::set_sync(bool on) noexcept { return std::exchange(sync_, on); }

std::vector<std::size_t> Reducer::bucket_bytes() const {
  std::vector<std::size_t> bytes;
  for (const Bucket& bucket : buckets_) {
    bytes.push_back(static_cast<std::size_t>(bucket.grads.buffer().numel()) *
                    bucket.grads.buffer().element_size());
  }
  return bytes;
}

}  // namespace tutti::parallel
