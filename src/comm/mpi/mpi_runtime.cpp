// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_runtime.hpp"

#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "comm/ending.hpp"
#include "comm/keep.hpp"
#include "comm/mpi/mpi_bootstrap.hpp"
#include "comm/mpi/mpi_requests.hpp"
#include "core/start_thread.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

constexpr auto kPollInterval = std::chrono::microseconds(50);

const char* name_of_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    default: return "MPI_THREAD_MULTIPLE";
  }
}

// Ends this process if it is still alive when the deadline passes.
class StartWatch {
 public:
  explicit StartWatch(const Deadline& deadline)
      : thread_(start_thread([this, deadline] { run(deadline); })) {}
  ~StartWatch() {
    {
      const std::lock_guard lock(mutex_);
      started_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  void run(const Deadline& deadline) noexcept {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, deadline.time_point(), [this] { return started_; })) return;
    end_job(concat("the start of MPI: ", deadline.seconds(),
                   " s have passed, and not every process that the launcher has started has made its ",
                   "Environment (TUTTI_TIMEOUT_S)"));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::thread thread_;
};

class Runtime final : public MpiRuntime {
 public:
  Runtime(MPI_Comm communicator, bool is_ours) : communicator_(communicator), is_ours_(is_ours) {}

  // Ranks can't meet by messages first: the communicator is the program's, and so are its messages.
  std::unique_ptr<Bootstrap> make_bootstrap(const Deadline& deadline) override {
    struct Duplicate {
      MPI_Comm communicator = MPI_COMM_NULL;
      MPI_Request request = MPI_REQUEST_NULL;
    };
    const auto own = std::make_shared<Duplicate>();
    check_mpi(MPI_Comm_idup(communicator_, &own->communicator, &own->request), "MPI_Comm_idup");
    for (;;) {
      int done = 0;
      check_mpi(MPI_Test(&own->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return std::make_unique<MpiBootstrap>(own->communicator);
      if (deadline.passed()) {
        keep_forever(own);
        tutti::detail::fail<TimeoutError>(
            "the meeting of the job's ranks: ", deadline.seconds(),
            " s have passed, and not every rank of the communicator has made its ",
            "Environment (TUTTI_TIMEOUT_S)");
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }
  void finish() noexcept override {
    if (is_ours_) MPI_Finalize();
  }

 private:
  MPI_Comm communicator_;
  bool is_ours_;
};

}  // namespace

std::string mpi_version_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  // Open MPI continues with the package and its build.
  const std::string_view whole(text, static_cast<std::size_t>(length));
  return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

bool mpi_is_initialized() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

std::unique_ptr<MpiRuntime> MpiRuntime::start(const void* communicator, const Deadline& deadline) {
  const bool is_ours = !mpi_is_initialized();
  int level = MPI_THREAD_SINGLE;
  if (is_ours) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    TUTTI_CHECK(finalized == 0, CommError,
                "MPI has been finalised in this process and can't start again: make one Environment, for all "
                "of main");
    TUTTI_CHECK(communicator == nullptr, CommError,
                "EnvironmentOptions::mpi_communicator is given, but the program has not initialised MPI");
    {
      const StartWatch watch(deadline);
      check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    }
    int size = 1;
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    check_size_by_launcher(size);
    // The communication thread and threads that wait call MPI one at a time.
    TUTTI_CHECK(level >= MPI_THREAD_SERIALIZED, CommError,
                "Tutti calls MPI from several threads, one at a time: it needs ",
                "MPI_THREAD_SERIALIZED, and this MPI gives ", name_of_level(level));
  } else {
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    TUTTI_CHECK(level == MPI_THREAD_MULTIPLE, CommError, "the program has initialised MPI with ",
                name_of_level(level),
                "; Tutti calls MPI from its own thread beside the program's, which needs MPI_Init_thread "
                "with MPI_THREAD_MULTIPLE");
  }
  const MPI_Comm base =
      communicator != nullptr ? *static_cast<const MPI_Comm*>(communicator) : MPI_COMM_WORLD;
  return std::make_unique<Runtime>(base, is_ours);
}

void abort_mpi_job(int exit_code) noexcept {
  if (mpi_is_initialized()) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace tutti::comm
