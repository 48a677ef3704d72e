// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_runtime.hpp"

#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "comm/ending.hpp"
#include "comm/keep.hpp"
#include "comm/mpi/mpi_bootstrap.hpp"
#include "comm/mpi/mpi_requests.hpp"
#include "core/start_thread.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

const char* name_of_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    default: return "MPI_THREAD_MULTIPLE";
  }
}

// While it lives this thread is in a call of MPI's that waits for other processes and can't be left: where the deadline passes
// first, it ends this process with a message.
class CallWatch {
 public:
  // The call, and what some process has not done.
  CallWatch(const Deadline& deadline, const char* call, const char* missing)
      : call_(call), missing_(missing), thread_(start_thread([this, deadline] { run(deadline); })) {}
  ~CallWatch() {
    {
      const std::lock_guard lock(mutex_);
      returned_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

 private:
  void run(const Deadline& deadline) noexcept {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, deadline.time_point(), [this] { return returned_; })) return;
    end_job(concat(call_, ": ", deadline.seconds(), " s have passed, and not every ", missing_,
                   " (TUTTI_TIMEOUT_S)"));
  }

  const char* call_;
  const char* missing_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool returned_ = false;
  std::thread thread_;
};

class Runtime final : public MpiRuntime {
 public:
  Runtime(MPI_Comm communicator, bool is_ours, double timeout_s)
      : communicator_(communicator), is_ours_(is_ours), timeout_s_(timeout_s) {}

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
    if (!is_ours_) return;
    std::optional<CallWatch> watch;
    try {
      watch.emplace(Deadline(timeout_s_), "the end of MPI", "rank has come to it");
    } catch (const std::system_error&) {
      // No thread to watch with: MPI may well end all the same.
    }
    MPI_Finalize();
  }

 private:
  MPI_Comm communicator_;
  bool is_ours_;
  double timeout_s_;
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
      const CallWatch watch(deadline, "the start of MPI",
                            "process that the launcher has started has made its Environment");
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
  return std::make_unique<Runtime>(base, is_ours, deadline.seconds());
}

void abort_mpi_job(int exit_code) noexcept {
  if (mpi_is_initialized()) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace tutti::comm
