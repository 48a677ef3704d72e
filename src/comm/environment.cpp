// SPDX-License-Identifier: Apache-2.0
#include "tutti/comm/environment.hpp"

#include <atomic>
#include <exception>
#include <string_view>
#include <vector>

#include "comm/ending.hpp"
#include "comm/group_core.hpp"
#include "comm/job.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "core/deadline.hpp"
#include "core/environment_variables.hpp"
#include "core/team.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

namespace tutti {

struct Environment::Impl {
  const char* launcher = "none";
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  Device device;
  int exceptions_before = 0;
  bool is_alone = false;  // known to be in a world of one
  std::unique_ptr<comm::MpiRuntime> mpi;
  std::unique_ptr<comm::Job> job;  // null in a world of one
};

namespace {

std::atomic<Environment*> current_environment{nullptr};

constexpr std::string_view kDeviceOption = "--device";

// The value of the last --device; arguments that are not Tutti's are appended to `kept`.
std::string take_device(int argc, char* const* argv, std::vector<char*>& kept) {
  std::string device;
  bool options_ended = false;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    options_ended = options_ended || argument == "--";
    if (!options_ended && i > 0 && argument == kDeviceOption) {
      TUTTI_CHECK(i + 1 < argc, ValueError, "--device wants cpu, cuda or cuda:N after it");
      device = argv[++i];
    } else if (!options_ended && i > 0 && argument.starts_with(kDeviceOption) &&
               argument.size() > kDeviceOption.size() && argument[kDeviceOption.size()] == '=') {
      device = argument.substr(kDeviceOption.size() + 1);
    } else {
      kept.push_back(argv[i]);
    }
  }
  return device;
}

Device choose_device(std::string text, int local_rank) {
  if (text.empty()) text = environment_text("TUTTI_DEVICE").value_or("");
  if (text.empty()) {
    return local_rank < device_count(DeviceType::kCuda) ? Device(DeviceType::kCuda, local_rank) : Device();
  }
  const Device device = text == "cuda" ? Device(DeviceType::kCuda, local_rank) : Device(text);
  TUTTI_CHECK(device.is_cpu() || is_available(DeviceType::kCuda), DeviceError, "device ", device,
              " is wanted, but ", unavailable_reason(DeviceType::kCuda));
  return device;
}

std::unique_ptr<comm::Bootstrap> find_ranks(Environment::Impl& impl, const EnvironmentOptions& options,
                                            double timeout_s) {
  if (comm::launched_by_mpi() || comm::mpi_is_initialized() || options.mpi_communicator != nullptr) {
    impl.launcher = "mpi";
    comm::watch_start(comm::rank_by_launcher(), /*under_mpi=*/true);
    impl.mpi = comm::MpiRuntime::start(options.mpi_communicator, Deadline(timeout_s));
    return impl.mpi->make_bootstrap(Deadline(timeout_s));
  }
  comm::watch_start(/*rank=*/-1, /*under_mpi=*/false);
  if (!comm::tcp_bootstrap_requested()) return nullptr;
  impl.launcher = "env://";
  comm::watch_start(comm::rank_by_environment(), /*under_mpi=*/false);
  // Ranks that are still at the end of one meeting and ranks that begin the next would meet each other.
  static std::atomic<bool> have_met{false};
  TUTTI_CHECK(!have_met.load(), CommError,
              "the ranks of this job have met over env:// before, and meet once: make one Environment, for "
              "all of main");
  auto bootstrap = comm::make_tcp_bootstrap(Deadline(timeout_s));
  have_met.store(bootstrap->size() > 1);
  return bootstrap;
}

void join(Environment::Impl& impl, const EnvironmentOptions& options) {
  TUTTI_CHECK(options.timeout_s >= 0, ValueError,
              "EnvironmentOptions::timeout_s must not be negative, given ", options.timeout_s);
  const double timeout_s = options.timeout_s > 0 ? options.timeout_s : default_timeout_s();
  bind_team();  // the communication thread inherits this rank's cores
  std::unique_ptr<comm::Bootstrap> bootstrap = find_ranks(impl, options, timeout_s);
  comm::check_backend_choice();
  impl.is_alone = bootstrap == nullptr || bootstrap->size() == 1;
  if (impl.is_alone) {
    comm::stop_watching();
    return;
  }
  impl.rank = bootstrap->rank();
  impl.size = bootstrap->size();
  logging::set_rank(impl.rank);
  comm::watch_start(impl.rank, impl.mpi != nullptr);
  impl.job = std::make_unique<comm::Job>(std::move(bootstrap), timeout_s);
  comm::watch_for_failure(impl.job->host);
  impl.local_rank = impl.job->host->local_rank();
  impl.local_size = impl.job->host->local_size();
}

// Leaves a job that was joined, since the Environment can't be made after all.
void leave(Environment::Impl& impl) noexcept {
  logging::set_rank(-1);
  if (impl.job == nullptr) {
    // Else the ranks have not met, and none can know which of the others wait for it: the error ends the job.
    if (impl.is_alone && impl.mpi != nullptr) impl.mpi->finish();  // it waits for nobody
    return;
  }
  comm::stop_watching();
  try {
    impl.job->close();  // the other ranks leave as well, or learn that this one does
  } catch (const std::exception& error) {
    logging::warning("leaving the job: ", error.what());
    impl.job->host->depart();
    impl.mpi = nullptr;  // it would wait for them
  }
  impl.job = nullptr;
  if (impl.mpi != nullptr) impl.mpi->finish();
}

detail::Hidden<Environment::Impl> start(Environment* self, const std::string& device,
                                        const EnvironmentOptions& options) {
  Environment* nobody = nullptr;
  TUTTI_CHECK(current_environment.compare_exchange_strong(nobody, self), Error,
              "an Environment lives already: a process has one at a time");
  detail::Hidden<Environment::Impl> impl(new Environment::Impl);
  try {
    impl->exceptions_before = std::uncaught_exceptions();
    join(*impl, options);
    impl->device = choose_device(device, impl->local_rank);
  } catch (...) {
    leave(*impl);
    current_environment.store(nullptr);
    throw;
  }
  return impl;
}

}  // namespace

Environment::Environment(EnvironmentOptions options) : impl_(start(this, {}, options)) {}

Environment::Environment(int& argc, char**& argv, EnvironmentOptions options) {
  std::vector<char*> kept;
  const std::string device = take_device(argc, argv, kept);
  impl_ = start(this, device, options);
  argc = static_cast<int>(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) argv[i] = kept[i];
  argv[kept.size()] = nullptr;
}

Environment::Environment(const int& argc, char* const* argv, EnvironmentOptions options) {
  std::vector<char*> kept;
  impl_ = start(this, take_device(argc, argv, kept), options);
}

Environment::~Environment() {
  current_environment.store(nullptr);
  if (comm::is_forked_child()) {  // job and MPI are the parent's
    impl_.release();              // NOLINT(bugprone-unused-return-value): on purpose
    return;
  }
  if (impl_->job != nullptr && std::uncaught_exceptions() > impl_->exceptions_before) {
    comm::expect_exit();
    // The communication thread may be amidst an operation that will never end: job and MPI stay as they are.
    impl_.release();  // NOLINT(bugprone-unused-return-value): on purpose
    return;
  }
  if (impl_->job != nullptr) {
    try {
      impl_->job->close();
    } catch (const std::exception& error) {
      comm::end_job(concat("the end of its Environment: ", error.what()));
    }
    impl_->job = nullptr;
    comm::stop_watching();
    logging::set_rank(-1);
  }
  if (impl_->mpi != nullptr) impl_->mpi->finish();
}

int Environment::rank() const noexcept { return impl_->rank; }
int Environment::size() const noexcept { return impl_->size; }
int Environment::local_rank() const noexcept { return impl_->local_rank; }
int Environment::local_size() const noexcept { return impl_->local_size; }
const char* Environment::launcher() const noexcept { return impl_->launcher; }
Device Environment::device() const noexcept { return impl_->device; }
Environment* Environment::current() noexcept { return current_environment.load(); }

}  // namespace tutti
