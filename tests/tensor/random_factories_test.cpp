// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "support/errors.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/threads.hpp"

namespace tutti {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::expect_error;

TEST(Random, SameSeedGivesSameNumbers) {
  manual_seed(7);
  const std::vector<float> first = randn({1000}).to_vector<float>();
  manual_seed(7);
  EXPECT_EQ(randn({1000}).to_vector<float>(), first);
  EXPECT_NE(randn({1000}).to_vector<float>(), first);
  manual_seed(8);
  EXPECT_NE(randn({1000}).to_vector<float>(), first);
}

TEST(Random, NumbersDoNotDependOnThreadsOrLayout) {
  const auto numbers = [] {
    Generator generator(3);
    return rand({100, 1000}, DType::kFloat32, {}, &generator).to_vector<float>();
  };
  set_num_threads(1);
  const std::vector<float> expected = numbers();
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_EQ(numbers(), expected) << threads;
  }
  set_num_threads(1);
  Generator generator(3);
  const Tensor columns = raw::transpose(empty({1000, 100}), 0, 1);
  EXPECT_EQ(rand_like(columns, &generator).to_vector<float>(), expected);
}

// What one tensor has drawn the next one does not draw again.
TEST(Random, SequencesDoNotOverlap) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    Generator joined(5);
    Generator split(5);
    const std::vector<double> all = rand({40}, dtype, {}, &joined).to_vector<double>();
    std::vector<double> parts = rand({16}, dtype, {}, &split).to_vector<double>();
    const std::vector<double> rest = rand({24}, dtype, {}, &split).to_vector<double>();
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, all) << name(dtype);
    EXPECT_EQ(joined.state().offset, split.state().offset);
  }
}

TEST(Rand, IsUniform) {
  Generator generator(1);
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const std::vector<double> values = rand({100000}, dtype, {}, &generator).to_vector<double>();
    double sum = 0;
    double squares = 0;
    for (const double value : values) {
      ASSERT_GE(value, 0);
      ASSERT_LT(value, 1);
      sum += value;
      squares += value * value;
    }
    // Five standard errors: 1 / sqrt(12 n) and 0.298 / sqrt(n); half-precision lattices are off by half a
    // step.
    const double step = dtype == DType::kBFloat16 ? 0x1p-8 : dtype == DType::kFloat16 ? 0x1p-11 : 0;
    EXPECT_NEAR(sum / 1e5, 0.5 - step / 2, 0.0046) << name(dtype);
    EXPECT_NEAR(squares / 1e5, 1.0 / 3 - step / 2, 0.0048) << name(dtype);
  }
}

TEST(Randn, IsNormal) {
  Generator generator(2);
  const std::vector<double> values = randn({100000}, DType::kFloat32, {}, &generator).to_vector<double>();
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.016);
  EXPECT_NEAR(squares / 1e5, 1, 0.023);
  EXPECT_NEAR(fourth / 1e5, 3, 0.16);
}

TEST(Randint, CoversItsRangeAndNoMore) {
  Generator generator(3);
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8}) {
    const Tensor x = randint(3, 8, {1000}, dtype, {}, &generator);
    EXPECT_EQ(x.dtype(), dtype);
    const std::vector<int> values = x.to_vector<int>();
    EXPECT_EQ(*std::min_element(values.begin(), values.end()), 3) << name(dtype);
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), 7) << name(dtype);
  }
  EXPECT_EQ(error_of<ValueError>([] { randint(3, 3, {2}); }),
            "randint: wanted low below high, given 3 and 3");
  expect_error<ValueError>([] { randint(0, 300, {2}, DType::kUInt8); },
                           "randint: uint8 can't hold all of [0, 300)");
  expect_error<ValueError>([] { randint_like(zeros({2}, DType::kInt8), -129, 0); },
                           "randint_like: int8 can't hold all of [-129, 0)");
}

TEST(Randint, LikeAnotherTensorTakesItsSizesAndDtype) {
  Generator one(3), other(3);
  const Tensor x = randint_like(zeros({4, 5}, DType::kInt16), -2, 9, &one);
  EXPECT_EQ(x.dtype(), DType::kInt16);
  EXPECT_EQ(x.sizes(), (Dims{4, 5}));
  EXPECT_EQ(x.to_vector<int>(), randint(-2, 9, {4, 5}, DType::kInt16, {}, &other).to_vector<int>());
  EXPECT_TRUE(
      contains(error_of<ValueError>([] { randint_like(zeros({2}), 5, 5); }), "wanted low below high"));
}

TEST(Randperm, IsAPermutation) {
  Generator generator(4);
  std::vector<std::int64_t> values = randperm(500, {}, &generator).to_vector<std::int64_t>();
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  std::vector<std::int64_t> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(randperm(0).numel(), 0);
  EXPECT_EQ(randperm(1).item<int>(), 0);
  expect_error<ValueError>([] { randperm(-1); }, "randperm: the count can't be negative, given -1");
}

// All six orders of three, each about a sixth of the time.
TEST(Randperm, OrdersAreEquallyLikely) {
  Generator generator(5);
  std::vector<int> counts(27, 0);
  for (int i = 0; i < 6000; ++i) {
    const std::vector<std::int64_t> p = randperm(3, {}, &generator).to_vector<std::int64_t>();
    ++counts[static_cast<std::size_t>(p[0] * 9 + p[1] * 3 + p[2])];
  }
  for (const int count : counts) {
    if (count > 0) {
      EXPECT_NEAR(count, 1000, 150);  // five standard deviations
    }
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 21);
}

TEST(Random, WrongDtypeIsNamed) {
  EXPECT_EQ(error_of<DTypeError>([] { rand({2}, DType::kInt64); }),
            "rand: wanted a floating-point dtype, given int64");
  EXPECT_TRUE(contains(error_of<DTypeError>([] { randn({2}, DType::kBool); }), "given bool"));
}

TEST(Random, EmptyAndZeroDimTensors) {
  EXPECT_EQ(rand({0, 4}).numel(), 0);
  EXPECT_EQ(randn({}).dim(), 0);
}

}  // namespace
}  // namespace tutti
