// SPDX-License-Identifier: Apache-2.0
// Tutti's all-reduce against MPI_Allreduce, in turns in one job:
//
//   mpirun -np 2 all_reduce <rounds>
//
// A line a size, kind of memory and round: bytes, "allocated" or "ordinary", Tutti's and MPI's seconds for one all-reduce.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <tutti/tutti.hpp>
#include <vector>

namespace {

using tutti::Tensor;

constexpr std::int64_t kSizes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};

// Slowest rank's seconds for one repetition.
template <class Operation>
double seconds_of(int repetitions, Operation operation) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repetitions; ++i) operation();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds / repetitions;
}

void compare(std::int64_t bytes, const char* kind, const Tensor& tensor, int rounds, bool print) {
  const auto group = tutti::comm::world();
  const auto count = static_cast<int>(bytes / 4);
  // Zeros stay zeros, however often they are added up.
  Tensor(tensor).zero_();
  std::vector<float> buffer(static_cast<std::size_t>(count), 0.0F);
  const auto ours = [&] { group->all_reduce(tensor).wait(); };
  const auto mpi = [&] {
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  // About a tenth of a second a turn.
  const int repetitions = static_cast<int>(std::max<std::int64_t>(3, (128 << 20) / bytes));
  seconds_of(3, ours);
  seconds_of(3, mpi);
  for (int round = 0; round < rounds; ++round) {
    const double our_seconds = seconds_of(repetitions, ours);
    const double mpi_seconds = seconds_of(repetitions, mpi);
    if (print)
      std::printf("%lld %s %.9f %.9f\n", static_cast<long long>(bytes), kind, our_seconds, mpi_seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  {
    const tutti::Environment environment(argc, argv);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
    const bool print = environment.rank() == 0;
    for (const std::int64_t bytes : kSizes) {
      compare(bytes, "allocated", tutti::comm::world()->allocate({bytes / 4}), rounds, print);
      compare(bytes, "ordinary", tutti::empty({bytes / 4}), rounds, print);
    }
  }
  MPI_Finalize();
}
