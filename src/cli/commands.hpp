// SPDX-License-Identifier: Apache-2.0
// The commands of the program `tutti`. Each returns the exit code.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::cli {

// Prints what the library found on this machine, from rank 0.
int print_environment(int argc, char** argv);

struct AllReduceOptions {
  std::int64_t least_bytes = 8;
  std::int64_t greatest_bytes = std::int64_t{64} << 20;
  std::int64_t factor = 2;  // from one size to the next
  int iterations = 20;
  int warmup = 5;
  std::string dtype = "float32";
  bool plain_memory = false;  // tensors that the group copies through, not in its own memory
};

// Times all_reduce for a range of sizes on all ranks, checks the results, and prints nccl-tests' columns. 1 if a result was wrong.
int bench_all_reduce(int argc, char** argv, const AllReduceOptions& options);

}  // namespace tutti::cli
