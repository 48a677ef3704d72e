// SPDX-License-Identifier: Apache-2.0
// Makes the table of a list of functors; included by isa/pointwise_*.cpp.
#pragma once

#include <type_traits>

#include "kernels/cpu/isa/pointwise.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

using functors::Result;
using functors::Takes;

// Body of with_constants: runs functor G, which is F or a simpler form of it, over the arrays. The pragma
// allows out to be one of the inputs, but no other overlap.
template <class F, class T, bool kFirstScalar, bool kSecondScalar>
struct ArrayLoop {
  static constexpr bool kFloating = std::is_floating_point_v<T>;
  using Out = std::conditional_t<F::kResult == Result::kBool, bool, T>;
  // A condition is read as a byte: GCC 12 vectorises comparisons of bytes, not of bool.
  using First = std::conditional_t<F::kResult == Result::kWhere, std::uint8_t, T>;

  void* out;
  const void* const* in;
  std::int64_t count;

  [[gnu::always_inline]] static auto as_argument(First x) {
    if constexpr (F::kResult == Result::kWhere) {
      return x != 0;
    } else {
      return x;
    }
  }

  template <class G>
  [[gnu::always_inline]] inline void operator()(const G g) const {
    Out* result = static_cast<Out*>(out);
    const First* a = static_cast<const First*>(in[0]);
    if constexpr (F::kInputs == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) result[i] = g(a[i]);
    } else if constexpr (F::kInputs == 2) {
      const T* b = static_cast<const T*>(in[1]);
      if constexpr (kFirstScalar) {
        const T first = *a;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) result[i] = g(first, b[i]);
      } else if constexpr (kSecondScalar) {
        const T second = *b;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) result[i] = g(a[i], second);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) result[i] = g(a[i], b[i]);
      }
    } else {
      const T* b = static_cast<const T*>(in[1]);
      const T* c = static_cast<const T*>(in[2]);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) result[i] = g(as_argument(a[i]), b[i], c[i]);
    }
  }
};

template <class F, class T, bool kFirstScalar, bool kSecondScalar>
void run_loop(void* out, const void* const* in, std::int64_t count, const double* params) {
  functors::with_constants<F>(params, ArrayLoop<F, T, kFirstScalar, kSecondScalar>{out, in, count});
}

template <class F, class T>
constexpr PointwiseLoops loops_of() {
  constexpr bool kTaken = std::is_floating_point_v<T> || F::kTakes == Takes::kAll ||
                          (F::kTakes == Takes::kNumeric && !std::is_same_v<T, bool>);
  if constexpr (!kTaken) {
    return {nullptr, nullptr, nullptr};
  } else if constexpr (F::kInputs == 2 && std::is_floating_point_v<T>) {
    return {&run_loop<F, T, false, false>, &run_loop<F, T, true, false>, &run_loop<F, T, false, true>};
  } else {
    return {&run_loop<F, T, false, false>, nullptr, nullptr};
  }
}

template <class F>
constexpr PointwiseRow row_of() {
  return {{loops_of<F, double>(), loops_of<F, float>(), loops_of<F, float>(), loops_of<F, float>(),
           loops_of<F, std::int64_t>(), loops_of<F, std::int32_t>(), loops_of<F, std::int16_t>(),
           loops_of<F, std::int8_t>(), loops_of<F, std::uint8_t>(), loops_of<F, bool>()}};
}

template <class... Fs>
constexpr PointwiseTable<functors::TypeList<Fs...>> table_of(functors::TypeList<Fs...>) {
  return {{row_of<Fs>()...}};
}

}  // namespace
}  // namespace tutti::cpu::TUTTI_ISA
