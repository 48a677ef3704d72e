// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitives and packed weights: what is kept, what makes room, and that nothing is taken for something else. The
// references are the float64 kernels, which use neither.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <set>

#include "backend/backend.h"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/onednn/packed_weights.hpp"
#include "strided_array.hpp"

namespace {

namespace onednn = tutti::cpu::onednn;
using tutti::test::Layout;
using tutti::test::StridedArray;

// ---- the cache itself -------------------------------------------------------------------------------------------------

// The cache with a primitive that counts how often it is made.
struct CountedCache {
  int made = 0;
  onednn::Executable& get(const onednn::Key& key) {
    return onednn::cached(key, [this] {
      ++made;
      const onednn::Desc desc({8}, onednn::DataType::f32, dnnl::memory::format_tag::x);
      return onednn::make_reorder(desc, desc);
    });
  }
  bool makes(const onednn::Key& key) {
    const int before = made;
    get(key);
    return made != before;
  }
};

onednn::Key numbered(std::int64_t number) { return {{1000, number}}; }

TEST(PrimitiveCache, TheLeastRecentlyUsedOfAFullSetGoes) {
  std::vector<onednn::Key> keys;  // all of one set
  for (std::int64_t i = 0; keys.size() <= onednn::kCacheWays; ++i) {
    const onednn::Key key = numbered(i);
    if (key.hash() % onednn::kCacheSets == 0) keys.push_back(key);
  }
  CountedCache cache;
  for (std::size_t i = 0; i < onednn::kCacheWays; ++i) EXPECT_TRUE(cache.makes(keys[i]));
  for (std::size_t i = 0; i < onednn::kCacheWays; ++i) EXPECT_FALSE(cache.makes(keys[i])) << i;
  EXPECT_FALSE(cache.makes(keys[0]));                  // used last: the second is the oldest now
  EXPECT_TRUE(cache.makes(keys[onednn::kCacheWays]));  // takes its place
  EXPECT_FALSE(cache.makes(keys[0]));
  EXPECT_TRUE(cache.makes(keys[1]));
}

TEST(PrimitiveCache, EveryWordOfAKeyCounts) {
  CountedCache cache;
  const onednn::Key base = numbered(-1);
  EXPECT_TRUE(cache.makes(base));
  for (std::size_t word = 0; word < onednn::Key::kWords; ++word) {
    onednn::Key other = base;
    other.words[word] += 1;
    EXPECT_TRUE(cache.makes(other)) << word;
  }
}

// ---- convolutions and products through it -----------------------------------------------------------------------------

struct Convolution {
  std::int64_t n = 2, c = 4, h = 9, w = 8, o = 6, kh = 3, kw = 3;
  std::int32_t stride[2] = {1, 1}, padding[2] = {1, 1}, dilation[2] = {1, 1};
  std::int32_t groups = 1;
  bool bias = true;
  std::int32_t epilogue = TUTTI_EPILOGUE_NONE;
  Layout weight = Layout::kContiguous;
};

std::int64_t output_size(const Convolution& v, int d) {
  const std::int64_t in = d == 0 ? v.h : v.w, kernel = d == 0 ? v.kh : v.kw;
  return (in + 2 * v.padding[d] - v.dilation[d] * (kernel - 1) - 1) / v.stride[d] + 1;
}

// Results of the three directions, one after the other.
std::vector<double> run(const Convolution& v, std::int32_t dtype) {
  const tutti::test::Sizes y_sizes{v.n, v.o, output_size(v, 0), output_size(v, 1)};
  StridedArray x(dtype, {v.n, v.c, v.h, v.w}, Layout::kChannelsLast),
      y(dtype, y_sizes, Layout::kChannelsLast);
  StridedArray grad_x(dtype, {v.n, v.c, v.h, v.w}, Layout::kChannelsLast);
  StridedArray weight(dtype, {v.o, v.c / v.groups, v.kh, v.kw}, v.weight), bias(dtype, {v.o});
  StridedArray grad_weight(dtype, {v.o, v.c / v.groups, v.kh, v.kw}), grad_bias(dtype, {v.o});
  std::uint32_t seed = 0;
  for (StridedArray* input : {&x, &weight, &bias}) {
    StridedArray rounded(TUTTI_BF16, {input->numel()});  // numbers that every dtype holds
    rounded.fill_random(++seed);
    input->assign(rounded.values());
  }
  tutti_conv2d call{};
  for (int d = 0; d < 2; ++d) {
    call.stride[d] = v.stride[d];
    call.padding[d] = v.padding[d];
    call.dilation[d] = v.dilation[d];
  }
  call.groups = v.groups;
  call.x = x.view();
  call.y = y.view();
  call.weight.view = weight.view();
  if (v.bias) call.bias = bias.view();
  call.epilogue = v.epilogue;
  EXPECT_EQ(tutti::cpu::conv2d_forward(&call), TUTTI_OK);
  std::vector<double> results = y.values();
  call.epilogue = TUTTI_EPILOGUE_NONE;
  StridedArray rounded(TUTTI_BF16, {y.numel()});  // the gradient of y
  rounded.fill_random(9);
  y.assign(rounded.values());
  call.x = grad_x.view();
  EXPECT_EQ(tutti::cpu::conv2d_backward_data(&call), TUTTI_OK);
  call.x = x.view();
  call.weight.view = grad_weight.view();
  if (v.bias) call.bias = grad_bias.view();
  EXPECT_EQ(tutti::cpu::conv2d_backward_weight(&call), TUTTI_OK);
  for (const StridedArray* gradient : {&grad_x, &grad_weight, &grad_bias}) {
    const std::vector<double> values = gradient->values();
    if (gradient != &grad_bias || v.bias) results.insert(results.end(), values.begin(), values.end());
  }
  return results;
}

struct Product {
  std::int64_t m = 48, n = 40, k = 32;
  Layout a = Layout::kContiguous, b = Layout::kContiguous, out = Layout::kContiguous;
  bool bias = false;
  std::int32_t epilogue = TUTTI_EPILOGUE_NONE;
  double beta = 0;
};

std::vector<double> run(const Product& v, std::int32_t dtype) {
  StridedArray a(dtype, {v.m, v.k}, v.a), b(dtype, {v.k, v.n}, v.b), out(dtype, {v.m, v.n}, v.out);
  StridedArray bias(dtype, {v.n});
  std::uint32_t seed = 0;
  for (StridedArray* input : {&a, &b, &bias, &out}) {
    StridedArray rounded(TUTTI_BF16, {input->numel()});
    rounded.fill_random(++seed);
    input->assign(rounded.values());
  }
  tutti_matmul call{};
  call.epilogue = v.epilogue;
  call.beta = v.beta;
  call.a = a.view();
  call.b.view = b.view();
  call.out = out.view();
  if (v.bias) call.bias = bias.view();
  EXPECT_EQ(tutti::cpu::matmul(&call), TUTTI_OK);
  return out.values();
}

template <class Variant>
void expect_like_float64(const Variant& variant, std::int32_t dtype, const std::string& where) {
  const std::vector<double> given = run(variant, dtype), wanted = run(variant, TUTTI_F64);
  ASSERT_EQ(given.size(), wanted.size()) << where;
  const double tolerance = dtype == TUTTI_F32 ? 1e-5 : 2e-2;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(given[i], wanted[i], tolerance * (20 + std::abs(wanted[i]))) << where << " element " << i;
  }
}

// Each variant differs from the first in one field, and comes right after it.
template <class Variant>
void expect_all_told_apart(const std::vector<std::function<void(Variant&)>>& changes) {
  const std::vector<double> first = run(Variant{}, TUTTI_F32);
  expect_like_float64(Variant{}, TUTTI_F32, "first");
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Variant variant;
    changes[i](variant);
    expect_like_float64(variant, TUTTI_F32, "change " + std::to_string(i));
    EXPECT_EQ(run(Variant{}, TUTTI_F32), first) << "after change " << i;
  }
  expect_like_float64(Variant{}, TUTTI_BF16, "bfloat16");
  EXPECT_EQ(run(Variant{}, TUTTI_F32), first) << "after bfloat16";
}

TEST(PrimitiveCache, ConvolutionsThatDifferInOneFieldAreToldApart) {
  expect_all_told_apart<Convolution>({
      [](Convolution& v) { v.n = 3; },
      [](Convolution& v) { v.c = 5; },
      [](Convolution& v) { v.h = 10; },
      [](Convolution& v) { v.w = 9; },
      [](Convolution& v) { v.o = 7; },
      [](Convolution& v) { v.kh = 2; },
      [](Convolution& v) { v.kw = 2; },
      [](Convolution& v) { v.stride[0] = 2; },
      [](Convolution& v) { v.stride[1] = 2; },
      [](Convolution& v) { v.padding[0] = 0; },
      [](Convolution& v) { v.padding[1] = 0; },
      [](Convolution& v) { v.dilation[0] = 2; },
      [](Convolution& v) { v.dilation[1] = 2; },
      [](Convolution& v) { v.groups = 2; },
      [](Convolution& v) { v.bias = false; },
      [](Convolution& v) { v.epilogue = TUTTI_EPILOGUE_GELU; },
      [](Convolution& v) { v.epilogue = TUTTI_EPILOGUE_RELU; },
      [](Convolution& v) { v.weight = Layout::kChannelsLast; },
      [](Convolution& v) { v.weight = Layout::kTransposed; },
  });
}

TEST(PrimitiveCache, ProductsThatDifferInOneFieldAreToldApart) {
  expect_all_told_apart<Product>({
      [](Product& v) { v.m = 49; },
      [](Product& v) { v.n = 41; },
      [](Product& v) { v.k = 33; },
      [](Product& v) { v.a = Layout::kTransposed; },
      [](Product& v) { v.a = Layout::kPadded; },
      [](Product& v) { v.b = Layout::kTransposed; },
      [](Product& v) { v.b = Layout::kPadded; },
      [](Product& v) { v.out = Layout::kPadded; },
      [](Product& v) { v.bias = true; },
      [](Product& v) { v.epilogue = TUTTI_EPILOGUE_GELU; },
      [](Product& v) { v.epilogue = TUTTI_EPILOGUE_RELU; },
      [](Product& v) { v.beta = 1; },
  });
}

TEST(PrimitiveCache, ConvolutionsKeepTheirBitsWhenTheirPrimitivesAreMadeAgain) {
  constexpr std::int64_t kShapes =
      onednn::kCacheSets * onednn::kCacheWays / 4;  // of at least five primitives each
  std::vector<std::vector<double>> first;
  for (std::int64_t i = 0; i < kShapes; ++i) {
    const Convolution shape{.n = 1, .c = 1, .h = 3, .w = 3 + i, .o = 2};
    expect_like_float64(shape, TUTTI_F32, "width " + std::to_string(shape.w));
    first.push_back(run(shape, TUTTI_F32));
  }
  for (std::int64_t i = 0; i < kShapes; ++i) {
    const Convolution shape{.n = 1, .c = 1, .h = 3, .w = 3 + i, .o = 2};
    ASSERT_EQ(run(shape, TUTTI_F32), first[static_cast<std::size_t>(i)]) << "width " << shape.w;
  }
}

// ---- packed weights ---------------------------------------------------------------------------------------------------

// A slot as a storage owns it.
struct Slot {
  Slot() = default;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    if (slot.handle != nullptr) slot.destroy(slot.handle);
  }
  tutti_packed_slot slot{};
};

// How many copies are filled while f runs.
template <class F>
std::uint64_t packings_of(const F& f) {
  const std::uint64_t before = onednn::packings();
  f();
  return onednn::packings() - before;
}

TEST(PackedWeights, AConvolutionPacksOncePerChangeAndDirection) {
  Slot slot;
  StridedArray x(TUTTI_F32, {2, 8, 9, 9}, Layout::kChannelsLast),
      y(TUTTI_F32, {2, 16, 7, 7}, Layout::kChannelsLast);
  StridedArray weight(TUTTI_F32, {16, 8, 3, 3});
  x.fill_random(1);
  weight.fill_random(2);
  tutti_conv2d call{};
  for (int d = 0; d < 2; ++d) call.stride[d] = call.dilation[d] = 1;
  call.groups = 1;
  call.x = x.view();
  call.y = y.view();
  for (const std::uint64_t version : {1U, 2U, 3U}) {
    call.weight = {weight.view(), &slot.slot, version};
    const auto forward = [&] { ASSERT_EQ(tutti::cpu::conv2d_forward(&call), TUTTI_OK); };
    const auto backward = [&] { ASSERT_EQ(tutti::cpu::conv2d_backward_data(&call), TUTTI_OK); };
    EXPECT_EQ(packings_of(forward), 1U) << "version " << version;
    EXPECT_EQ(packings_of(backward), 1U) << "version " << version;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(packings_of(forward), 0U) << "version " << version;
      EXPECT_EQ(packings_of(backward), 0U) << "version " << version;
    }
  }
}

// Packing pays from a version's second use on; a product of many rows packs at once.
TEST(PackedWeights, AProductPacksAtMostOncePerChange) {
  for (const std::int64_t rows : {16, 1024}) {
    Slot slot;
    StridedArray a(TUTTI_F32, {rows, 256}), b(TUTTI_F32, {256, 512}, Layout::kTransposed);
    StridedArray out(TUTTI_F32, {rows, 512});
    a.fill_random(1);
    b.fill_random(2);
    tutti_matmul call{};
    call.a = a.view();
    call.out = out.view();
    std::set<std::uint64_t> counts;
    for (const std::uint64_t version : {1U, 2U, 3U}) {
      call.b = {b.view(), &slot.slot, version};
      counts.insert(packings_of([&] {
        for (int i = 0; i < 4; ++i) ASSERT_EQ(tutti::cpu::matmul(&call), TUTTI_OK);
      }));
    }
    EXPECT_EQ(counts.size(), 1U) << rows << " rows: every version is treated alike";
    EXPECT_LE(*counts.rbegin(), 1U) << rows << " rows";
    if (rows == 1024) {
      EXPECT_EQ(*counts.begin(), 1U) << "strips of rows share one packed copy";
    }
  }
}

}  // namespace
