// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/blocks.hpp"

#include <cstring>

namespace tutti::cpu {
namespace {

template <class T>
void put(ScalarElement& element, T value) noexcept {
  std::memcpy(element.bytes, &value, sizeof(T));
}

}  // namespace

ScalarElement make_scalar(const tutti_scalar& value, std::int32_t dtype) noexcept {
  ScalarElement element{};
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat64: put(element, value.f); break;
    case DType::kFloat32: put(element, static_cast<float>(value.f)); break;
    case DType::kFloat16: put(element, Half(value.f).bits); break;
    case DType::kBFloat16: put(element, BFloat16(value.f).bits); break;
    case DType::kInt64: put(element, value.i); break;
    case DType::kInt32: put(element, static_cast<std::int32_t>(value.i)); break;
    case DType::kInt16: put(element, static_cast<std::int16_t>(value.i)); break;
    case DType::kInt8: put(element, static_cast<std::int8_t>(value.i)); break;
    case DType::kUInt8: put(element, static_cast<std::uint8_t>(value.i)); break;
    case DType::kBool: put(element, value.i != 0); break;
  }
  return element;
}

}  // namespace tutti::cpu
