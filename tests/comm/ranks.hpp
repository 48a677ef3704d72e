// SPDX-License-Identifier: Apache-2.0
// What tests under mpirun share: elements that differ by rank, and their reduction computed by one process.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tutti/comm/environment.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/dtype.hpp"
#include "tutti/tensor/factories.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::test {

inline int ranks() { return comm::world()->size(); }
inline int own_rank() { return comm::world()->rank(); }

// Element `index` of rank `rank`: small integers for exact dtypes; for float ones values whose sum depends on its order.
template <class T>
T element(int rank, std::int64_t index) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(index) * 2654435761U + static_cast<std::uint64_t>(rank) * 40503U) >> 7U;
  if constexpr (std::is_same_v<T, bool>) {
    return mixed % 3 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int>(mixed % 7) + 1);
  } else {
    const double sign = mixed % 2 == 0 ? 1.0 : -1.0;
    return T(
        static_cast<float>(sign * static_cast<double>(mixed % 1000) / 37.0 * (rank == 0 ? 1000.0 : 1.0)));
  }
}

template <class T>
std::vector<T> elements(int rank, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(element<T>(rank, i));
  return values;
}

// The arithmetic that reductions promise: half dtypes in float32, everything in the order of ranks, rounded once.
template <class T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<Half> {
  using Type = float;
};
template <>
struct Wide<BFloat16> {
  using Type = float;
};

// Ranks that a sum takes together before it goes on to the next such group: all, or in a hierarchical group those of a host.
inline int ranks_summed_together() {
  const bool hierarchical = std::string_view(comm::world()->backend()) == "hierarchical";
  return hierarchical ? Environment::current()->local_size() : ranks();
}

template <class W>
W combined(comm::ReduceOp op, W a, W b) {
  using comm::ReduceOp;
  if (op == ReduceOp::kMax) return a > b ? a : b;
  if (op == ReduceOp::kMin) return a < b ? a : b;
  return static_cast<W>(op == ReduceOp::kProduct ? a * b : a + b);
}

// What all ranks get for an element.
template <class T>
T reduced(comm::ReduceOp op, std::int64_t index, int together = ranks_summed_together()) {
  using W = typename Wide<T>::Type;
  W total{};
  for (int first = 0; first < ranks(); first += together) {
    W value = static_cast<W>(element<T>(first, index));
    for (int rank = first + 1; rank < first + together; ++rank) {
      value = combined(op, value, static_cast<W>(element<T>(rank, index)));
    }
    total = first == 0 ? value : combined(op, total, value);
  }
  if (op == comm::ReduceOp::kMean) total = static_cast<W>(total / static_cast<W>(ranks()));
  return T(total);
}

// A tensor that holds the elements of `rank`, in the dtype of T.
template <class T>
Tensor filled(int rank, std::int64_t count) {
  Tensor tensor = empty({count}, dtype_of<T>);
  for (std::int64_t i = 0; i < count; ++i) tensor.data<T>()[i] = element<T>(rank, i);
  return tensor;
}

}  // namespace tutti::test
