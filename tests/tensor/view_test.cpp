// SPDX-License-Identifier: Apache-2.0
// Views by PyTorch's rules.
#include <gtest/gtest.h>

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
using Values = std::vector<std::int64_t>;

// 0, 1, 2, ... in row-major order.
Tensor numbered(const Dims& sizes) { return raw::view(arange(sizes.product()), sizes); }

TEST(View, SharesMemoryAndVersion) {
  const Tensor x = numbered({2, 3});
  const Tensor y = raw::view(x, {3, 2});
  EXPECT_TRUE(x.shares_storage(y));
  EXPECT_FALSE(x.is_same(y));
  EXPECT_TRUE(y.impl()->is_view);
  y.data<std::int64_t>()[5] = 50;
  EXPECT_EQ(values_of<std::int64_t>(x).back(), 50);
  raw::bump_version(y);
  EXPECT_EQ(x.version(), 1U);
  EXPECT_EQ(y.version(), 1U);
}

TEST(View, OutlivesItsBase) {
  Tensor part;
  {
    const Tensor x = numbered({100, 100});
    part = raw::select(x, 0, 99);
  }
  EXPECT_EQ(values_of<std::int64_t>(part), sequence<std::int64_t>(9900, 1, 100));
}

TEST(View, OfATransposeNeedsACopy) {
  const Tensor x = raw::transpose(numbered({2, 3}), 0, 1);
  EXPECT_FALSE(raw::can_view(x, {6}));
  EXPECT_EQ(
      error_of<ShapeError>([&] { raw::view(x, {6}); }),
      "view: shape [3, 2] with strides [1, 3] can't be seen as [6] without a copy; reshape() makes one");
  EXPECT_TRUE(raw::can_view(x, {3, 1, 2}));
  EXPECT_EQ(values_of<std::int64_t>(raw::view(x, {3, 1, 2})), (Values{0, 3, 1, 4, 2, 5}));
}

TEST(View, OfEmptyAndZeroDimTensors) {
  EXPECT_EQ(raw::view(empty({0, 3}), {3, 0, 7}).sizes(), (Dims{3, 0, 7}));
  EXPECT_EQ(raw::view(empty({0, 3}), {-1, 3}).sizes(), (Dims{0, 3}));
  const Tensor scalar = scalar_tensor(7);
  EXPECT_EQ(raw::view(scalar, {1, 1}).sizes(), (Dims{1, 1}));
  EXPECT_EQ(raw::view(raw::view(scalar, {1}), {}).item<int>(), 7);
}

TEST(Select, DropsTheDim) {
  const Tensor x = numbered({2, 3, 4});
  EXPECT_EQ(values_of<std::int64_t>(raw::select(x, 1, 2)), (Values{8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(values_of<std::int64_t>(raw::select(x, -1, -1)), sequence<std::int64_t>(3, 4, 6));
  EXPECT_EQ(raw::select(x, 1, 2).storage_offset(), 8);
  EXPECT_EQ(error_of<IndexError>([&] { raw::select(x, 1, 3); }),
            "select: index 3 is out of range for dim 1 of shape [2, 3, 4]");
  EXPECT_EQ(error_of<IndexError>([&] { raw::select(x, 0, -3); }),
            "select: index -3 is out of range for dim 0 of shape [2, 3, 4]");
  EXPECT_TRUE(contains(error_of<IndexError>([] { raw::select(scalar_tensor(1), 0, 0); }), "0-dim"));
}

TEST(Slice, ClampsLikePython) {
  const Tensor x = numbered({10});
  const auto slice = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    return values_of<std::int64_t>(raw::slice(x, 0, start, stop, step));
  };
  EXPECT_EQ(slice(2, 5, 1), (Values{2, 3, 4}));
  EXPECT_EQ(slice(-3, INT64_MAX, 1), (Values{7, 8, 9}));
  EXPECT_EQ(slice(0, -7, 1), (Values{0, 1, 2}));
  EXPECT_EQ(slice(-100, 2, 1), (Values{0, 1}));
  EXPECT_EQ(slice(8, 100, 1), (Values{8, 9}));
  EXPECT_EQ(slice(5, 2, 1), Values{});
  EXPECT_EQ(slice(100, 200, 1), Values{});
  EXPECT_EQ(slice(1, 10, 4), (Values{1, 5, 9}));
  EXPECT_EQ(slice(1, 9, 4), (Values{1, 5}));
  EXPECT_EQ(slice(0, INT64_MAX, INT64_MAX), Values{0});
  EXPECT_EQ(slice(INT64_MIN / 2, INT64_MIN / 2, 1), Values{});
  EXPECT_EQ(error_of<ValueError>([&] { raw::slice(x, 0, 0, 5, -1); }),
            "slice: the step must be at least 1, given -1");
  expect_error<ValueError>([&] { raw::slice(x, 0, 0, 5, 0); }, "slice: the step must be at least 1, given 0");
  expect_error<IndexError>([] { raw::slice(scalar_tensor(1), 0, 0, 1, 1); },
                           "slice: a 0-dim tensor has no dim to slice");
}

TEST(Slice, OfAnInnerDimKeepsStrides) {
  const Tensor x = raw::slice(numbered({3, 8}), 1, 1, 8, 3);
  EXPECT_EQ(x.sizes(), (Dims{3, 3}));
  EXPECT_EQ(x.strides(), (Dims{8, 3}));
  EXPECT_EQ(values_of<std::int64_t>(x), (Values{1, 4, 7, 9, 12, 15, 17, 20, 23}));
  EXPECT_FALSE(x.is_contiguous());
}

TEST(Transpose, SwapsDims) {
  const Tensor x = raw::transpose(numbered({2, 3}), -1, 0);
  EXPECT_EQ(values_of<std::int64_t>(x), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_TRUE(raw::transpose(x, 0, 1).is_contiguous());
  EXPECT_EQ(raw::transpose(scalar_tensor(1), 0, -1).dim(), 0);
  expect_error<IndexError>([&] { raw::transpose(x, 0, 2); },
                           "transpose: dim 2 is not in [-2, 1], the tensor has 2 dims");
}

TEST(Permute, ReordersDimsAndWantsEachOnce) {
  const Tensor x = raw::permute(numbered({2, 3, 4}), {2, 0, -2});
  EXPECT_EQ(x.sizes(), (Dims{4, 2, 3}));
  EXPECT_EQ(x.strides(), (Dims{1, 12, 4}));
  EXPECT_TRUE(contains(error_of<ShapeError>([&] { raw::permute(x, {0, 1, 1}); }), "appears twice"));
  EXPECT_EQ(error_of<ShapeError>([&] {
              raw::permute(x, {0, 1});
            }),
            "permute: wanted each of the 3 dims of shape [4, 2, 3] once, given [0, 1]");
  EXPECT_EQ(raw::permute(scalar_tensor(1), {}).dim(), 0);
}

TEST(Expand, RepeatsWithoutMemory) {
  const Tensor x = raw::expand(numbered({3, 1}), {2, -1, 4});
  EXPECT_EQ(x.sizes(), (Dims{2, 3, 4}));
  EXPECT_EQ(x.strides()[0], 0);
  EXPECT_EQ(x.strides()[2], 0);
  EXPECT_EQ(values_of<std::int64_t>(x),
            (Values{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(raw::expand(scalar_tensor(3), {2, 2}).sizes(), (Dims{2, 2}));
  EXPECT_EQ(raw::expand(numbered({1, 3}), {0, 3}).numel(), 0);
  EXPECT_TRUE(raw::expand(numbered({1, 3}), {1, 3}).is_contiguous());
}

TEST(Expand, MisfitIsNamed) {
  const Tensor x = numbered({3, 1});
  EXPECT_EQ(error_of<ShapeError>([&] {
              raw::expand(x, {4, 1});
            }),
            "expand: shape [3, 1] does not expand to [4, 1]: size 3 in dim 0");
  EXPECT_EQ(error_of<ShapeError>([&] { raw::expand(x, {3}); }),
            "expand: shape [3, 1] has more dims than the wanted [3]");
  EXPECT_EQ(error_of<ShapeError>([&] {
              raw::expand(x, {-1, 3, 1});
            }),
            "expand: a new dim needs a size of at least 0, given [-1, 3, 1] for shape [3, 1]");
}

TEST(Squeeze, RemovesDimsOfSizeOneOnly) {
  const Tensor x = numbered({1, 3, 1, 2});
  EXPECT_EQ(raw::squeeze(x).sizes(), (Dims{3, 2}));
  EXPECT_EQ(raw::squeeze(x, 0).sizes(), (Dims{3, 1, 2}));
  EXPECT_EQ(raw::squeeze(x, -2).sizes(), (Dims{1, 3, 2}));
  EXPECT_EQ(raw::squeeze(x, 1).sizes(), x.sizes());
  EXPECT_EQ(raw::squeeze(numbered({1})).dim(), 0);
  EXPECT_EQ(raw::squeeze(scalar_tensor(1), -1).dim(), 0);
  expect_error<IndexError>([&] { raw::squeeze(x, 4); }, "squeeze: dim 4 is not in ");
}

TEST(Unsqueeze, InsertsADim) {
  const Tensor x = numbered({2, 3});
  EXPECT_EQ(raw::unsqueeze(x, 0).sizes(), (Dims{1, 2, 3}));
  EXPECT_EQ(raw::unsqueeze(x, 2).sizes(), (Dims{2, 3, 1}));
  EXPECT_EQ(raw::unsqueeze(x, -1).sizes(), (Dims{2, 3, 1}));
  EXPECT_EQ(raw::unsqueeze(x, -3).sizes(), (Dims{1, 2, 3}));
  EXPECT_EQ(raw::unsqueeze(x, 1).strides(), (Dims{3, 3, 1}));
  EXPECT_EQ(raw::unsqueeze(scalar_tensor(1), 0).sizes(), Dims{1});
  expect_error<IndexError>([&] { raw::unsqueeze(x, 3); }, "unsqueeze: dim 3 is not in ");
  expect_error<ShapeError>(
      [] {
        raw::unsqueeze(empty({1, 1, 1, 1, 1, 1, 1, 1}), 0);
      },
      "a tensor has at most 8 dims, given 9");
}

TEST(View, KeepsInferenceMark) {
  const Tensor x = numbered({4});
  x.impl()->is_inference = true;
  EXPECT_TRUE(raw::view(x, {2, 2}).impl()->is_inference);
}

// What was saved of the old memory must not look unmodified.
TEST(SetData, NoEarlierVersionComesBack) {
  for (const int writes : {0, 1, 2, 5}) {
    const Tensor x = numbered({2}), source = numbered({3});
    raw::bump_version(x);
    raw::bump_version(x);
    for (int i = 0; i < writes; ++i) raw::bump_version(source);
    raw::set_data(x, source);
    EXPECT_GT(x.version(), 2U) << writes;
    EXPECT_TRUE(x.shares_storage(source));
    EXPECT_EQ(x.sizes(), (Dims{3}));
  }
}

}  // namespace
}  // namespace tutti
