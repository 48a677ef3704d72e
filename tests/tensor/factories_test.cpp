// SPDX-License-Identifier: Apache-2.0
#include "tutti/tensor/factories.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/errors.hpp"
#include "tensor/raw.hpp"
#include "tensor/values.hpp"

namespace tutti {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::expect_error;
using tutti::testing::values_of;

TEST(Empty, HasTheAskedForShapeOnAlignedMemory) {
  const Tensor x = empty({2, 3}, DType::kFloat64);
  EXPECT_EQ(x.sizes(), (Dims{2, 3}));
  EXPECT_EQ(x.strides(), (Dims{3, 1}));
  EXPECT_EQ(x.storage_bytes(), 48U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.raw_data()) % 64, 0U);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(x.requires_grad());
  EXPECT_EQ(empty({}).numel(), 1);
  EXPECT_EQ(empty({4, 0, 2}).numel(), 0);
  EXPECT_EQ(empty({4, 0, 2}).strides(), (Dims{2, 2, 1}));
}

TEST(Empty, ImpossibleSizesAreErrors) {
  EXPECT_EQ(error_of<ShapeError>([] { empty({2, -1}); }), "empty: sizes can't be negative, given [2, -1]");
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { empty({large, large}); }), "exceeds 63 bits"));
  EXPECT_TRUE(
      contains(error_of<ShapeError>([&] { arange(large << 21U); }), "arange: 2305843009213693952 elements"));
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { empty({large, large >> 19}); }), "bytes"));
  EXPECT_EQ(empty({large, large, 0}).numel(), 0);
  EXPECT_TRUE(contains(error_of<MemoryError>([&] { empty({large, 65536}); }), "out of memory on cpu"));
}

TEST(Empty, ImpossibleSizesAreErrorsOfTheFunctionThatWasCalled) {
  const std::vector<std::pair<std::string, std::function<void()>>> calls = {
      {"zeros", [] { zeros({-1}); }},
      {"ones", [] { ones({-1}); }},
      {"full", [] { full({-1}, 2); }},
      {"eye", [] { eye(-2); }},
      {"eye", [] { eye(2, -2); }},
      {"rand", [] { rand({-1}); }},
      {"randn", [] { randn({-1}); }},
      {"randint", [] { randint(0, 2, {-1}); }},
      {"tensor", [] { tensor(std::vector<float>{1}, {-1}); }}};
  for (const auto& [name, call] : calls) {
    EXPECT_TRUE(error_of<ShapeError>(call).starts_with(name + ": sizes can't be negative, given [")) << name;
  }
}

TEST(EmptyStrided, TakesJustTheMemoryItNeeds) {
  const Tensor x = empty_strided({2, 3}, {1, 4}, DType::kFloat32);
  EXPECT_EQ(x.storage_bytes(), 40U);
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ(empty_strided({2, 0}, {1, 4}).storage_bytes(), 0U);
  expect_error<ShapeError>(
      [] {
        empty_strided({2, 3}, {1});
      },
      "empty_strided: sizes [2, 3] and strides [1] differ in length");
  expect_error<ShapeError>([] { empty_strided({2}, {-1}); },
                           "empty_strided: strides can't be negative, given [-1]");
}

// The place of the last element, or its address in bytes, is beyond 63 bits.
TEST(EmptyStrided, StridesThatLeadBeyondTheAddressSpaceAreErrors) {
  const std::int64_t far = std::int64_t{1} << 62;
  expect_error<ShapeError>(
      [&] { empty_strided({5}, {far}, DType::kUInt8); },
      "empty_strided: shape [5] with strides [4611686018427387904] reaches beyond 63 bits");
  expect_error<ShapeError>([&] { empty_strided({2, 2}, {far, far}, DType::kUInt8); }, "beyond 63 bits");
  expect_error<ShapeError>([&] { empty_strided({2}, {far / 2}, DType::kFloat32); },
                           "empty_strided: 2305843009213693953 elements of float32 exceed 63 bits of bytes");
  EXPECT_EQ(empty_strided({1, 3}, {INT64_MAX, 1}).storage_bytes(), 12U);
  EXPECT_EQ(empty_strided({0, 5}, {far, far}).storage_bytes(), 0U);
  EXPECT_EQ(empty_strided({0, 5}, {far, far}).unsqueeze(1).sizes(), (Dims{0, 1, 5}));
  float numbers[9] = {};
  expect_error<ShapeError>(
      [&] {
        from_blob(numbers, {3, 3}, DType::kFloat32, {far, far});
      },
      "from_blob: shape [3, 3] with strides");
  EXPECT_EQ(eye(0, INT64_MAX).sizes(), (Dims{0, INT64_MAX}));
}

TEST(Empty, WhatIsNoDTypeIsAnError) {
  expect_error<DTypeError>([] { empty({2}, static_cast<DType>(99)); }, "empty: 99 is no dtype");
  expect_error<DTypeError>([] { zeros({2}, static_cast<DType>(10)); }, "zeros: 10 is no dtype");
  expect_error<DTypeError>([] { ones({2}).to(static_cast<DType>(99)); }, "to: 99 is no dtype");
}

TEST(Filled, FactoriesHoldTheirValue) {
  EXPECT_EQ(values_of<float>(zeros({2, 2})), std::vector<float>(4, 0));
  EXPECT_EQ(values_of<float>(ones({3})), std::vector<float>(3, 1));
  EXPECT_EQ(values_of<double>(full({3}, 2.5, DType::kFloat64)), std::vector<double>(3, 2.5));
  EXPECT_EQ(zeros({0}).numel(), 0);
  EXPECT_EQ(ones({}).item<int>(), 1);
}

TEST(Arange, CountsAndDtypesAreTorchs) {
  EXPECT_EQ(values_of<std::int64_t>(arange(4)), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(values_of<std::int64_t>(arange(2, 9, 3)), (std::vector<std::int64_t>{2, 5, 8}));
  EXPECT_EQ(values_of<std::int64_t>(arange(5, 0, -2)), (std::vector<std::int64_t>{5, 3, 1}));
  EXPECT_EQ(values_of<float>(arange(0, 1, 0.25)), (std::vector<float>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(1.0).dtype(), DType::kFloat32);
  EXPECT_EQ(arange(3, 3).numel(), 0);
  EXPECT_EQ(arange(0, 3, 1, DType::kInt8).dtype(), DType::kInt8);
  EXPECT_EQ(arange(INT64_MIN, INT64_MAX, INT64_MAX).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
}

TEST(Arange, ImpossibleStepsAreErrors) {
  EXPECT_EQ(error_of<ValueError>([] { arange(0, 3, 0); }), "arange: the step must not be 0");
  EXPECT_EQ(error_of<ValueError>([] { arange(0, 3, -1); }), "arange: a step of -1 does not lead from 0 to 3");
  expect_error<ValueError>([] { arange(3, 0); }, "arange: a step of 1 does not lead from 3 to 0");
  expect_error<ValueError>([] { arange(std::nan("")); },
                           "arange: start, end and step must be finite, given 0, nan, 1");
  expect_error<ValueError>([] { arange(INFINITY); },
                           "arange: start, end and step must be finite, given 0, inf, 1");
  expect_error<ValueError>([] { arange(0, 1e300, 1e-10); },
                           "arange: 0 to 1e+300 by 1e-10 are too many elements");
  expect_error<DTypeError>([] { arange(0, 2, 1, DType::kBool); }, "arange: no sequence of bool");
}

TEST(Arange, NumbersBeyondInt64AreErrors) {
  expect_error<ValueError>([] { arange(UINT64_MAX - 2, UINT64_MAX, 1); },
                           "arange: int64 can't hold the value 18446744073709551613");
}

TEST(Arange, ValuesThatTheDtypeCannotHoldAreErrors) {
  expect_error<ValueError>([] { arange(0, 129, 1, DType::kInt8); }, "arange: int8 can't hold the value 128");
  expect_error<ValueError>([] { arange(-1, 3, 1, DType::kUInt8); }, "arange: uint8 can't hold the value -1");
  expect_error<ValueError>([] { arange(3, -2, -1, DType::kUInt8); }, "arange: uint8 can't hold the value -1");
  expect_error<ValueError>([] { arange(0, 100000, 20000, DType::kInt16); },
                           "arange: int16 can't hold the value 80000");
  expect_error<ValueError>([] { arange(std::int64_t{1} << 31U, std::int64_t{1} << 32U, 1, DType::kInt32); },
                           "arange: int32 can't hold the value 2147483648");
  // Refused before memory for the values is asked for.
  expect_error<ValueError>([] { arange(0, std::int64_t{1} << 60U, 1, DType::kInt8); },
                           "arange: int8 can't hold the value 1152921504606846975");
  // Floating numbers are cut off, as in a copy: 0, 1, 2, ...
  expect_error<ValueError>([] { arange(0.0, 260.0, 1.0, DType::kUInt8); },
                           "arange: uint8 can't hold the value 259");
  expect_error<ValueError>([] { arange(0x1p63, 0x1p64, 0x1p62, DType::kInt64); },
                           "arange: int64 can't hold the value 9223372036854775808");
  expect_error<ValueError>([] { arange(0x1p62, 0x1p64, 0x1p62, DType::kInt64); },
                           "arange: int64 can't hold the value 13835058055282163712");

  EXPECT_EQ(arange(-128, 128, 255, DType::kInt8).to_vector<std::int8_t>(),
            (std::vector<std::int8_t>{-128, 127}));
  EXPECT_EQ(arange(255, -1, -255, DType::kUInt8).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{255, 0}));
  EXPECT_EQ(arange(300, 300, 1, DType::kInt8).numel(), 0);
  // The end is no value.
  EXPECT_EQ(arange(0, 1000, 500, DType::kInt16).to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{0, 500}));
}

TEST(Linspace, ReachesBothEndsExactly) {
  const std::vector<double> values = linspace(-1, 0.1, 7, DType::kFloat64).to_vector<double>();
  ASSERT_EQ(values.size(), 7U);
  EXPECT_EQ(values.front(), -1);
  EXPECT_EQ(values.back(), 0.1);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_NEAR(values[i], -1 + 1.1 * static_cast<double>(i) / 6, 1e-15);
  EXPECT_EQ(linspace(3, 9, 1).to_vector<float>(), std::vector<float>{3});
  EXPECT_EQ(linspace(3, 9, 0).numel(), 0);
  EXPECT_EQ(linspace(0, 10, 3, DType::kInt32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 5, 10}));
  expect_error<ValueError>([] { linspace(0, 1, -1); }, "linspace: steps can't be negative, given -1");
}

TEST(Eye, HasOnesOnTheDiagonal) {
  EXPECT_EQ(values_of<float>(eye(2)), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(values_of<float>(eye(2, 3)), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(values_of<float>(eye(3, 2)), (std::vector<float>{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(eye(0).sizes(), (Dims{0, 0}));
  EXPECT_EQ(eye(2, 0).numel(), 0);
}

TEST(Like, KeepsDtypeAndLayout) {
  const Tensor images =
      empty_strided({2, 3, 4, 5}, raw::channels_last_strides({2, 3, 4, 5}), DType::kFloat64);
  for (const Tensor& x : {empty_like(images), zeros_like(images), ones_like(images), full_like(images, 2),
                          rand_like(images), randn_like(images)}) {
    EXPECT_EQ(x.dtype(), DType::kFloat64);
    EXPECT_EQ(x.sizes(), images.sizes());
    EXPECT_EQ(x.strides(), images.strides());
    EXPECT_FALSE(x.shares_storage(images));
  }
  EXPECT_EQ(full_like(images, 2).to_vector<int64_t>(), std::vector<int64_t>(120, 2));
}

TEST(ScalarTensor, TakesTheNumbersKind) {
  EXPECT_EQ(scalar_tensor(1.5).dtype(), DType::kFloat32);
  EXPECT_EQ(scalar_tensor(1).dtype(), DType::kInt64);
  EXPECT_EQ(scalar_tensor(true).dtype(), DType::kBool);
  EXPECT_EQ(scalar_tensor(1.5).dim(), 0);
  EXPECT_EQ(scalar_tensor(1.5, DType::kFloat64).item(), 1.5);
}

TEST(FromNumbers, CopiesThem) {
  EXPECT_EQ(values_of<float>(tensor({1, 2.5})), (std::vector<float>{1, 2.5}));
  EXPECT_EQ(tensor({}).sizes(), Dims{0});
  EXPECT_EQ(tensor({1, 2}, DType::kInt16).dtype(), DType::kInt16);
  std::vector<double> numbers = {1, 2, 3, 4, 5, 6};
  const Tensor x = tensor(numbers, {2, 3});
  numbers[0] = 9;
  EXPECT_EQ(x.dtype(), DType::kFloat64);
  EXPECT_EQ(x.sizes(), (Dims{2, 3}));
  EXPECT_EQ(values_of<double>(x), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const std::vector<bool> flags = {true, false, true};
  EXPECT_EQ(tensor(flags).dtype(), DType::kBool);
  EXPECT_EQ(tensor(flags).to_vector<bool>(), flags);
  EXPECT_EQ(error_of<ShapeError>([&] { tensor(numbers, {4}); }),
            "tensor: shape [4] wants 4 elements, the vector has 6");
}

TEST(FromBlob, WrapsMemoryAndReleasesItWithTheLastView) {
  float numbers[6] = {0, 1, 2, 3, 4, 5};
  int releases = 0;
  Tensor part;
  {
    const Tensor x = from_blob(numbers, {2, 3}, DType::kFloat32, {}, {}, [&] { ++releases; });
    EXPECT_EQ(x.data<float>(), numbers);
    part = raw::select(x, 1, 0);
    EXPECT_EQ(values_of<float>(part), (std::vector<float>{0, 3}));
  }
  EXPECT_EQ(releases, 0);
  part = Tensor();
  EXPECT_EQ(releases, 1);
}

TEST(FromBlob, RefusedMemoryIsReleased) {
  float numbers[2] = {1, 2};
  int releases = 0;
  expect_error<ShapeError>([&] { from_blob(numbers, {2}, DType::kFloat32, {-1}, {}, [&] { ++releases; }); },
                           "from_blob: strides can't be negative, given [-1]");
  EXPECT_EQ(releases, 1);
}

TEST(FromBlob, TakesStrides) {
  float numbers[6] = {0, 1, 2, 3, 4, 5};
  const Tensor x = from_blob(numbers, {3, 2}, DType::kFloat32, {1, 3});
  EXPECT_EQ(values_of<float>(x), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.storage_bytes(), 24U);
  expect_error<ShapeError>(
      [&] {
        from_blob(numbers, {3, 2}, DType::kFloat32, {1});
      },
      "from_blob: sizes [3, 2] and strides [1] differ in length");
  expect_error<ShapeError>([&] { from_blob(numbers, {3}, DType::kFloat32, {-1}); },
                           "from_blob: strides can't be negative, given [-1]");
  expect_error<ValueError>([] { from_blob(nullptr, {3}, DType::kFloat32); },
                           "from_blob: the memory of shape [3] is null");
  EXPECT_EQ(from_blob(nullptr, {0}, DType::kFloat32).numel(), 0);
}

}  // namespace
}  // namespace tutti
