// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes and strides: up to kMaxDims numbers without an allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tutti/core/error.hpp"
#include "tutti/core/export.hpp"

namespace tutti {

/// Greatest number of dimensions of a tensor.
inline constexpr int kMaxDims = 8;

/// Sizes, strides or a list of dims.
class Dims {
 public:
  constexpr Dims() noexcept = default;
  constexpr Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span(values.begin(), values.size())) {}
  constexpr Dims(std::span<const std::int64_t> values) {  // NOLINT: implicit
    TUTTI_CHECK(values.size() <= kMaxDims, ShapeError, "a tensor has at most ", kMaxDims, " dims, given ",
                values.size());
    for (const std::int64_t value : values) values_[size_++] = value;
  }
  Dims(const std::vector<std::int64_t>& values)
      : Dims(std::span<const std::int64_t>(values)) {}  // NOLINT: implicit
  /// `count` times the same value.
  static constexpr Dims filled(int count, std::int64_t value) {
    Dims dims;
    for (int i = 0; i < count; ++i) dims.push_back(value);
    return dims;
  }

  constexpr int size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  constexpr std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
  constexpr const std::int64_t* end() const noexcept { return values_.data() + size_; }
  constexpr std::int64_t back() const noexcept { return values_[static_cast<std::size_t>(size_ - 1)]; }
  constexpr void push_back(std::int64_t value) {
    TUTTI_CHECK(size_ < kMaxDims, ShapeError, "a tensor has at most ", kMaxDims, " dims");
    values_[static_cast<std::size_t>(size_++)] = value;
  }
  constexpr void insert(int position, std::int64_t value) {
    push_back(value);
    std::rotate(values_.begin() + position, values_.begin() + size_ - 1, values_.begin() + size_);
  }
  constexpr void erase(int position) noexcept {
    for (int i = position; i + 1 < size_; ++i) (*this)[i] = (*this)[i + 1];
    --size_;
  }
  /// Product of all values; 1 for none.
  constexpr std::int64_t product() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t value : *this) product *= value;
    return product;
  }
  operator std::span<const std::int64_t>() const noexcept {
    return {begin(), static_cast<std::size_t>(size_)};
  }
  friend constexpr bool operator==(const Dims& a, const Dims& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, kMaxDims> values_{};
  int size_ = 0;
};

/// "[2, 3]".
TUTTI_API std::string to_text(const Dims& dims);
/// Sizes that both broadcast to, by NumPy's rule. Throws ShapeError naming both.
TUTTI_API Dims broadcast_shapes(const Dims& a, const Dims& b);

}  // namespace tutti
