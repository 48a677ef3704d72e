// SPDX-License-Identifier: Apache-2.0
// What a functor tells its callers.
//
//   struct F {
//     static constexpr const char* kName = "f";           for messages
//     static constexpr int kInputs = 2;
//     static constexpr Takes kTakes = Takes::kNumeric;    dtypes of its inputs
//     static constexpr Result kResult = Result::kSame;    dtype of its result
//     F(const double* params);                            only if it has constants (tutti_pointwise::params)
//     template <class T> T operator()(T a, T b) const;    T: float, double or an integer; f16 and bf16 come
//     as float
//   };
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/functors/math.hpp"

namespace tutti::functors {

enum class Takes {
  kFloating,  // f64 f32 f16 bf16
  kNumeric,   // and i64 i32 i16 i8 u8
  kAll,       // and bool
};

enum class Result {
  kSame,   // the inputs' dtype
  kBool,   // bool
  kWhere,  // the first input is bool, the others and the result have one dtype
};

namespace detail {

// Integers wrap around: computed in an unsigned type at least as wide as int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;

template <class T>
TUTTI_FUNCTOR Wrapping<T> wrap(T x) {
  return static_cast<Wrapping<T>>(x);
}

}  // namespace detail

// Calls body with an F made of the constants; PowScalar picks a simpler functor for the usual exponents
// instead.
template <class F, class Body>
TUTTI_FUNCTOR void with_constants(const double* params, const Body& body) {
  if constexpr (requires { F::specialise(params, body); }) {
    F::specialise(params, body);
  } else if constexpr (std::is_constructible_v<F, const double*>) {
    body(F{params});
  } else {
    body(F{});
  }
}

}  // namespace tutti::functors
