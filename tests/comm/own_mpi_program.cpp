// SPDX-License-Identifier: Apache-2.0
// A program that has its own MPI: Tutti joins it, and leaves it as it was. The first argument is the thread level that the program asks
// for: `multiple`, or `single`, which Tutti refuses.
#include <mpi.h>

#include <cstdio>
#include <string>

#include "tutti/comm/environment.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace {

bool check(bool condition, const char* text) {
  if (!condition) std::fprintf(stderr, "FAILED: %s\n", text);
  return condition;
}

bool joins(MPI_Comm communicator, int size) {
  const tutti::Environment environment({.mpi_communicator = &communicator});
  tutti::Tensor tensor = tutti::ones({1000});
  tutti::comm::world()->all_reduce(tensor).wait();
  const bool sized = check(environment.size() == size, "the world has the communicator's size");
  return check(tensor.data<float>()[999] == static_cast<float>(size), "the sum") && sized;
}

bool is_refused() {
  try {
    const tutti::Environment environment;
  } catch (const tutti::CommError& error) {
    return check(
        std::string(error.what()).find("MPI_Init_thread with MPI_THREAD_MULTIPLE") != std::string::npos,
        error.what());
  }
  return check(false, "no error");
}

}  // namespace

int main(int argc, char** argv) {
  const bool multiple = argc > 1 && std::string(argv[1]) == "multiple";
  int level = 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  int size = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bool well = true;
  if (multiple) {
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    well = joins(reversed, size);
    well = joins(reversed, size) && well;  // one after the other
    MPI_Comm_free(&reversed);
  } else {
    well = is_refused();
  }
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  well = check(sum == size * (size - 1) / 2, "the program's MPI still works") && well;
  MPI_Finalize();
  return well ? 0 : 1;
}
