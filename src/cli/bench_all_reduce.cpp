// SPDX-License-Identifier: Apache-2.0
#include <tutti/comm/environment.hpp>
#include <tutti/comm/process_group.hpp>
#include <tutti/core/trace.hpp>
#include <tutti/ops/ops.hpp>
#include <tutti/tensor/factories.hpp>

#include <cstdio>
#include <string>

#include "commands.hpp"

namespace tutti::cli {

namespace {

struct Row {
  double time_us = 0;      // mean over iterations and ranks
  std::int64_t wrong = 0;  // elements, of all ranks
};

DType parse_dtype(const std::string& text) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                            DType::kInt64, DType::kInt32, DType::kInt8, DType::kUInt8}) {
    if (text == name(dtype)) return dtype;
  }
  throw ValueError(concat("bench all-reduce: no dtype '", text, "'"));
}

// Small whole numbers, whose sums every dtype holds exactly; different for neighbours and for ranks.
Tensor pattern(std::int64_t count, DType dtype, int rank) {
  const Tensor values = empty({count}, DType::kInt64);
  auto* to = values.data<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) to[i] = (i + rank) % 3;
  return values.to(dtype);
}

// The sum of all ranks' patterns.
Tensor expected_sum(std::int64_t count, DType dtype, int size) {
  const Tensor sums = empty({count}, DType::kInt64);
  auto* to = sums.data<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = 0;
    for (int rank = 0; rank < size; ++rank) to[i] += (i + rank) % 3;
  }
  return sums.to(dtype);
}

double sum_over_ranks(comm::ProcessGroup& group, double value) {
  const Tensor total = full({1}, value, DType::kFloat64);
  group.all_reduce(total).wait();
  return total.item();
}

Row measure(comm::ProcessGroup& group, std::int64_t count, DType dtype, const AllReduceOptions& options) {
  Tensor buffer = options.plain_memory ? empty({count}, dtype) : group.allocate({count}, dtype);
  buffer.copy_(pattern(count, dtype, group.rank()));
  group.all_reduce(buffer).wait();
  Row row;
  const auto wrong = (buffer != expected_sum(count, dtype, group.size())).sum().item<std::int64_t>();
  row.wrong = static_cast<std::int64_t>(sum_over_ranks(group, static_cast<double>(wrong)));

  buffer.zero_();  // stays finite however often it is summed
  for (int i = 0; i < options.warmup; ++i) group.all_reduce(buffer).wait();
  group.barrier();
  const std::int64_t start = trace::now_ns();
  for (int i = 0; i < options.iterations; ++i) group.all_reduce(buffer).wait();
  const double us = static_cast<double>(trace::now_ns() - start) / 1e3 / options.iterations;
  row.time_us = sum_over_ranks(group, us) / group.size();
  return row;
}

}  // namespace

int bench_all_reduce(int argc, char** argv, const AllReduceOptions& options) {
  const DType dtype = parse_dtype(options.dtype);
  const Environment env{argc, argv};
  comm::ProcessGroup& group = *comm::world();
  const bool prints = group.rank() == 0;
  const double ranks = group.size();
  if (prints) {
    std::printf("# all_reduce (sum), %d rank%s, backend %s, %s memory, %d iterations after %d of warm-up\n",
                group.size(), group.size() == 1 ? "" : "s", group.backend(),
                options.plain_memory ? "ordinary" : "the group's", options.iterations, options.warmup);
    std::printf("# time: mean over ranks. algbw = size / time; busbw = algbw * 2 (n - 1) / n, n ranks\n");
    std::printf("#%12s %12s %9s %11s %9s %9s %9s\n", "size", "count", "type", "time", "algbw", "busbw",
                "wrong");
    std::printf("#%12s %12s %9s %11s %9s %9s %9s\n", "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)", "");
  }
  std::int64_t wrong = 0;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  for (std::int64_t bytes = options.least_bytes; bytes <= options.greatest_bytes; bytes *= options.factor) {
    const std::int64_t count = bytes / element > 0 ? bytes / element : 1;
    const Row row = measure(group, count, dtype, options);
    const double algorithm = static_cast<double>(count * element) / 1e3 / row.time_us;
    if (prints) {
      std::printf("%13lld %12lld %9s %11.2f %9.2f %9.2f %9lld\n", static_cast<long long>(count * element),
                  static_cast<long long>(count), name(dtype), row.time_us, algorithm,
                  algorithm * 2 * (ranks - 1) / ranks, static_cast<long long>(row.wrong));
      std::fflush(stdout);
    }
    wrong += row.wrong;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace tutti::cli
