// SPDX-License-Identifier: Apache-2.0
#include "parallel/bucket_layout.hpp"

#include <algorithm>

namespace tutti::parallel {

namespace {

constexpr std::size_t kSlotAlignment = 64;

std::int64_t padded(std::int64_t numel, DType dtype) {
  const auto unit = static_cast<std::int64_t>(kSlotAlignment / size_of(dtype));
  return (numel + unit - 1) / unit * unit;
}

}  // namespace

std::vector<BucketLayout> assign_buckets(const std::vector<Tensor>& parameters, std::size_t first_cap_bytes,
                                         std::size_t cap_bytes) {
  std::vector<BucketLayout> closed;
  std::vector<BucketLayout> open;  // one for each dtype and device
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Tensor& parameter = parameters[i];
    auto bucket = std::find_if(open.begin(), open.end(), [&](const BucketLayout& b) {
      return b.dtype == parameter.dtype() && b.device == parameter.device();
    });
    if (bucket == open.end())
      bucket = open.insert(open.end(), {parameter.dtype(), parameter.device(), {}, 0});
    bucket->slots.push_back({i, bucket->numel});
    bucket->numel += padded(parameter.numel(), parameter.dtype());
    const std::size_t bytes = static_cast<std::size_t>(bucket->numel) * size_of(bucket->dtype);
    if (bytes >= (closed.empty() ? first_cap_bytes : cap_bytes)) {
      closed.push_back(std::move(*bucket));
      open.erase(bucket);
    }
  }
  // Those still open end with the parameter declared first that they hold: the greater its index, the sooner it is ready.
  std::sort(open.begin(), open.end(), [](const BucketLayout& a, const BucketLayout& b) {
    return a.slots.back().parameter > b.slots.back().parameter;
  });
  for (BucketLayout& bucket : open) closed.push_back(std::move(bucket));
  return closed;
}

}  // namespace tutti::parallel
