// SPDX-License-Identifier: Apache-2.0
// The list of all pointwise functors: every backend builds its table from it in this order, so a functor that
// a backend forgets is a compile error. dispatch::pointwise<F> finds F's position at compile time.
#pragma once

#include "kernels/functors/activation.hpp"  // Relu Sigmoid Tanh Gelu GeluTanh and their gradients
#include "kernels/functors/arithmetic.hpp"  // Add Sub Mul Div Pow AddScaled Neg Exp Log Sqrt and their gradients
#include "kernels/functors/comparison.hpp"  // Equal NotEqual Less ... LogicalNot IsFinite IsNan Where
#include "kernels/functors/type_list.hpp"

namespace tutti::functors {

using Arithmetic = TypeList<Add, Sub, Mul, Div, DivGradDenominator, AddScaled, Pow, PowGradBase,
                            PowGradExponent, PowScalar, PowScalarGrad, Neg, Exp, Log, Sqrt, SqrtGrad>;
using Activations =
    TypeList<Relu, ReluGrad, Sigmoid, SigmoidGrad, Tanh, TanhGrad, Gelu, GeluGrad, GeluTanh, GeluTanhGrad>;
using Comparisons =
    TypeList<Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalNot, IsFinite, IsNan, Where>;

using Pointwise = Joined<Arithmetic, Activations, Comparisons>;

}  // namespace tutti::functors
