// SPDX-License-Identifier: Apache-2.0
// A job in which rank 1 goes wrong in the way that the first argument says; ending.sh looks at how the job ends.
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
#include "tutti/tensor/factories.hpp"

namespace {

void go_wrong(const std::string& way) {
  if (way == "throw") throw std::runtime_error("the message of rank 1\nwith a second line");
  if (way == "caught") throw std::runtime_error("caught in main");
  if (way == "exit") std::exit(0);
  if (way == "die") std::raise(SIGKILL);
}

void train(int argc, char** argv) {
  const std::string way = argv[1];
  const tutti::Environment environment(argc, argv);
  tutti::Tensor tensor = tutti::ones({1000});
  for (int step = 0; step < 5; ++step) {
    tutti::comm::world()->all_reduce(tensor).wait();
    std::printf("rank %d step %d\n", environment.rank(), step);
  }
  std::fflush(stdout);
  if (environment.rank() == 1) {
    go_wrong(way);
    if (way == "leave") return;
  }
  if (way == "well") return;
  if (way == "unmatched") {  // each waits for what the other never sends, and nobody looks at the result
    tutti::comm::world()->recv(tensor, 1 - environment.rank(), /*tag=*/7);
    return;
  }
  if (way == "throw_while_computing") {  // no rank waits for another
    if (environment.rank() == 1) throw std::runtime_error("the message of rank 1");
    std::this_thread::sleep_for(std::chrono::seconds(30));
  }
  tutti::comm::world()->all_reduce(tensor).wait();
  std::printf("rank %d has passed\n", environment.rank());
}

}  // namespace

int main(int argc, char** argv) {
  if (std::string(argv[1]) != "caught") {
    train(argc, argv);
    return 0;
  }
  try {
    train(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "main says: %s\n", error.what());
    return 3;
  }
  return 0;
}
