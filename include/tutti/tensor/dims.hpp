// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes and strides: up to kMaxDims numbers without an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/core/error.hpp"
#include "tutti/core/export.hpp"

namespace tutti {

/// Greatest number of dimensions of a tensor.
inline constexpr int kMaxDims = 8;

namespace detail {
/// Throws the ShapeError of more than kMaxDims dims.
[[noreturn]] TUTTI_API void throw_too_many_dims(std::size_t given);
}  // namespace detail

/// Sizes, strides or a list of dims. Made of a braced list, a vector or a span; ShapeError for more than
/// kMaxDims.
class Dims {
 public:
  constexpr Dims() noexcept = default;  ///< No dims: a single number.
  /// {2, 3}
  constexpr Dims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  /// Copies the values.
  constexpr Dims(std::span<const std::int64_t> values) {  // NOLINT: implicit
    if (values.size() > kMaxDims) detail::throw_too_many_dims(values.size());
    for (const std::int64_t value : values) values_[static_cast<std::size_t>(size_++)] = value;
  }
  /// Copies the values.
  Dims(const std::vector<std::int64_t>& values)
      : Dims(std::span<const std::int64_t>(values.data(), values.size())) {}  // NOLINT: implicit
  /// `count` times the same value.
  static constexpr Dims filled(int count, std::int64_t value) {
    Dims dims;
    for (int i = 0; i < count; ++i) dims.push_back(value);
    return dims;
  }

  constexpr int size() const noexcept { return size_; }         ///< How many there are.
  constexpr bool empty() const noexcept { return size_ == 0; }  ///< True if there are none.
  /// Value i of 0 to size() - 1; not checked.
  constexpr std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  /// The same, to be written.
  constexpr std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  constexpr const std::int64_t* begin() const noexcept { return values_; }        ///< First value.
  constexpr const std::int64_t* end() const noexcept { return values_ + size_; }  ///< Behind the last value.
  /// The last value; there must be one.
  constexpr std::int64_t back() const noexcept { return values_[static_cast<std::size_t>(size_ - 1)]; }
  /// Adds one at the end.
  constexpr void push_back(std::int64_t value) {
    if (size_ == kMaxDims) detail::throw_too_many_dims(kMaxDims + 1);
    values_[static_cast<std::size_t>(size_++)] = value;
  }
  /// Adds one in front of `position`, 0 to size().
  constexpr void insert(int position, std::int64_t value) {
    push_back(value);
    for (int i = size_ - 1; i > position; --i) (*this)[i] = (*this)[i - 1];
    (*this)[position] = value;
  }
  /// Removes the one at `position`.
  constexpr void erase(int position) noexcept {
    for (int i = position; i + 1 < size_; ++i) (*this)[i] = (*this)[i + 1];
    --size_;
  }
  /// Product of all values; 1 for none.
  constexpr std::int64_t product() const noexcept {
    std::uint64_t product = 1;  // unsigned: may wrap around on the way to a 0
    for (const std::int64_t value : *this) product *= static_cast<std::uint64_t>(value);
    return static_cast<std::int64_t>(product);
  }
  /// The values, for as long as this lives.
  operator std::span<const std::int64_t>() const noexcept {
    return {values_, static_cast<std::size_t>(size_)};
  }
  /// True for the same values in the same order.
  friend constexpr bool operator==(const Dims& a, const Dims& b) noexcept {
    bool equal = a.size_ == b.size_;
    for (int i = 0; equal && i < a.size_; ++i) equal = a[i] == b[i];
    return equal;
  }

 private:
  std::int64_t values_[kMaxDims] = {};
  int size_ = 0;
};

/// "[2, 3]".
TUTTI_API std::string to_text(const Dims& dims);
/// Sizes that both broadcast to, by NumPy's rule. Throws ShapeError naming both, and the operation if it is given.
TUTTI_API Dims broadcast_shapes(const Dims& a, const Dims& b, std::string_view op = {});

}  // namespace tutti
