// SPDX-License-Identifier: Apache-2.0
// Arrays of any dtype and any strides for tests of the kernels that oneDNN serves, read and written as double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "tutti/core/dtype.hpp"
#include "tutti/core/threads.hpp"

namespace tutti::test {

using Sizes = std::vector<std::int64_t>;

// How the elements lie in memory.
enum class Layout {
  kContiguous,
  kTransposed,      // last two dims swapped
  kPadded,          // rows longer than needed
  kSpread,          // every second element
  kChannelsLast,    // [N, C, H, W] in N, H, W, C order
  kBroadcastBatch,  // dims before the last two have stride 0
};

class StridedArray {
 public:
  StridedArray(std::int32_t dtype, const Sizes& sizes, Layout layout = Layout::kContiguous) {
    view_.dtype = dtype;
    view_.ndim = static_cast<std::int32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), view_.sizes);
    std::vector<int> order(sizes.size());  // innermost first
    for (std::size_t d = 0; d < sizes.size(); ++d) order[d] = static_cast<int>(sizes.size() - 1 - d);
    if (layout == Layout::kTransposed) std::swap(order[0], order[1]);
    if (layout == Layout::kChannelsLast) order = {1, 3, 2, 0};
    std::int64_t stride = layout == Layout::kSpread ? 2 : 1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      view_.strides[order[i]] = layout == Layout::kBroadcastBatch && i >= 2 ? 0 : stride;
      stride *= view_.sizes[order[i]];
      if (layout == Layout::kPadded && i == 0) stride += 16;
    }
    bytes_ = static_cast<std::size_t>(stride) * size_of(static_cast<DType>(dtype));
    storage_.resize(bytes_ + 64);
    auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    view_.data = storage_.data() + (64 - address % 64) % 64;
  }
  StridedArray(const StridedArray&) = delete;
  StridedArray& operator=(const StridedArray&) = delete;

  tutti_view& view() { return view_; }
  const tutti_view& view() const { return view_; }
  std::int64_t numel() const {
    std::int64_t count = 1;
    for (int d = 0; d < view_.ndim; ++d) count *= view_.sizes[d];
    return count;
  }

  // Element number `index` in row-major order of the shape.
  double get(std::int64_t index) const {
    const void* p = address(index);
    switch (view_.dtype) {
      case TUTTI_F64: return load<double>(p);
      case TUTTI_F32: return load<float>(p);
      case TUTTI_F16: return load<Half>(p);
      case TUTTI_BF16: return load<BFloat16>(p);
      case TUTTI_I64: return static_cast<double>(load<std::int64_t>(p));
      case TUTTI_I32: return load<std::int32_t>(p);
      case TUTTI_I16: return load<std::int16_t>(p);
      case TUTTI_I8: return load<std::int8_t>(p);
      default: return load<std::uint8_t>(p);
    }
  }
  void set(std::int64_t index, double value) {
    void* p = address(index);
    switch (view_.dtype) {
      case TUTTI_F64: return store(p, value);
      case TUTTI_F32: return store(p, static_cast<float>(value));
      case TUTTI_F16: return store(p, Half(static_cast<float>(value)));
      case TUTTI_BF16: return store(p, BFloat16(static_cast<float>(value)));
      case TUTTI_I64: return store(p, static_cast<std::int64_t>(value));
      case TUTTI_I32: return store(p, static_cast<std::int32_t>(value));
      case TUTTI_I16: return store(p, static_cast<std::int16_t>(value));
      case TUTTI_I8: return store(p, static_cast<std::int8_t>(value));
      default: return store(p, static_cast<std::uint8_t>(value));
    }
  }

  void fill_random(std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::uniform_int_distribution<int> small(0, 9);
    for (std::int64_t i = 0; i < numel(); ++i)
      set(i, view_.dtype <= TUTTI_BF16 ? normal(generator) : small(generator));
  }
  std::vector<double> values() const {
    std::vector<double> result(static_cast<std::size_t>(numel()));
    for (std::int64_t i = 0; i < numel(); ++i) result[static_cast<std::size_t>(i)] = get(i);
    return result;
  }
  void assign(const std::vector<double>& values) {
    for (std::int64_t i = 0; i < numel(); ++i) set(i, values[static_cast<std::size_t>(i)]);
  }

 private:
  template <class T>
  static T load(const void* p) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
  }
  template <class T>
  static void store(void* p, T value) {
    std::memcpy(p, &value, sizeof(T));
  }
  void* address(std::int64_t index) const {
    std::int64_t offset = 0;
    for (int d = view_.ndim - 1; d >= 0; --d) {
      offset += index % view_.sizes[d] * view_.strides[d];
      index /= view_.sizes[d];
    }
    return static_cast<char*>(view_.data) +
           offset * static_cast<std::int64_t>(size_of(static_cast<DType>(view_.dtype)));
  }

  tutti_view view_{};
  std::size_t bytes_ = 0;
  std::vector<char> storage_;
};

// Runs body with each team size and expects `result` to hold the same bits each time.
template <class Body>
void expect_same_bits_for_all_teams(const StridedArray& result, const Body& body) {
  const int before = get_num_threads();
  std::vector<double> first;
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    body();
    const std::vector<double> values = result.values();
    if (first.empty()) {
      first = values;
    } else if (!first.empty()) {
      EXPECT_EQ(std::memcmp(first.data(), values.data(), first.size() * sizeof(double)), 0)
          << "differs with " << threads << " threads";
    }
  }
  set_num_threads(before);
}

inline double unit_roundoff(std::int32_t dtype) {
  switch (dtype) {
    case TUTTI_F64: return 0x1p-53;
    case TUTTI_F32: return 0x1p-24;
    case TUTTI_F16: return 0x1p-11;
    case TUTTI_BF16: return 0x1p-8;
    default: return 0.0;
  }
}

}  // namespace tutti::test
