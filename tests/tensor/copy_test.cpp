// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/errors.hpp"
#include "tensor/raw.hpp"
#include "tensor/values.hpp"

namespace tutti {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::expect_error;
using tutti::testing::sequence;
using tutti::testing::values_of;

constexpr DType kAll[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                          DType::kInt32,   DType::kInt16,   DType::kInt8,    DType::kUInt8,    DType::kBool};

Tensor numbered(const Dims& sizes, DType dtype = DType::kFloat32) {
  return raw::view(arange(0, sizes.product(), 1, dtype), sizes);
}

TEST(Copy, ConvertsBetweenAllPairsOfDtypes) {
  // Exact in every dtype but bool.
  const std::vector<double> numbers = {0, 1, 2, 3, 5, 64, 100, 127};
  for (const DType from : kAll) {
    const Tensor source = empty({8}, from);
    raw::copy(source, tensor(numbers));
    for (const DType to : kAll) {
      const Tensor result = raw::to_dtype(source, to);
      ASSERT_EQ(result.dtype(), to);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const bool through_bool = from == DType::kBool || to == DType::kBool;
        const double expected = through_bool && numbers[i] != 0 ? 1 : numbers[i];
        EXPECT_EQ(raw::select(result, 0, static_cast<std::int64_t>(i)).item(), expected)
            << name(from) << " to " << name(to);
      }
    }
  }
}

TEST(Copy, TruncatesTowardsZeroAndRoundsHalvesToEven) {
  const Tensor x = tensor(std::vector<double>{-1.9, -0.5, 0.5, 1.9});
  EXPECT_EQ(raw::to_dtype(x, DType::kInt32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{-1, 0, 0, 1}));
  EXPECT_EQ(raw::to_dtype(x, DType::kBool).to_vector<bool>(), (std::vector<bool>{true, true, true, true}));
  // 2049 and 2051 lie halfway between neighbours in binary16.
  const Tensor y = tensor(std::vector<float>{2049, 2051, 70000});
  EXPECT_EQ(raw::to_dtype(y, DType::kFloat16).to_vector<float>(),
            (std::vector<float>{2048, 2052, std::numeric_limits<float>::infinity()}));
}

TEST(Copy, BroadcastsTheSource) {
  const Tensor out = empty({2, 3});
  raw::copy(out, tensor({1, 2, 3}));
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{1, 2, 3, 1, 2, 3}));
  raw::copy(out, numbered({2, 1}));
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{0, 0, 0, 1, 1, 1}));
  raw::copy(out, scalar_tensor(7));
  EXPECT_EQ(values_of<float>(out), std::vector<float>(6, 7));
}

TEST(Copy, MisfitNamesBothShapes) {
  EXPECT_EQ(error_of<ShapeError>([] {
              raw::copy(empty({2, 3}), empty({2}));
            }),
            "copy: shape [2] does not broadcast to [2, 3]");
  expect_error<ShapeError>(
      [] {
        raw::copy(empty({3}), empty({1, 3}));
      },
      "copy: shape [1, 3] does not broadcast to [3]");
  expect_error<ShapeError>([] { raw::copy(empty({1}), empty({3})); },
                           "copy: shape [3] does not broadcast to [1]");
}

TEST(Copy, ReadsAndWritesAnyStrides) {
  const Tensor x = raw::transpose(numbered({3, 4}), 0, 1);
  const Tensor out = raw::slice(full({4, 6}, -1), 1, 0, 6, 2);
  raw::copy(out, x);
  EXPECT_EQ(values_of<float>(out), values_of<float>(x));
}

TEST(Copy, OfEmptyTensorsDoesNothing) {
  raw::copy(empty({0, 3}), empty({0, 3}));
  raw::copy(empty({0, 3}), empty({1, 3}));
  raw::copy(empty({2, 0}), scalar_tensor(1));
  EXPECT_EQ(raw::clone(empty({0})).numel(), 0);
}

TEST(Copy, IntoAnExpandedViewIsAnError) {
  const Tensor x = raw::expand(zeros({1, 3}), {2, 3});
  EXPECT_TRUE(contains(error_of<ShapeError>([&] {
                         raw::copy(x, ones({2, 3}));
                       }),
                       "elements of the tensor to be written share memory (shape [2, 3], strides [0, 1]"));
}

TEST(Copy, BetweenShiftedViewsIsAnError) {
  const Tensor x = numbered({10});
  EXPECT_TRUE(contains(
      error_of<ShapeError>([&] { raw::copy(raw::slice(x, 0, 1, 10, 1), raw::slice(x, 0, 0, 9, 1)); }),
      "source and destination overlap in memory (shapes [9] and [9] at offsets 0 and 1)"));
  const Tensor square = numbered({3, 3});
  expect_error<ShapeError>([&] { raw::copy(square, raw::transpose(square, 0, 1)); },
                           "copy: source and destination overlap in memory");
}

TEST(Copy, BetweenInterleavedOrSeparateViewsOfOneStorageWorks) {
  const Tensor x = numbered({8});
  raw::copy(raw::slice(x, 0, 0, 8, 2), raw::slice(x, 0, 1, 8, 2));
  EXPECT_EQ(values_of<float>(x), (std::vector<float>{1, 1, 3, 3, 5, 5, 7, 7}));
  raw::copy(raw::slice(x, 0, 0, 4, 1), raw::slice(x, 0, 4, 8, 1));
  EXPECT_EQ(values_of<float>(x), (std::vector<float>{5, 5, 7, 7, 5, 5, 7, 7}));
  raw::copy(x, x);
  raw::copy(x, raw::alias(x));
  EXPECT_EQ(values_of<float>(x), (std::vector<float>{5, 5, 7, 7, 5, 5, 7, 7}));
}

TEST(Copy, DoesNotCountAVersion) {
  const Tensor x = zeros({2});
  raw::copy(x, ones({2}));
  raw::fill(x, 3);
  EXPECT_EQ(x.version(), 0U);
}

TEST(Fill, WritesEveryDtype) {
  for (const DType dtype : kAll) {
    const Tensor x = full({3, 5}, 1, dtype);
    EXPECT_EQ(x.to_vector<double>(), std::vector<double>(15, 1)) << name(dtype);
  }
  EXPECT_EQ(full({2}, 0.5, DType::kBool).to_vector<bool>(), (std::vector<bool>{true, true}));
  EXPECT_EQ(full({2}, -7, DType::kFloat16).to_vector<float>(), (std::vector<float>{-7, -7}));
}

TEST(Conversion, DoubleBecomesTheNearestHalf) {
  const double above = 1 + 0x1p-11 + 0x1p-40;  // the border's float neighbour would be the border itself
  EXPECT_EQ(full({1}, above, DType::kFloat64).to(DType::kFloat16).item<double>(), 1 + 0x1p-10);
  EXPECT_EQ(full({40}, above, DType::kFloat64).to(DType::kFloat16).to_vector<double>(),
            std::vector<double>(40, 1 + 0x1p-10));
  EXPECT_EQ(full({1}, above, DType::kFloat16).item<double>(), 1 + 0x1p-10);
  EXPECT_EQ(tensor({1 + 0x1p-8 + 0x1p-40}, DType::kBFloat16).item<double>(), 1 + 0x1p-7);
}

TEST(Fill, TouchesTheViewOnly) {
  const Tensor x = zeros({3, 4});
  raw::fill(raw::slice(x, 1, 1, 4, 2), 5);
  EXPECT_EQ(values_of<float>(x), (std::vector<float>{0, 5, 0, 5, 0, 5, 0, 5, 0, 5, 0, 5}));
  raw::fill(raw::expand(x, {2, 3, 4}), 6);
  EXPECT_EQ(values_of<float>(x), std::vector<float>(12, 6));
}

TEST(Fill, ValueThatAnIntegerDtypeCannotHoldIsAnError) {
  EXPECT_EQ(error_of<ValueError>([] { full({1}, 256, DType::kUInt8); }),
            "full: uint8 can't hold the value 256");
  EXPECT_EQ(error_of<ValueError>([] { full({1}, -1, DType::kUInt8); }),
            "full: uint8 can't hold the value -1");
  expect_error<ValueError>([] { full({1}, std::nan(""), DType::kInt32); },
                           "full: int32 can't hold the value nan");
  expect_error<ValueError>([] { full({1}, 0x1p63, DType::kInt64); },
                           "full: int64 can't hold the value 9223372036854775808");
  expect_error<ValueError>([] { full({1}, 128.5, DType::kInt8); }, "full: int8 can't hold the value 128.5");
  expect_error<ValueError>([] { full({1}, UINT64_MAX, DType::kInt64); },
                           "full: int64 can't hold the value 18446744073709551615");
  expect_error<ValueError>([] { full_like(zeros({1}, DType::kInt8), 300); },
                           "full_like: int8 can't hold the value 300");
  expect_error<ValueError>([] { scalar_tensor(300, DType::kInt8); }, "scalar_tensor: int8 can't hold");
  expect_error<ValueError>([] { zeros({1}, DType::kInt8).fill_(300); }, "fill_: int8 can't hold");
  EXPECT_EQ(full({1}, -128.9, DType::kInt8).item<int>(), -128);
  EXPECT_EQ(full({1}, -0x1p63, DType::kInt64).item<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(full({1}, INT64_MAX, DType::kInt64).item<std::int64_t>(), INT64_MAX);
}

TEST(Contiguous, CopiesOnlyIfNeeded) {
  const Tensor x = numbered({2, 3, 4, 5});
  EXPECT_TRUE(raw::contiguous(x).is_same(x));
  const Tensor last = raw::contiguous(x, MemoryFormat::kChannelsLast);
  EXPECT_EQ(last.strides(), (Dims{60, 1, 15, 3}));
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_EQ(values_of<float>(last), values_of<float>(x));
  EXPECT_TRUE(raw::contiguous(last, MemoryFormat::kChannelsLast).is_same(last));
  EXPECT_EQ(values_of<float>(raw::contiguous(last)), values_of<float>(x));
  expect_error<ShapeError>(
      [] {
        raw::contiguous(empty({2, 3}), MemoryFormat::kChannelsLast);
      },
      "channels-last is an order of [N, C, H, W], given shape [2, 3]");
}

TEST(Clone, KeepsTheLayoutOfDenseTensors) {
  const Tensor last = raw::contiguous(numbered({2, 3, 4, 5}), MemoryFormat::kChannelsLast);
  const Tensor copy = raw::clone(last);
  EXPECT_FALSE(copy.shares_storage(last));
  EXPECT_EQ(copy.strides(), last.strides());
  EXPECT_EQ(values_of<float>(copy), values_of<float>(last));
  const Tensor expanded = raw::clone(raw::expand(numbered({3, 1}), {3, 2}));
  EXPECT_TRUE(raw::is_dense(expanded));
  EXPECT_EQ(values_of<float>(expanded), (std::vector<float>{0, 0, 1, 1, 2, 2}));
}

TEST(SumToSize, UndoesABroadcast) {
  const Tensor x = numbered({2, 3, 4}, DType::kFloat64);
  EXPECT_TRUE(raw::sum_to_size(x, {2, 3, 4}).is_same(x));
  const Tensor columns = raw::sum_to_size(x, {4});
  EXPECT_EQ(columns.sizes(), Dims{4});
  for (int c = 0; c < 4; ++c) EXPECT_EQ(values_of<double>(columns)[static_cast<std::size_t>(c)], 60 + 6 * c);
  const Tensor middle = raw::sum_to_size(x, {1, 3, 1});
  EXPECT_EQ(middle.sizes(), (Dims{1, 3, 1}));
  for (int r = 0; r < 3; ++r) EXPECT_EQ(values_of<double>(middle)[static_cast<std::size_t>(r)], 60 + 32 * r);
  EXPECT_EQ(raw::sum_to_size(x, {}).item(), 276);
  EXPECT_EQ(raw::sum_to_size(empty({0, 3}), {3}).to_vector<float>(), std::vector<float>(3, 0));
  EXPECT_EQ(error_of<ShapeError>([&] {
              raw::sum_to_size(x, {2, 4});
            }),
            "sum_to_size: shape [2, 3, 4] is not a broadcast of [2, 4]");
  expect_error<ShapeError>([&] { raw::sum_to_size(x, {1, 2, 3, 4}); }, "has fewer dims than [1, 2, 3, 4]");
}

TEST(CViews, HoldWhatKernelsRead) {
  const Tensor x = raw::slice(numbered({4, 6}, DType::kInt16), 1, 1, 6, 2);
  const tutti_view view = raw::view_of(x);
  EXPECT_EQ(view.data, x.raw_data());
  EXPECT_EQ(view.dtype, TUTTI_I16);
  ASSERT_EQ(view.ndim, 2);
  EXPECT_EQ(view.sizes[1], 3);
  EXPECT_EQ(view.strides[0], 6);
  EXPECT_EQ(view.strides[1], 2);
  tutti_view broadcast;
  raw::fill_view_broadcast(broadcast, raw::slice(x, 0, 0, 1, 1), {5, 4, 3});
  ASSERT_EQ(broadcast.ndim, 3);
  EXPECT_EQ(broadcast.sizes[0], 5);
  EXPECT_EQ(broadcast.strides[0], 0);
  EXPECT_EQ(broadcast.strides[1], 0);
  EXPECT_EQ(broadcast.strides[2], 2);
}

}  // namespace
}  // namespace tutti
