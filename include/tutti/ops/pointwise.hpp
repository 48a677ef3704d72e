// SPDX-License-Identifier: Apache-2.0
/// \file
/// Element by element operations. Tensors broadcast against each other; dtypes promote by PyTorch's rules (a floating
/// operation on integers gives float32). All run on the current stream of their tensors' device and are differentiable
/// where a derivative exists. Errors: ShapeError where sizes do not broadcast, DeviceError for tensors on different
/// devices, DTypeError for a dtype that the operation does not take.
#pragma once

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

TUTTI_API Tensor add(const Tensor& a, const Tensor& b, double alpha = 1);  ///< a + alpha * b
TUTTI_API Tensor add(const Tensor& a, Scalar b);
TUTTI_API Tensor sub(const Tensor& a, const Tensor& b);
TUTTI_API Tensor sub(const Tensor& a, Scalar b);
TUTTI_API Tensor sub(Scalar a, const Tensor& b);
TUTTI_API Tensor mul(const Tensor& a, const Tensor& b);
TUTTI_API Tensor mul(const Tensor& a, Scalar b);
TUTTI_API Tensor div(const Tensor& a, const Tensor& b);  ///< True division: integers give float32.
TUTTI_API Tensor div(const Tensor& a, Scalar b);
TUTTI_API Tensor div(Scalar a, const Tensor& b);
TUTTI_API Tensor pow(const Tensor& base, const Tensor& exponent);
TUTTI_API Tensor pow(const Tensor& base, Scalar exponent);
TUTTI_API Tensor neg(const Tensor& x);
TUTTI_API Tensor exp(const Tensor& x);
TUTTI_API Tensor log(const Tensor& x);
TUTTI_API Tensor sqrt(const Tensor& x);
TUTTI_API Tensor tanh(const Tensor& x);
TUTTI_API Tensor sigmoid(const Tensor& x);
TUTTI_API Tensor relu(const Tensor& x);  ///< max(x, 0); NaN stays NaN.
/// The same of a temporary, as in relu(conv(x)): takes over its memory if it is the result of a recorded operation that nobody
/// else sees.
TUTTI_API Tensor relu(Tensor&& x);

/// Form of gelu: x * Phi(x) with the normal distribution's Phi, or its tanh approximation [Hendrycks and Gimpel 2016].
enum class GeluForm : std::uint8_t { kErf, kTanh };
TUTTI_API Tensor gelu(const Tensor& x, GeluForm form = GeluForm::kErf);

// Comparisons: bool, not differentiable.
TUTTI_API Tensor eq(const Tensor& a, const Tensor& b);
TUTTI_API Tensor eq(const Tensor& a, Scalar b);
TUTTI_API Tensor ne(const Tensor& a, const Tensor& b);
TUTTI_API Tensor ne(const Tensor& a, Scalar b);
TUTTI_API Tensor lt(const Tensor& a, const Tensor& b);
TUTTI_API Tensor lt(const Tensor& a, Scalar b);
TUTTI_API Tensor le(const Tensor& a, const Tensor& b);
TUTTI_API Tensor le(const Tensor& a, Scalar b);
TUTTI_API Tensor gt(const Tensor& a, const Tensor& b);
TUTTI_API Tensor gt(const Tensor& a, Scalar b);
TUTTI_API Tensor ge(const Tensor& a, const Tensor& b);
TUTTI_API Tensor ge(const Tensor& a, Scalar b);
TUTTI_API Tensor logical_not(const Tensor& x);
TUTTI_API Tensor isfinite(const Tensor& x);
TUTTI_API Tensor isnan(const Tensor& x);
/// a where condition (bool) is true, else b.
TUTTI_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator-(Scalar a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator/(Scalar a, const Tensor& b) { return div(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<(const Tensor& a, Scalar b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator<=(const Tensor& a, Scalar b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>(const Tensor& a, Scalar b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator>=(const Tensor& a, Scalar b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator==(const Tensor& a, Scalar b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator!=(const Tensor& a, Scalar b) { return ne(a, b); }

}  // namespace tutti
