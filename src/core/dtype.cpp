// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/dtype.hpp"

namespace tutti {

const char* name(DType dtype) noexcept {
  constexpr const char* kNames[kDTypeCount] = {"float64", "float32", "float16", "bfloat16", "int64",
                                               "int32",   "int16",   "int8",    "uint8",    "bool"};
  const auto index = static_cast<std::size_t>(dtype);
  return index < kDTypeCount ? kNames[index] : "invalid dtype";
}

std::string to_text(DType dtype) { return name(dtype); }

// The numeric order of DType makes the lattice short: floating point before signed integers from wide to
// narrow, then uint8, then bool, so that the smaller value wins but for two pairs that hold neither the
// other.
DType promote_types(DType a, DType b) noexcept {
  if (a == b) return a;
  const DType strong = a < b ? a : b;
  const DType weak = a < b ? b : a;
  if (strong == DType::kFloat16 && weak == DType::kBFloat16) return DType::kFloat32;
  if (strong == DType::kInt8 && weak == DType::kUInt8) return DType::kInt16;
  return strong;
}

}  // namespace tutti
