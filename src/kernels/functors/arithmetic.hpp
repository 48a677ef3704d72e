// SPDX-License-Identifier: Apache-2.0
// Arithmetic, powers, exponential and logarithm, and their gradients. gy is the gradient of the result y.
#pragma once

#include "kernels/functors/traits.hpp"

namespace tutti::functors {

struct Add {
  static constexpr const char* kName = "add";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;  // bool: or
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      return static_cast<T>(detail::wrap(a) + detail::wrap(b));
    }
  }
};

struct Sub {
  static constexpr const char* kName = "sub";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kNumeric;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a - b;
    } else {
      return static_cast<T>(detail::wrap(a) - detail::wrap(b));
    }
  }
};

struct Mul {
  static constexpr const char* kName = "mul";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;  // bool: and
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(detail::wrap(a) * detail::wrap(b));
    }
  }
};

struct Div {
  static constexpr const char* kName = "div";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a, T b) const {
    return a / b;
  }
};

// d(a/b)/db = -a / b^2
struct DivGradDenominator {
  static constexpr const char* kName = "div_grad_denominator";
  static constexpr int kInputs = 3;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a, T b) const {
    return -gy * ((a / b) / b);  // b * b could overflow
  }
};

// a + alpha * b
struct AddScaled {
  static constexpr const char* kName = "add_scaled";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kNumeric;
  static constexpr Result kResult = Result::kSame;
  double alpha;
  TUTTI_FUNCTOR explicit AddScaled(const double* params) : alpha(params[0]) {}
  template <class T>
  TUTTI_FUNCTOR T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a + static_cast<T>(alpha) * b;
    } else {
      const auto factor = static_cast<detail::Wrapping<T>>(static_cast<std::int64_t>(alpha));
      return static_cast<T>(detail::wrap(a) + factor * detail::wrap(b));
    }
  }
};

// a^b. Integers: by squaring, wrapping around; a negative exponent gives the truncated value of 1 / a^-b (0,
// 1 or -1).
struct Pow {
  static constexpr const char* kName = "pow";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kNumeric;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return math::pow(a, b);
    } else {
      if (b < T(0)) {
        if (a == T(1)) return T(1);
        const bool minus_one = std::is_signed_v<T> && a == static_cast<T>(-1);
        return minus_one ? static_cast<T>((b & T(1)) != 0 ? -1 : 1) : T(0);
      }
      detail::Wrapping<T> result = 1;
      detail::Wrapping<T> square = detail::wrap(a);
      for (auto rest = detail::wrap(b); rest != 0; rest >>= 1U) {
        if ((rest & 1U) != 0) result *= square;
        square *= square;
      }
      return static_cast<T>(result);
    }
  }
};

// d(a^b)/da = b a^(b-1), 0 where b is 0 (also at a = 0)
struct PowGradBase {
  static constexpr const char* kName = "pow_grad_base";
  static constexpr int kInputs = 3;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a, T b) const {
    const T gradient = gy * (b * math::pow(a, b - T(1)));
    return b == T(0) ? T(0) : gradient;
  }
};

// d(a^b)/db = a^b log(a), 0 where a is 0 and b not negative
struct PowGradExponent {
  static constexpr const char* kName = "pow_grad_exponent";
  static constexpr int kInputs = 3;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a, T b) const {
    const T gradient = gy * (math::pow(a, b) * math::log(a));
    return ((a == T(0)) & (b >= T(0))) ? T(0) : gradient;
  }
};

namespace detail {
// a^kExponent, and its derivative, for the exponents that need no power function.
struct Square {
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return Mul{}(a, a);
  }
};
struct Cube {
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return Mul{}(Mul{}(a, a), a);
  }
};
struct Identity {
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return a;
  }
};
struct SquareRoot {
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return math::sqrt(a);
  }
};
struct Reciprocal {
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return T(1) / a;
  }
};
struct SquareGrad {
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a) const {
    return gy * (T(2) * a);
  }
};
struct CubeGrad {
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a) const {
    return gy * (T(3) * (a * a));
  }
};
struct IdentityGrad {
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T) const {
    return gy;
  }
};
struct ZeroGrad {
  template <class T>
  TUTTI_FUNCTOR T operator()(T, T) const {
    return T(0);
  }
};
struct SquareRootGrad {
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a) const {
    return gy * (T(0.5) / math::sqrt(a));
  }
};
struct ReciprocalGrad {
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a) const {
    return -gy * (T(1) / (a * a));
  }
};
}  // namespace detail

// a^e, e = params[0]
struct PowScalar {
  static constexpr const char* kName = "pow_scalar";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kNumeric;
  static constexpr Result kResult = Result::kSame;
  double exponent;
  TUTTI_FUNCTOR explicit PowScalar(const double* params) : exponent(params[0]) {}
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return Pow{}(a, static_cast<T>(exponent));
  }
  template <class Body>
  TUTTI_FUNCTOR static void specialise(const double* params, const Body& body) {
    const double e = params[0];
    if (e == 2.0) return body(detail::Square{});
    if (e == 3.0) return body(detail::Cube{});
    if (e == 1.0) return body(detail::Identity{});
    if constexpr (Body::kFloating) {
      if (e == 0.5) return body(detail::SquareRoot{});
      if (e == -1.0) return body(detail::Reciprocal{});
    }
    body(PowScalar{params});
  }
};

// d(a^e)/da = e a^(e-1), 0 for e = 0
struct PowScalarGrad {
  static constexpr const char* kName = "pow_scalar_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  double exponent;
  TUTTI_FUNCTOR explicit PowScalarGrad(const double* params) : exponent(params[0]) {}
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T a) const {
    return PowGradBase{}(gy, a, static_cast<T>(exponent));
  }
  template <class Body>
  TUTTI_FUNCTOR static void specialise(const double* params, const Body& body) {
    const double e = params[0];
    if (e == 2.0) return body(detail::SquareGrad{});
    if (e == 3.0) return body(detail::CubeGrad{});
    if (e == 1.0) return body(detail::IdentityGrad{});
    if (e == 0.0) return body(detail::ZeroGrad{});
    if (e == 0.5) return body(detail::SquareRootGrad{});
    if (e == -1.0) return body(detail::ReciprocalGrad{});
    body(PowScalarGrad{params});
  }
};

struct Neg {
  static constexpr const char* kName = "neg";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kNumeric;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) {
      return -a;
    } else {
      return static_cast<T>(0U - detail::wrap(a));
    }
  }
};

struct Exp {
  static constexpr const char* kName = "exp";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return math::exp(a);
  }
};

struct Log {
  static constexpr const char* kName = "log";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return math::log(a);
  }
};

struct Sqrt {
  static constexpr const char* kName = "sqrt";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T a) const {
    return math::sqrt(a);
  }
};

// d sqrt(a)/da = 1 / (2 y)
struct SqrtGrad {
  static constexpr const char* kName = "sqrt_grad";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kSame;
  template <class T>
  TUTTI_FUNCTOR T operator()(T gy, T y) const {
    return gy / (T(2) * y);
  }
};

}  // namespace tutti::functors
