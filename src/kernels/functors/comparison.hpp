// SPDX-License-Identifier: Apache-2.0
// Comparisons, masks and selection.
#pragma once

#include "kernels/functors/traits.hpp"

namespace tutti::functors {

struct Equal {
  static constexpr const char* kName = "equal";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a, T b) const {
    return a == b;
  }
};

struct NotEqual {
  static constexpr const char* kName = "not_equal";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a, T b) const {
    return a != b;
  }
};

struct Less {
  static constexpr const char* kName = "less";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a, T b) const {
    return a < b;
  }
};

struct LessEqual {
  static constexpr const char* kName = "less_equal";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a, T b) const {
    return a <= b;
  }
};

struct Greater {
  static constexpr const char* kName = "greater";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a, T b) const {
    return a > b;
  }
};

struct GreaterEqual {
  static constexpr const char* kName = "greater_equal";
  static constexpr int kInputs = 2;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a, T b) const {
    return a >= b;
  }
};

struct LogicalNot {
  static constexpr const char* kName = "logical_not";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a) const {
    return a == T(0);
  }
};

struct IsFinite {
  static constexpr const char* kName = "is_finite";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a) const {
    return math::absolute(a) < static_cast<T>(__builtin_inf());
  }
};

struct IsNan {
  static constexpr const char* kName = "is_nan";
  static constexpr int kInputs = 1;
  static constexpr Takes kTakes = Takes::kFloating;
  static constexpr Result kResult = Result::kBool;
  template <class T>
  TUTTI_FUNCTOR bool operator()(T a) const {
    return a != a;
  }
};

// condition ? a : b
struct Where {
  static constexpr const char* kName = "where";
  static constexpr int kInputs = 3;
  static constexpr Takes kTakes = Takes::kAll;
  static constexpr Result kResult = Result::kWhere;
  template <class T>
  TUTTI_FUNCTOR T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

}  // namespace tutti::functors
