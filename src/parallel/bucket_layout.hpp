// SPDX-License-Identifier: Apache-2.0
// Which parameter lies in which bucket, and where. Depends on the parameters alone, so all ranks agree on it.
#pragma once

#include <cstddef>
#include <vector>

#include "tutti/tensor/tensor.hpp"

namespace tutti::parallel {

// One parameter's place.
struct BucketSlot {
  std::size_t parameter;  // index in the list of parameters
  std::int64_t offset;    // in elements from the start of the bucket; a multiple of 64 bytes
};
struct BucketLayout {
  DType dtype;
  Device device;
  std::vector<BucketSlot> slots;
  std::int64_t numel = 0;  // with padding
};

// Goes through the parameters in reverse: backward reaches the last ones first. A bucket takes parameters of one dtype and
// device and closes once it has reached its cap; so it may exceed it by one parameter. The order of buckets is that of
// their last parameter, which completes them.
std::vector<BucketLayout> assign_buckets(const std::vector<Tensor>& parameters, std::size_t first_cap_bytes,
                                         std::size_t cap_bytes);

}  // namespace tutti::parallel
