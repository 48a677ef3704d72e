// SPDX-License-Identifier: Apache-2.0
// What travels with the last bucket of a backward, so that all ranks know in the same step what has become of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/tensor/tensor.hpp"

namespace tutti::parallel {

// At least 8 elements of any dtype; keeps the bucket's length a multiple of the slots' alignment.
inline constexpr std::size_t kStatusBytes = 64;

// Element 0 is 1 if this rank has failed. Those that follow carry the low bits of `skipped`: how many of its training forwards had no
// backward.
void write_status(const Tensor& status, bool failed, std::uint64_t skipped);

struct StepStatus {
  bool any_failed;
  bool out_of_step;  // the ranks have skipped different numbers of backwards
  bool good() const noexcept { return !any_failed && !out_of_step; }
};
// Of the mean over all ranks, so all ranks read the same.
StepStatus read_status(const Tensor& mean);

}  // namespace tutti::parallel
