// SPDX-License-Identifier: Apache-2.0
// Single elements of a view as double or int64: per-channel parameters, results of reductions. Not for inner
// loops.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

// Calls f with a null pointer of the element type of a dtype.
template <class F>
decltype(auto) visit_dtype(std::int32_t dtype, const F& f) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat64: return f(static_cast<double*>(nullptr));
    case DType::kFloat32: return f(static_cast<float*>(nullptr));
    case DType::kFloat16: return f(static_cast<Half*>(nullptr));
    case DType::kBFloat16: return f(static_cast<BFloat16*>(nullptr));
    case DType::kInt64: return f(static_cast<std::int64_t*>(nullptr));
    case DType::kInt32: return f(static_cast<std::int32_t*>(nullptr));
    case DType::kInt16: return f(static_cast<std::int16_t*>(nullptr));
    case DType::kInt8: return f(static_cast<std::int8_t*>(nullptr));
    case DType::kUInt8: return f(static_cast<std::uint8_t*>(nullptr));
    case DType::kBool: break;
  }
  return f(static_cast<bool*>(nullptr));
}

namespace detail {
template <class T, class Number>
T element_from(Number value) {
  if constexpr (std::is_same_v<T, Half> && std::is_integral_v<Number>) {
    return T(static_cast<float>(value));  // exact up to where infinity begins
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != Number{};
  } else {
    return static_cast<T>(value);
  }
}
}  // namespace detail

// values[i] for i < count from elements of any dtype that lie `stride` apart.
template <class Number>
void read_numbers(std::int32_t dtype, const void* data, std::int64_t stride, std::int64_t count,
                  Number* values) {
  visit_dtype(dtype, [&]<class T>(T*) {
    const T* source = static_cast<const T*>(data);
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<Number>(source[i * stride]);
  });
}
template <class Number>
void write_numbers(std::int32_t dtype, void* data, std::int64_t stride, std::int64_t count,
                   const Number* values) {
  visit_dtype(dtype, [&]<class T>(T*) {
    T* target = static_cast<T*>(data);
    for (std::int64_t i = 0; i < count; ++i) target[i * stride] = detail::element_from<T>(values[i]);
  });
}

}  // namespace tutti::cpu
