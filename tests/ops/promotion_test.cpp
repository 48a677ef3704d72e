// SPDX-License-Identifier: Apache-2.0
// Dtypes of ops' results. Expected ones are torch's (torch.promote_types and the ops' own rules).
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

constexpr DType kF64 = DType::kFloat64, kF32 = DType::kFloat32, kF16 = DType::kFloat16,
                kBF16 = DType::kBFloat16;
constexpr DType kI64 = DType::kInt64, kI32 = DType::kInt32, kI16 = DType::kInt16, kI8 = DType::kInt8;
constexpr DType kU8 = DType::kUInt8, kBool = DType::kBool;

const std::vector<DType> kOrder = {kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64};

// torch.promote_types, row by row in kOrder.
const std::vector<std::vector<DType>> kPromoted = {
    {kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64},
    {kU8, kU8, kI16, kI16, kI32, kI64, kF16, kBF16, kF32, kF64},
    {kI8, kI16, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64},
    {kI16, kI16, kI16, kI16, kI32, kI64, kF16, kBF16, kF32, kF64},
    {kI32, kI32, kI32, kI32, kI32, kI64, kF16, kBF16, kF32, kF64},
    {kI64, kI64, kI64, kI64, kI64, kI64, kF16, kBF16, kF32, kF64},
    {kF16, kF16, kF16, kF16, kF16, kF16, kF16, kF32, kF32, kF64},
    {kBF16, kBF16, kBF16, kBF16, kBF16, kBF16, kF32, kBF16, kF32, kF64},
    {kF32, kF32, kF32, kF32, kF32, kF32, kF32, kF32, kF32, kF64},
    {kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64}};

TEST(OpDTypes, TwoTensorsPromoteEachOther) {
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    for (std::size_t j = 0; j < kOrder.size(); ++j) {
      const Tensor a = ones({2}, kOrder[i]), b = ones({2}, kOrder[j]);
      const DType wanted = kPromoted[i][j];
      const std::string what = concat(kOrder[i], " with ", kOrder[j]);
      EXPECT_EQ(add(a, b).dtype(), wanted) << what;
      EXPECT_EQ(mul(a, b).dtype(), wanted) << what;
      EXPECT_EQ(where(ones({2}, kBool), a, b).dtype(), wanted) << what;
      EXPECT_EQ(cat({a, b}).dtype(), wanted) << what;
      EXPECT_EQ(eq(a, b).dtype(), kBool) << what;
      EXPECT_EQ(div(a, b).dtype(), is_floating_point(wanted) ? wanted : kF32) << what;
      EXPECT_EQ(eq(add(a, b), (i == 0 && j == 0) ? 1 : 2).sum().item<std::int64_t>(), 2) << what << ": 1 + 1";
    }
  }
}

TEST(OpDTypes, NumbersRaiseTheKindOnly) {
  EXPECT_EQ((ones({2}, kI32) + 1).dtype(), kI32);
  EXPECT_EQ((ones({2}, kI32) + 1.5).dtype(), kF32);
  EXPECT_EQ((ones({2}, kF16) * 3.0).dtype(), kF16);
  EXPECT_EQ((ones({2}, kBool) + 1).dtype(), kI64);
  EXPECT_EQ((ones({2}, kU8) * 2).dtype(), kU8);
  EXPECT_EQ((ones({2}, kI64) / 2).dtype(), kF32);
  EXPECT_EQ((1.0 - ones({2}, kBF16)).dtype(), kBF16);
  EXPECT_EQ(pow(ones({2}, kI32), 2).dtype(), kI32);
  EXPECT_EQ(pow(ones({2}, kI32), 2.0).dtype(), kF32);
  EXPECT_EQ((ones({2}, kF32) + full({}, 2, kF64)).dtype(), kF32) << "a 0-dim tensor counts like a number";
  EXPECT_EQ((ones({2}, kI32) * full({}, 0.5, kF64)).dtype(), kF64);
}

TEST(OpDTypes, NumbersAtTheEndsOfTheRangeAreExact) {
  const auto true_everywhere = [](const Tensor& mask) {
    return mask.sum().item<std::int64_t>() == mask.numel();
  };
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(true_everywhere(full({2}, -128, kI8) == -128));
  EXPECT_TRUE(true_everywhere(full({2}, 127, kI8) <= 127));
  EXPECT_TRUE(true_everywhere(full({2}, 255, kU8) == 255));
  EXPECT_TRUE(true_everywhere(full({2}, greatest - 1, kI64) < greatest));
  EXPECT_TRUE(true_everywhere(full({2}, least + 1, kI64) > least));
  EXPECT_EQ((full({1}, 5, kI64) - least).item<std::int64_t>(), least + 5) << "wraps around";
  EXPECT_EQ((least - full({1}, 5, kI64)).item<std::int64_t>(), greatest - 4) << "wraps around";
  EXPECT_EQ((full({1}, 5, kI64).sub_(least)).item<std::int64_t>(), least + 5) << "wraps around";
  EXPECT_EQ((full({1}, 5, kI8) - -128).item<std::int64_t>(), -123) << "wraps around";
  EXPECT_EQ(pow(full({1}, -1, kI64), greatest).item<std::int64_t>(), -1);
  EXPECT_EQ(full({1}, -1, kI64).pow_(greatest).item<std::int64_t>(), -1);
}

TEST(OpDTypes, NegativeNumbersWrapAroundInArithmeticOfUInt8) {
  const Tensor five = full({1}, 5, kU8);
  EXPECT_EQ((five + -1).item<std::int64_t>(), 4);
  EXPECT_EQ((five - -1).item<std::int64_t>(), 6);
  EXPECT_EQ((-1 - five).item<std::int64_t>(), 250);
  EXPECT_EQ((five * -1).item<std::int64_t>(), 251);
  EXPECT_EQ((five + -255).item<std::int64_t>(), 6);
  EXPECT_EQ(add(five, five, -1).item<std::int64_t>(), 0);
  EXPECT_EQ((five / -1).item<double>(), -5) << "a division is floating";
}

TEST(OpDTypes, FunctionsOfIntegersAreFloat32) {
  for (const DType dtype : {kBool, kU8, kI8, kI16, kI32, kI64}) {
    const Tensor x = ones({2}, dtype);
    for (const Tensor& y : {exp(x), log(x), sqrt(x), tanh(x), sigmoid(x)})
      EXPECT_EQ(y.dtype(), kF32) << name(dtype);
    EXPECT_EQ(sum(x).dtype(), kI64) << name(dtype);
    EXPECT_EQ(amax(x).dtype(), dtype);
    EXPECT_EQ(argmax(x).dtype(), kI64) << name(dtype);
  }
  for (const DType dtype : {kF16, kBF16, kF32, kF64}) {
    const Tensor x = ones({2}, dtype);
    for (const Tensor& y :
         {exp(x), log(x), sqrt(x), tanh(x), sigmoid(x), gelu(x), sum(x), mean(x), softmax(x, 0)})
      EXPECT_EQ(y.dtype(), dtype);
  }
}

TEST(OpDTypes, GradientHasItsInputsDType) {
  Tensor narrow = ones({2, 1}, kBF16).requires_grad_(), wide = ones({3}, kF64).requires_grad_();
  (narrow * wide).sum().backward();
  EXPECT_EQ(narrow.grad().dtype(), kBF16);
  EXPECT_EQ(narrow.grad().to_vector<double>(), (std::vector<double>{3, 3}));
  EXPECT_EQ(wide.grad().dtype(), kF64);
  EXPECT_EQ(wide.grad().to_vector<double>(), (std::vector<double>{2, 2, 2}));
}

}  // namespace
}  // namespace tutti
