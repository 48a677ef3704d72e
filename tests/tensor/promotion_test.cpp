// SPDX-License-Identifier: Apache-2.0
// Expected dtypes are those of torch.result_type.
#include "tensor/promotion.hpp"

#include <gtest/gtest.h>

#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

Tensor dims(DType dtype) { return empty({3}, dtype); }
Tensor zero_dim(DType dtype) { return empty({}, dtype); }

TEST(ResultType, NumbersRaiseTheCategoryOnly) {
  EXPECT_EQ(result_type(dims(DType::kInt32), 2), DType::kInt32);
  EXPECT_EQ(result_type(dims(DType::kInt32), 2.0), DType::kFloat32);
  EXPECT_EQ(result_type(dims(DType::kUInt8), -1), DType::kUInt8);
  EXPECT_EQ(result_type(dims(DType::kBool), 2), DType::kInt64);
  EXPECT_EQ(result_type(dims(DType::kBool), true), DType::kBool);
  EXPECT_EQ(result_type(dims(DType::kBool), 2.0), DType::kFloat32);
  EXPECT_EQ(result_type(dims(DType::kFloat16), 2.0), DType::kFloat16);
  EXPECT_EQ(result_type(dims(DType::kBFloat16), 2), DType::kBFloat16);
  EXPECT_EQ(result_type(2.0, dims(DType::kFloat64)), DType::kFloat64);
}

TEST(ResultType, ZeroDimTensorsRaiseTheCategoryOnly) {
  EXPECT_EQ(result_type(dims(DType::kFloat16), zero_dim(DType::kFloat64)), DType::kFloat16);
  EXPECT_EQ(result_type(zero_dim(DType::kFloat64), dims(DType::kInt8)), DType::kFloat64);
  EXPECT_EQ(result_type(dims(DType::kInt8), zero_dim(DType::kInt64)), DType::kInt8);
  EXPECT_EQ(result_type(dims(DType::kBool), zero_dim(DType::kInt16)), DType::kInt16);
  EXPECT_EQ(result_type(dims(DType::kInt64), zero_dim(DType::kFloat16)), DType::kFloat16);
  EXPECT_EQ(result_type(zero_dim(DType::kInt32), zero_dim(DType::kInt64)), DType::kInt64);
  EXPECT_EQ(result_type(zero_dim(DType::kInt32), 2.0), DType::kFloat32);
  EXPECT_EQ(result_type(zero_dim(DType::kFloat16), 2.0), DType::kFloat16);
}

TEST(ResultType, DimensionedTensorsPromoteEachOther) {
  EXPECT_EQ(result_type(dims(DType::kInt8), dims(DType::kUInt8)), DType::kInt16);
  EXPECT_EQ(result_type(dims(DType::kFloat16), dims(DType::kBFloat16)), DType::kFloat32);
  EXPECT_EQ(result_type(dims(DType::kInt64), dims(DType::kFloat16)), DType::kFloat16);
  EXPECT_EQ(result_type(dims(DType::kFloat32), dims(DType::kFloat64)), DType::kFloat64);
  EXPECT_EQ(result_type(dims(DType::kBool), dims(DType::kUInt8)), DType::kUInt8);
}

TEST(ResultType, EmptyTensorsHaveDims) {
  EXPECT_EQ(result_type(empty({0}, DType::kInt8), zero_dim(DType::kInt64)), DType::kInt8);
}

TEST(ResultType, OfNumbersAlone) {
  EXPECT_EQ(result_type(1, 2.0), DType::kFloat32);
  EXPECT_EQ(result_type(1, true), DType::kInt64);
  EXPECT_EQ(result_type(dims(DType::kInt16), zero_dim(DType::kInt64), 1.0), DType::kFloat32);
}

}  // namespace
}  // namespace tutti
