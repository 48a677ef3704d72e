// SPDX-License-Identifier: Apache-2.0
// How elements are dealt out to ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "comm/contract.hpp"
#include "comm/shm/isa/reduce_loops.hpp"

namespace tutti::comm {

inline constexpr std::size_t kCacheLine = 64;

struct Slice {
  std::int64_t begin;
  std::int64_t count;
};

// The elements of `rank` when `count` are dealt out in whole cache lines: no two ranks write one cache line.
inline Slice slice_of(std::int64_t count, int rank, int size, std::size_t element_bytes) {
  const auto unit = static_cast<std::int64_t>(kCacheLine / element_bytes);
  const std::int64_t units = (count + unit - 1) / unit;
  const std::int64_t each = (units + size - 1) / size * unit;
  const std::int64_t begin = std::min(count, each * rank);
  return {begin, std::min(count, begin + each) - begin};
}

inline ReduceLoops::Reduce reduce_loop(DType dtype, ReduceOp op) {
  return reduce_loops().reduce[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)];
}

}  // namespace tutti::comm
