// SPDX-License-Identifier: Apache-2.0
#include "tensor/layout.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "support/errors.hpp"
#include "tensor/raw.hpp"

namespace tutti {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::expect_error;

TEST(Dims, HoldAtMostEightNumbers) {
  Dims dims{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(dims.product(), 40320);
  EXPECT_EQ(error_of<ShapeError>([&] { dims.push_back(9); }), "a tensor has at most 8 dims, given 9");
  EXPECT_EQ(error_of<ShapeError>([] { Dims(std::vector<std::int64_t>(9, 1)); }),
            "a tensor has at most 8 dims, given 9");
}

TEST(Dims, InsertAndErase) {
  Dims dims{2, 4};
  dims.insert(1, 3);
  dims.insert(3, 5);
  dims.insert(0, 1);
  EXPECT_EQ(dims, (Dims{1, 2, 3, 4, 5}));
  dims.erase(2);
  dims.erase(3);
  EXPECT_EQ(dims, (Dims{1, 2, 4}));
  EXPECT_EQ(to_text(dims), "[1, 2, 4]");
  EXPECT_EQ(to_text(Dims{}), "[]");
}

TEST(Broadcast, FollowsNumPysRule) {
  EXPECT_EQ(broadcast_shapes({2, 3}, {3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_shapes({3}, {2, 1}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_shapes({}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_shapes({}, {}), Dims{});
  EXPECT_EQ(broadcast_shapes({5, 1, 4, 1}, {3, 1, 2}), (Dims{5, 3, 4, 2}));
  EXPECT_EQ(broadcast_shapes({0}, {1}), Dims{0});
  EXPECT_EQ(broadcast_shapes({1, 0}, {3, 1}), (Dims{3, 0}));
}

TEST(Broadcast, MisfitNamesBothShapesAndTheDim) {
  EXPECT_EQ(error_of<ShapeError>([] {
              broadcast_shapes({2, 3}, {4});
            }),
            "shapes [2, 3] and [4] do not broadcast: 3 against 4 in dim -1");
  EXPECT_EQ(error_of<ShapeError>([] {
              broadcast_shapes({4, 1}, {2, 3, 5});
            }),
            "shapes [4, 1] and [2, 3, 5] do not broadcast: 4 against 3 in dim -2");
  EXPECT_EQ(error_of<ShapeError>([] { broadcast_shapes({3}, {2}, "add"); }),
            "add: shapes [3] and [2] do not broadcast: 3 against 2 in dim -1");
  EXPECT_TRUE(contains(error_of<ShapeError>([] { broadcast_shapes({0}, {2}); }), "0 against 2"));
}

TEST(NormalizeDim, CountsFromTheEnd) {
  EXPECT_EQ(raw::normalize_dim(-1, 3, "sum"), 2);
  EXPECT_EQ(raw::normalize_dim(2, 3, "sum"), 2);
  EXPECT_EQ(raw::normalize_dim(-1, 0, "sum"), 0);
  EXPECT_EQ(error_of<IndexError>([] { raw::normalize_dim(3, 3, "sum"); }),
            "sum: dim 3 is not in [-3, 2], the tensor has 3 dims");
  EXPECT_EQ(error_of<IndexError>([] { raw::normalize_dim(-2, 1, "sum"); }),
            "sum: dim -2 is not in [-1, 0], the tensor has 1 dim");
}

TEST(DimMask, EmptyMeansAllAndTwiceIsAnError) {
  EXPECT_EQ(raw::dim_mask({}, 3, "sum"), 7U);
  EXPECT_EQ(raw::dim_mask({0, -1}, 3, "sum"), 5U);
  EXPECT_EQ(raw::dim_mask({}, 0, "sum"), 0U);
  EXPECT_EQ(raw::dim_mask({-1}, 0, "sum"), 0U);
  EXPECT_EQ(error_of<ShapeError>([] {
              raw::dim_mask({1, -2}, 3, "sum");
            }),
            "sum: dim -2 appears twice in [1, -2]");
  expect_error<IndexError>([] { raw::dim_mask({std::int64_t{1} << 40}, 3, "sum"); },
                           "sum: dim 1099511627776 is out of range, the tensor has 3 dims");
}

TEST(Strides, OfEmptyDimsAreThoseOfSizeOne) {
  EXPECT_EQ(raw::contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(raw::contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(raw::contiguous_strides({}), Dims{});
  EXPECT_EQ(raw::channels_last_strides({2, 3, 4, 5}), (Dims{60, 1, 15, 3}));
  EXPECT_TRUE(contains(error_of<ShapeError>([] {
                         raw::channels_last_strides({2, 3, 4});
                       }),
                       "given shape [2, 3, 4]"));
}

TEST(InferSize, ResolvesOneUnknown) {
  EXPECT_EQ(raw::infer_size({2, -1}, 6), (Dims{2, 3}));
  EXPECT_EQ(raw::infer_size({-1}, 0), Dims{0});
  EXPECT_EQ(raw::infer_size({-1, 2}, 0), (Dims{0, 2}));
  EXPECT_EQ(raw::infer_size({0, 5}, 0), (Dims{0, 5}));
  EXPECT_EQ(raw::infer_size({}, 1), Dims{});
  EXPECT_EQ(error_of<ShapeError>([] {
              raw::infer_size({4, -1}, 6);
            }),
            "shape [4, -1] does not fit 6 elements");
  EXPECT_EQ(error_of<ShapeError>([] { raw::infer_size({4, 2}, 6); }), "shape [4, 2] does not fit 6 elements");
  EXPECT_EQ(error_of<ShapeError>([] {
              raw::infer_size({-1, -1}, 6);
            }),
            "only one size may be -1, given [-1, -1]");
  EXPECT_EQ(error_of<ShapeError>([] {
              raw::infer_size({-2, 3}, 6);
            }),
            "a size is -1 or at least 0, given [-2, 3]");
  EXPECT_TRUE(contains(error_of<ShapeError>([] { raw::infer_size({0, -1}, 0); }), "can stand for any size"));
  expect_error<ShapeError>(
      [] {
        raw::infer_size({std::int64_t{1} << 40, std::int64_t{1} << 40}, 6);
      },
      "shape [1099511627776, 1099511627776] does not fit 6 elements");
}

std::vector<std::int64_t> addresses(const Dims& sizes, const Dims& strides) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < sizes.product(); ++i) {
    std::int64_t rest = i;
    std::int64_t address = 0;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      address += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    result.push_back(address);
  }
  return result;
}

struct Layout {
  Dims sizes;
  Dims strides;
};

// Permuted, sliced and expanded views.
Layout random_layout(std::minstd_rand& random) {
  Layout layout;
  const int ndim = static_cast<int>(random() % 5);
  for (int d = 0; d < ndim; ++d) layout.sizes.push_back(static_cast<std::int64_t>(1 + random() % 4));
  layout.strides = raw::contiguous_strides(layout.sizes);
  for (int d = 0; d < ndim; ++d) {
    const unsigned what = random() % 8;
    if (what == 0) layout.strides[d] = 0;
    if (what == 1) layout.sizes[d] = (layout.sizes[d] + 1) / 2;
    if (what == 2) {
      const int other = static_cast<int>(random() % static_cast<unsigned>(ndim));
      std::swap(layout.sizes[d], layout.sizes[other]);
      std::swap(layout.strides[d], layout.strides[other]);
    }
  }
  return layout;
}

// A random shape of `numel` elements.
Dims random_shape(std::int64_t numel, std::minstd_rand& random) {
  Dims sizes;
  while (numel > 1 && sizes.size() < 4) {
    std::int64_t factor = static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(numel));
    while (numel % factor != 0) --factor;
    sizes.push_back(factor);
    numel /= factor;
  }
  sizes.push_back(numel);
  return sizes;
}

// A view exists exactly if its elements, in row-major order, can be reached by one stride for each dim.
TEST(StridesOfView, ExistExactlyWhereStridesReachAllElements) {
  std::minstd_rand random(1);
  int found = 0;
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const Layout layout = random_layout(random);
    const std::vector<std::int64_t> wanted = addresses(layout.sizes, layout.strides);
    const Dims shape = random_shape(static_cast<std::int64_t>(wanted.size()), random);
    Dims strides = raw::contiguous_strides(shape);
    for (int d = 0; d < shape.size(); ++d) {
      if (shape[d] > 1) strides[d] = wanted[static_cast<std::size_t>(strides[d])];
    }
    const bool exists = addresses(shape, strides) == wanted;
    const std::optional<Dims> result = detail::strides_of_view(layout.sizes, layout.strides, shape);
    ASSERT_EQ(result.has_value(), exists)
        << to_text(layout.sizes) << to_text(layout.strides) << to_text(shape);
    if (exists) {
      ASSERT_EQ(addresses(shape, *result), wanted);
    }
    ++(exists ? found : refused);
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Layout, OverlapAndDensityAreFoundFromSizesAndStrides) {
  std::minstd_rand random(2);
  for (int round = 0; round < 20000; ++round) {
    const Layout layout = random_layout(random);
    const std::vector<std::int64_t> reached = addresses(layout.sizes, layout.strides);
    const std::set<std::int64_t> distinct(reached.begin(), reached.end());
    const bool overlaps = distinct.size() < reached.size();
    const std::int64_t extent = *distinct.rbegin() + 1;
    ASSERT_EQ(detail::extent(layout.sizes, layout.strides), extent);
    ASSERT_EQ(detail::is_dense(layout.sizes, layout.strides),
              !overlaps && extent == static_cast<std::int64_t>(reached.size()))
        << to_text(layout.sizes) << to_text(layout.strides);
    // In doubt it says yes, never no.
    if (overlaps) {
      ASSERT_TRUE(detail::may_overlap_itself(layout.sizes, layout.strides));
    }
  }
  EXPECT_FALSE(detail::may_overlap_itself({3, 2}, {4, 2}));
  EXPECT_TRUE(detail::may_overlap_itself({2, 2}, {1, 1}));
  EXPECT_FALSE(detail::may_overlap_itself({2, 0}, {0, 0}));
  EXPECT_EQ(detail::extent({2, 0}, {5, 5}), 0);
}

TEST(Layout, DenseStridesKeepTheOrderOfDims) {
  const Tensor images = empty_strided({2, 3, 4, 5}, raw::channels_last_strides({2, 3, 4, 5}));
  EXPECT_TRUE(raw::is_dense(images));
  EXPECT_EQ(raw::dense_strides(images), images.strides());
  const Tensor part = raw::slice(images, 2, 1, 3, 1);
  EXPECT_FALSE(raw::is_dense(part));
  EXPECT_EQ(raw::dense_strides(part), raw::channels_last_strides({2, 3, 2, 5}));
  // Expanded dims stay in row-major order.
  EXPECT_EQ(raw::dense_strides(raw::expand(empty({3, 1}), {3, 4})), (Dims{4, 1}));
  EXPECT_EQ(raw::dense_strides(raw::expand(empty({1, 4}), {3, 4})), (Dims{4, 1}));
}

}  // namespace
}  // namespace tutti
