// SPDX-License-Identifier: Apache-2.0
#include "parallel/bucket_layout.hpp"

#include <gtest/gtest.h>

#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using parallel::assign_buckets;
using parallel::BucketLayout;

std::vector<std::size_t> parameters_of(const BucketLayout& bucket) {
  std::vector<std::size_t> indices;
  for (const auto& slot : bucket.slots) indices.push_back(slot.parameter);
  return indices;
}
using Indices = std::vector<std::size_t>;

TEST(BucketLayout, LastParametersComeFirstAndCapsCloseBuckets) {
  // 1,000 float32 each: 4,000 bytes, padded to 4,032.
  const std::vector<Tensor> parameters(6, zeros({1000}));
  const auto buckets = assign_buckets(parameters, 4000, 8000);
  ASSERT_EQ(buckets.size(), 4U);
  EXPECT_EQ(parameters_of(buckets[0]), Indices{5});
  EXPECT_EQ(parameters_of(buckets[1]), (Indices{4, 3}));
  EXPECT_EQ(parameters_of(buckets[2]), (Indices{2, 1}));
  EXPECT_EQ(parameters_of(buckets[3]), Indices{0});
}

TEST(BucketLayout, SlotsStartOn64Bytes) {
  const std::vector<Tensor> parameters = {zeros({3}), zeros({}), zeros({17}), zeros({0})};
  const auto buckets = assign_buckets(parameters, 1 << 20, 1 << 20);
  ASSERT_EQ(buckets.size(), 1U);
  std::vector<std::int64_t> offsets;
  for (const auto& slot : buckets[0].slots) offsets.push_back(slot.offset);
  EXPECT_EQ(offsets,
            (std::vector<std::int64_t>{0, 0, 32, 48}));  // [0] takes nothing, 17 takes 32, one takes 16
  EXPECT_EQ(buckets[0].numel, 64);
}

TEST(BucketLayout, DTypesDoNotMix) {
  const std::vector<Tensor> parameters = {zeros({4}), zeros({4}, DType::kFloat64), zeros({4}),
                                          zeros({4}, DType::kFloat64)};
  const auto buckets = assign_buckets(parameters, 1 << 20, 1 << 20);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].dtype, DType::kFloat64);  // complete with parameter 1, before parameter 0
  EXPECT_EQ(parameters_of(buckets[0]), (Indices{3, 1}));
  EXPECT_EQ(parameters_of(buckets[1]), (Indices{2, 0}));
}

}  // namespace
}  // namespace tutti
