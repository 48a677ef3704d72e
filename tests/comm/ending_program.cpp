// SPDX-License-Identifier: Apache-2.0
// A job in which rank 1 goes wrong in the way that the first argument says; ending.py looks at how the job ends.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "tutti/comm/environment.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace {
bool is_child = false;
}  // namespace

// LeakSanitizer asks at a process's end. A child has the memory of its parent's threads, but not their stacks, which point to it.
extern "C" int __lsan_is_turned_off() { return is_child ? 1 : 0; }

// MPI's own, which the program's stands in for; null in a build without MPI.
extern "C" [[gnu::weak]] int PMPI_Finalize();
extern "C" int MPI_Finalize();

namespace {

// Held open until the process ends.
int pipe_to_test = -1;

void say_when() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  ::dprintf(pipe_to_test, "%.6f\n", now.count());
}

int rank_in_environment() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "RANK"}) {
    if (const char* rank = std::getenv(variable)) return std::atoi(rank);
  }
  return -1;
}

void go_wrong(const std::string& way) {
  say_when();
  if (way == "throw" || way == "throw_while_computing")
    throw std::runtime_error("the message of rank 1\nwith a second line");
  if (way == "caught") throw std::runtime_error("caught in main");
  if (way == "exit") std::exit(0);
  if (way == "die") std::raise(SIGKILL);
}

// The rank that is late at the end of MPI comes when nobody waits for it any more.
bool is_late_at_end = false;

// A forked child computes, can't communicate, and is no rank: it leaves main as a program of its own.
void check_child(const tutti::Tensor& tensor) {
  const pid_t child = ::fork();
  if (child == 0) {
    is_child = true;
    const tutti::Tensor large = tutti::ones({512, 512});
    const double sum = tutti::sum(tutti::matmul(large, large)).item();
    try {
      tutti::comm::world()->all_reduce(tensor).wait();
    } catch (const tutti::CommError& error) {
      const std::string text = error.what();
      std::exit(sum == 512.0 * 512 * 512 && text.find("was forked by a rank") != std::string::npos ? 0 : 1);
    }
    std::exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the child has failed");
}

void train(int argc, char** argv) {
  const std::string way = argv[1];
  if (way == "late" && rank_in_environment() == 1) {
    say_when();
    std::this_thread::sleep_for(std::chrono::seconds(30));
  }
  if (way == "lonely") {
    if (tutti::comm::world()->size() != 1) throw std::runtime_error("wanted a world of one");
    // Nothing else makes this rank wait for the other, whose pipe has no reader any more if all ranks before it have ended.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return;
  }
  const tutti::Environment environment(argc, argv);
  tutti::Tensor tensor = tutti::ones({1000});
  for (int step = 0; step < 5; ++step) {
    tutti::comm::world()->all_reduce(tensor).wait();
    std::printf("rank %d step %d\n", environment.rank(), step);
  }
  tutti::comm::world()->barrier();  // all ranks have printed; most of it waits in the C library's buffer
  if (way == "well") return;
  if (way == "unmatched") {  // each waits for what the other never sends, and nobody looks at the result
    tutti::comm::world()->recv(tensor, (environment.rank() + 1) % environment.size(), /*tag=*/7);
    return;
  }
  if (way == "fork") {
    check_child(tensor);
    tutti::comm::world()->all_reduce(tensor).wait();
    return;
  }
  if (way == "late_end") {
    is_late_at_end = environment.rank() == 1;
    return;
  }
  if (environment.rank() == 1) {
    go_wrong(way);
    if (way == "leave") return;
  }
  // No rank waits for another.
  if (way == "throw_while_computing") std::this_thread::sleep_for(std::chrono::seconds(30));
  tutti::comm::world()->all_reduce(tensor).wait();
  std::printf("rank %d has passed\n", environment.rank());
}

}  // namespace

extern "C" int MPI_Finalize() {
  if (is_late_at_end) {
    say_when();
    std::this_thread::sleep_for(std::chrono::seconds(30));
  }
  return PMPI_Finalize();
}

int main(int argc, char** argv) {
  const std::string way = argv[1];
  pipe_to_test = ::open(std::getenv("ENDING_PIPE"), O_WRONLY | O_CLOEXEC);
  if (way == "refused") ::setenv("TUTTI_DEVICE", "toaster", 1);
  if (way == "late") ::setenv("TUTTI_TIMEOUT_S", "1", 1);
  if (way == "late_end") ::setenv("TUTTI_TIMEOUT_S", "4", 1);  // enough for what comes before the end
  if (way == "unlike" && rank_in_environment() == 1) ::setenv("TUTTI_COMM_BACKEND", "mpi", 1);
  if (way != "caught" && way != "refused") {
    train(argc, argv);
    return 0;
  }
  try {
    train(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "main says: %s\n", error.what());
    return 2;
  }
  return 0;
}
