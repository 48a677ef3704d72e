// SPDX-License-Identifier: Apache-2.0
// What can be told from sizes and strides alone.
#pragma once

#include <array>
#include <optional>

#include "tutti/tensor/dims.hpp"

namespace tutti::detail {

// Strides that show an array of `sizes` and `strides` as `wanted` (of as many elements); nothing if a copy is
// needed.
std::optional<Dims> strides_of_view(const Dims& sizes, const Dims& strides, const Dims& wanted);

// Dims in some order.
struct Order {
  std::array<int, kMaxDims> dims{};
  int count = 0;
};
// Dims of a size other than 1, smallest stride first; of equal strides, and where one is 0, the later dim
// first.
Order by_stride(const Dims& sizes, const Dims& strides);

// Fills its memory without gaps or overlap, in some order of dims.
bool is_dense(const Dims& sizes, const Dims& strides);
// Two indices may lead to one element. Exact for what views of a tensor can make; says yes in doubt.
bool may_overlap_itself(const Dims& sizes, const Dims& strides);
// Elements from the first to the last that is touched; 0 for empty arrays.
std::int64_t extent(const Dims& sizes, const Dims& strides) noexcept;
// The same for strides that somebody gave: ShapeError naming `op` if one is negative or leads beyond 63 bits.
std::int64_t checked_extent(const Dims& sizes, const Dims& strides, const char* op);

}  // namespace tutti::detail
