// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/strided_array.hpp"

namespace tutti::test {
namespace {

constexpr std::int32_t kAllTypes[] = {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16, TUTTI_I64,
                                      TUTTI_I32, TUTTI_I16, TUTTI_I8,  TUTTI_U8,   TUTTI_BOOL};
constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kTransposed, Layout::kPadded, Layout::kSpread};

std::string last_error() {
  char text[512];
  cpu::error_text(text, sizeof text);
  return text;
}

// Positions of [outer, index, inner] in row-major order.
struct Shape {
  Shape(const Sizes& sizes, int dim) : n(sizes[static_cast<std::size_t>(dim)]) {
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (static_cast<int>(d) < dim) outer *= sizes[d];
      if (static_cast<int>(d) > dim) inner *= sizes[d];
    }
  }
  std::int64_t at(std::int64_t o, std::int64_t i, std::int64_t k) const { return (o * n + i) * inner + k; }
  std::int64_t outer = 1, n, inner = 1;
};

tutti_index make_call(int dim, const StridedArray& out, const StridedArray& in, const StridedArray& indices) {
  tutti_index call{};
  call.dim = dim;
  call.out = out.view();
  call.in = in.view();
  call.indices = indices.view();
  return call;
}

Sizes with_size(Sizes sizes, int dim, std::int64_t n) {
  sizes[static_cast<std::size_t>(dim)] = n;
  return sizes;
}

void fill(StridedArray& array, std::uint32_t seed) {
  array.fill_random(seed);
  if (array.view().dtype != TUTTI_BOOL) return;
  for (std::int64_t i = 0; i < array.numel(); ++i) array.set(i, static_cast<double>((i + seed) % 3 == 0));
}

TEST(IndexSelect, TakesSlicesAlongAnyDimOfEveryDTypeAndLayout) {
  const Sizes sizes = {4, 6, 70};
  for (const std::int32_t dtype : kAllTypes) {
    for (const Layout layout : kLayouts) {
      for (const std::int32_t index_type : {TUTTI_I64, TUTTI_I32}) {
        for (int dim = 0; dim < 3; ++dim) {
          StridedArray in(dtype, sizes, layout);
          fill(in, 1);
          StridedArray indices(index_type, {5}, dtype == TUTTI_F32 ? Layout::kSpread : Layout::kContiguous);
          indices.assign({3, 0, 0, 2, 1});
          StridedArray out(dtype, with_size(sizes, dim, 5));
          const tutti_index call = make_call(dim, out, in, indices);
          ASSERT_EQ(cpu::index_select(&call), TUTTI_OK) << last_error();
          const Shape from(sizes, dim);
          const Shape to(with_size(sizes, dim, 5), dim);
          for (std::int64_t o = 0; o < to.outer; ++o) {
            for (std::int64_t i = 0; i < 5; ++i) {
              for (std::int64_t k = 0; k < to.inner; ++k) {
                ASSERT_EQ(out.get(to.at(o, i, k)),
                          in.get(from.at(o, static_cast<std::int64_t>(indices.get(i)), k)));
              }
            }
          }
        }
      }
    }
  }
}

TEST(IndexAdd, AddsSlicesInTheOrderOfTheIndices) {
  const Sizes sizes = {4, 6, 70};
  for (const std::int32_t dtype : kAllTypes) {
    for (const Layout layout : kLayouts) {
      for (int dim = 0; dim < 3; ++dim) {
        const Sizes in_sizes = with_size(sizes, dim, 5);
        StridedArray in(dtype, in_sizes, layout);
        StridedArray out(dtype, sizes, layout);
        fill(in, 1);
        fill(out, 2);
        StridedArray indices(TUTTI_I32, {5});
        indices.assign({3, 0, 0, 2, 0});
        StridedArray expected(dtype, sizes);  // rounds each sum as the kernel must
        expected.assign(out.values());
        const Shape from(in_sizes, dim);
        const Shape to(sizes, dim);
        for (std::int64_t i = 0; i < 5; ++i) {
          for (std::int64_t o = 0; o < to.outer; ++o) {
            for (std::int64_t k = 0; k < to.inner; ++k) {
              const std::int64_t p = to.at(o, static_cast<std::int64_t>(indices.get(i)), k);
              const double sum = expected.get(p) + in.get(from.at(o, i, k));
              expected.set(p, dtype == TUTTI_BOOL ? static_cast<double>(sum != 0.0) : sum);
            }
          }
        }
        const tutti_index call = make_call(dim, out, in, indices);
        ASSERT_EQ(cpu::index_add(&call), TUTTI_OK) << last_error();
        ASSERT_EQ(out.values(), expected.values()) << "dtype " << dtype << " dim " << dim;
      }
    }
  }
}

TEST(IndexAdd, SameBitsForAnyNumberOfThreads) {
  for (const std::int64_t width : {1, 3, 64, 513}) {
    StridedArray in(TUTTI_F32, {20000, width});
    StridedArray start(TUTTI_F32, {100, width});
    StridedArray out(TUTTI_F32, {100, width});
    StridedArray indices(TUTTI_I64, {20000});
    in.fill_random(1);
    start.fill_random(2);
    for (std::int64_t i = 0; i < 20000; ++i) indices.set(i, static_cast<double>(i * 7919 % 100));
    const tutti_index call = make_call(0, out, in, indices);
    const std::vector<double> values = start.values();
    expect_same_bits_for_all_teams(out, [&] {
      out.assign(values);
      ASSERT_EQ(cpu::index_add(&call), TUTTI_OK);
    });
  }
}

TEST(Index, AnIndexOutOfRangeNamesPositionValueAndSize) {
  StridedArray in(TUTTI_F32, {4, 3});
  StridedArray out(TUTTI_F32, {2, 3});
  for (const double bad : {4.0, -1.0}) {
    for (const std::int32_t index_type : {TUTTI_I64, TUTTI_I32}) {
      StridedArray indices(index_type, {2});
      indices.assign({0.0, bad});
      const tutti_index select = make_call(0, out, in, indices);
      EXPECT_EQ(cpu::index_select(&select), TUTTI_INVALID);
      const std::string text = last_error();
      EXPECT_NE(text.find("index_select"), std::string::npos) << text;
      EXPECT_NE(text.find("index " + std::to_string(static_cast<int>(bad))), std::string::npos) << text;
      EXPECT_NE(text.find("position 1"), std::string::npos) << text;
      EXPECT_NE(text.find("size 4"), std::string::npos) << text;
      const tutti_index add = make_call(0, in, out, indices);
      EXPECT_EQ(cpu::index_add(&add), TUTTI_INVALID);
    }
  }
}

TEST(Index, TakesNoIndicesAndEmptyRows) {
  StridedArray in(TUTTI_F32, {4, 3});
  StridedArray none(TUTTI_F32, {0, 3});
  StridedArray no_indices(TUTTI_I64, {0});
  const tutti_index select = make_call(0, none, in, no_indices);
  EXPECT_EQ(cpu::index_select(&select), TUTTI_OK);
  StridedArray narrow(TUTTI_F32, {4, 0});
  StridedArray out(TUTTI_F32, {1, 0});
  StridedArray one(TUTTI_I64, {1});
  const tutti_index empty = make_call(0, out, narrow, one);
  EXPECT_EQ(cpu::index_select(&empty), TUTTI_OK);
}

TEST(Index, RefusesOtherDTypesByName) {
  StridedArray in(TUTTI_F32, {4});
  StridedArray out(TUTTI_F64, {1});
  StridedArray indices(TUTTI_I64, {1});
  const tutti_index mixed = make_call(0, out, in, indices);
  EXPECT_EQ(cpu::index_select(&mixed), TUTTI_UNSUPPORTED);
  EXPECT_NE(last_error().find("float64"), std::string::npos);
  StridedArray floats(TUTTI_F32, {1});
  const tutti_index by_floats = make_call(0, floats, in, floats);
  EXPECT_EQ(cpu::index_select(&by_floats), TUTTI_UNSUPPORTED);
}

}  // namespace
}  // namespace tutti::test
