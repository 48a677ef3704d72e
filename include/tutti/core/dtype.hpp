// SPDX-License-Identifier: Apache-2.0
/// \file
/// Element types, their names and sizes, and PyTorch's promotion rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/core/export.hpp"
#include "tutti/core/half.hpp"

namespace tutti {

/// Element type of a tensor. The numeric values are part of the backend's C interface.
enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
};

/// Number of dtypes.
inline constexpr int kDTypeCount = 10;

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  constexpr std::uint8_t kSizes[kDTypeCount] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  return kSizes[static_cast<std::size_t>(dtype)];
}
/// True for f64, f32, f16 and bf16.
constexpr bool is_floating_point(DType dtype) noexcept { return dtype <= DType::kBFloat16; }
/// True for the integer dtypes; bool counts only if asked for.
constexpr bool is_integral(DType dtype, bool include_bool = false) noexcept {
  return dtype >= DType::kInt64 && (dtype <= DType::kUInt8 || (include_bool && dtype == DType::kBool));
}

/// PyTorch's name of the dtype: "float32", "bfloat16", "int64", "bool", ...
TUTTI_API const char* name(DType dtype) noexcept;
/// The same, for messages.
TUTTI_API std::string to_text(DType dtype);

/// The dtype that holds both, by PyTorch's lattice between two dimensioned tensors (torch.promote_types).
TUTTI_API DType promote_types(DType a, DType b) noexcept;

/// Maps a C++ element type to its dtype: dtype_of<float> is kFloat32.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no tutti dtype for this C++ type");
  return DType::kFloat32;
}();
template <>
inline constexpr DType dtype_of<double> = DType::kFloat64;
template <>
inline constexpr DType dtype_of<float> = DType::kFloat32;
template <>
inline constexpr DType dtype_of<Half> = DType::kFloat16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::kInt64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::kInt32;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::kInt16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::kInt8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::kUInt8;
template <>
inline constexpr DType dtype_of<bool> = DType::kBool;

}  // namespace tutti
