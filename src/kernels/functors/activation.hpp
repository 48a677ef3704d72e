// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients. gy is the gradient of the result y of input x.
#pragma once

#include "kernels/functors/traits.hpp"

namespace tutti::functors {

// NaN stays NaN.
struct Relu {
  static constexpr const char* kName = "relu";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kNumeric;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

struct ReluGrad {
  static constexpr const char* kName = "relu_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T y) const {
    return y <= T(0) ? T(0) : gy;
  }
};

struct Sigmoid {
  static constexpr const char* kName = "sigmoid";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T x) const {
    return math::sigmoid(x);
  }
};

struct SigmoidGrad {
  static constexpr const char* kName = "sigmoid_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T y) const {
    return gy * ((T(1) - y) * y);
  }
};

struct Tanh {
  static constexpr const char* kName = "tanh";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T x) const {
    return math::tanh(x);
  }
};

struct TanhGrad {
  static constexpr const char* kName = "tanh_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T y) const {
    return gy * (T(1) - y * y);
  }
};

namespace detail {
// Beyond the bound the tails below are 0 in T; it keeps infinity * 0 out of the products.
template <class T>
TUTTI_FUNCTOR T bounded_magnitude(T x) {
  const T bound = std::is_same_v<T, float> ? T(14.4) : T(40);
  const T magnitude = math::absolute(x);
  return magnitude > bound ? bound : magnitude;
}
}  // namespace detail

// x Phi(x), Phi the normal distribution (Hendrycks and Gimpel 2016). Written with the tail Q(t) = Phi(-t), t
// = |x|, so that nothing cancels for negative x.
struct Gelu {
  static constexpr const char* kName = "gelu";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T x) const {
    const T t = detail::bounded_magnitude(x);
    return (x < T(0) ? T(0) : x) - t * math::normal_tail(t).tail;
  }
};

// Phi(x) + x phi(x)
struct GeluGrad {
  static constexpr const char* kName = "gelu_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T x) const {
    const T t = detail::bounded_magnitude(x);
    const math::NormalTail<T> normal = math::normal_tail(t);
    const T tail = normal.tail - t * normal.density;
    return gy * (x < T(0) ? tail : T(1) - tail);
  }
};

namespace detail {
// tanh form of GELU: 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr double kTwoSqrtTwoOverPi = 1.59576912160573071176;
inline constexpr double kCubic = 0.044715;
}  // namespace detail

struct GeluTanh {
  static constexpr const char* kName = "gelu_tanh";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T x) const {
    const T t = detail::bounded_magnitude(x);
    const T scale = static_cast<T>(detail::kTwoSqrtTwoOverPi);
    const T e = math::exp_negated(scale * t * (T(1) + static_cast<T>(detail::kCubic) * (t * t)));
    return (x < T(0) ? -t * e : x) / (T(1) + e);
  }
};

// s + x s (1 - s) 2 u', s = sigmoid(2 u)
struct GeluTanhGrad {
  static constexpr const char* kName = "gelu_tanh_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T x) const {
    const T t = detail::bounded_magnitude(x);
    const T scale = static_cast<T>(detail::kTwoSqrtTwoOverPi);
    const T square = static_cast<T>(detail::kCubic) * (t * t);
    const T e = math::exp_negated(scale * t * (T(1) + square));
    const T tail = e / (T(1) + e);  // sigmoid(-2 u) at t
    const T slope = t * tail * (T(1) - tail) * (scale * (T(1) + T(3) * square));
    return gy * (x < T(0) ? tail - slope : (T(1) - tail) + slope);
  }
};

}  // namespace tutti::functors
