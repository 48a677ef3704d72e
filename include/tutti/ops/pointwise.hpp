// SPDX-License-Identifier: Apache-2.0
/// \file
/// Element by element operations. Tensors broadcast against each other; dtypes promote by PyTorch's rules (a floating
/// operation on integers gives float32). All run on the current stream of their tensors' device and are differentiable
/// where a derivative exists. Errors: ShapeError where sizes do not broadcast, DeviceError for tensors on different
/// devices, DTypeError for a dtype that the operation does not take.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// \name Arithmetic
/// Tensors broadcast to the common shape S; the result has shape S and the promoted dtype. A gradient g of shape S is summed
/// over the dims that were broadcast and has the input's shape and dtype. A number beside a tensor takes the tensor's shape
/// and changes its dtype only where it is of a higher kind (int64 + 1.5 is float32); it gets no gradient. Where the result has
/// an integer dtype, a number (alpha is one too) outside that dtype's range is a ValueError, but for those from -255 to -1
/// beside uint8, which wrap around: x + -1 is x + 255, as x - 1 is.
/// \{

/// a + alpha * b. da = g, db = alpha g. bool adds as "or". DTypeError for integer tensors with an alpha that is no integer, and
/// for bool ones with any but 1.
TUTTI_API Tensor add(const Tensor& a, const Tensor& b, double alpha = 1);
/// a + b with a number. da = g.
TUTTI_API Tensor add(const Tensor& a, Scalar b);
/// a - b. da = g, db = -g. DTypeError for two bool ones: use ne() or logical_not().
TUTTI_API Tensor sub(const Tensor& a, const Tensor& b);
/// a - b with a number. da = g. DTypeError for a bool tensor, whatever the number.
TUTTI_API Tensor sub(const Tensor& a, Scalar b);
/// a - b where a is the number. db = -g. DTypeError as above.
TUTTI_API Tensor sub(Scalar a, const Tensor& b);
/// a * b. da = g b, db = g a. bool multiplies as "and".
TUTTI_API Tensor mul(const Tensor& a, const Tensor& b);
/// a * b with a number. da = g b.
TUTTI_API Tensor mul(const Tensor& a, Scalar b);
/// a / b, a true division: integers and bool give float32; x / 0 is an infinity or NaN. da = g / b, db = -g a / b^2.
TUTTI_API Tensor div(const Tensor& a, const Tensor& b);
/// a / b with a number. da = g / b.
TUTTI_API Tensor div(const Tensor& a, Scalar b);
/// a / b where a is the number. db = -g a / b^2.
TUTTI_API Tensor div(Scalar a, const Tensor& b);
/// base to the power of exponent. dbase = g e base^(e-1), dexponent = g base^e ln base (0 where base is 0 and e >= 0).
/// Integers stay integers and wrap around.
TUTTI_API Tensor pow(const Tensor& base, const Tensor& exponent);
/// The same with a number. dbase = g e base^(e-1). ValueError for integers to a negative integer power, or to one that their
/// dtype can't hold.
TUTTI_API Tensor pow(const Tensor& base, Scalar exponent);

/// \}
/// \name Functions of one tensor
/// The result has x's shape and, except for neg and relu, a floating dtype: that of x, or float32 if x has integers or bool.
/// Below, y is the result and g its gradient, of x's shape and dtype.
/// \{

TUTTI_API Tensor neg(const Tensor& x);      ///< -x in x's dtype. dx = -g. DTypeError for bool.
TUTTI_API Tensor exp(const Tensor& x);      ///< e^x. dx = g y.
TUTTI_API Tensor log(const Tensor& x);      ///< Natural logarithm; -infinity at 0, NaN below. dx = g / x.
TUTTI_API Tensor sqrt(const Tensor& x);     ///< Square root; NaN below 0. dx = g / (2 y).
TUTTI_API Tensor tanh(const Tensor& x);     ///< Hyperbolic tangent. dx = g (1 - y^2).
TUTTI_API Tensor sigmoid(const Tensor& x);  ///< 1 / (1 + e^-x), without overflow. dx = g y (1 - y).
/// max(x, 0) in x's dtype; NaN stays NaN. dx = g where y > 0, else 0. DTypeError for bool.
TUTTI_API Tensor relu(const Tensor& x);
/// The same of a temporary, as in relu(conv(x)): takes over its memory if it is the result of a recorded operation that nobody
/// else sees.
TUTTI_API Tensor relu(Tensor&& x);

/// Form of gelu: x * Phi(x) with the normal distribution's Phi, or its tanh approximation [Hendrycks and Gimpel 2016].
enum class GeluForm : std::uint8_t { kErf, kTanh };
/// x * Phi(x), or 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). dx = g (Phi(x) + x phi(x)), or the derivative of the
/// approximation. DTypeError unless x is floating.
TUTTI_API Tensor gelu(const Tensor& x, GeluForm form = GeluForm::kErf);

/// \}
/// \name Comparisons
/// bool, of the broadcast shape; compared in the promoted dtype; not differentiable. NaN is unequal to everything, and neither
/// less nor greater. ValueError for a number that the promoted dtype, if it is an integer one, can't hold: it would be compared as
/// another number. So for negative ones beside uint8.
/// \{

TUTTI_API Tensor eq(const Tensor& a, const Tensor& b);  ///< a == b.
TUTTI_API Tensor eq(const Tensor& a, Scalar b);         ///< a == b with a number.
TUTTI_API Tensor ne(const Tensor& a, const Tensor& b);  ///< a != b.
TUTTI_API Tensor ne(const Tensor& a, Scalar b);         ///< a != b with a number.
TUTTI_API Tensor lt(const Tensor& a, const Tensor& b);  ///< a < b.
TUTTI_API Tensor lt(const Tensor& a, Scalar b);         ///< a < b with a number.
TUTTI_API Tensor le(const Tensor& a, const Tensor& b);  ///< a <= b.
TUTTI_API Tensor le(const Tensor& a, Scalar b);         ///< a <= b with a number.
TUTTI_API Tensor gt(const Tensor& a, const Tensor& b);  ///< a > b.
TUTTI_API Tensor gt(const Tensor& a, Scalar b);         ///< a > b with a number.
TUTTI_API Tensor ge(const Tensor& a, const Tensor& b);  ///< a >= b.
TUTTI_API Tensor ge(const Tensor& a, Scalar b);         ///< a >= b with a number.
TUTTI_API Tensor logical_not(const Tensor& x);          ///< True where x is 0; any dtype.
TUTTI_API Tensor isfinite(const Tensor& x);  ///< False where x is NaN or infinite; integers are finite.
TUTTI_API Tensor isnan(const Tensor& x);     ///< True where x is NaN; integers never are.

/// \}

/// a where condition (bool, else DTypeError) is true, else b; all three broadcast, a and b promote. da = g where condition is
/// true and 0 elsewhere, db the other way round.
TUTTI_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

/// \name Operators
/// The functions above under their signs; == and != compare element by element, so give a tensor.
/// \{

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
/// \}

namespace detail {
/// A Tensor or what derives from it, named or temporary: x[0] += 1 writes x.
template <class T>
concept WritableTensor =
    std::derived_from<std::remove_reference_t<T>, Tensor> && !std::is_const_v<std::remove_reference_t<T>>;
}  // namespace detail

/// \name Assigning operators
/// Tensor's add_(), sub_(), mul_() and div_() under their signs: they write the memory of `a`, with the rules and errors that
/// stand there, and return `a`.
/// \{

template <detail::WritableTensor T>
T&& operator+=(T&& a, const Tensor& b) {
  a.add_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator+=(T&& a, Scalar b) {
  a.add_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator-=(T&& a, const Tensor& b) {
  a.sub_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator-=(T&& a, Scalar b) {
  a.sub_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator*=(T&& a, const Tensor& b) {
  a.mul_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator*=(T&& a, Scalar b) {
  a.mul_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator/=(T&& a, const Tensor& b) {
  a.div_(b);
  return std::forward<T>(a);
}
template <detail::WritableTensor T>
T&& operator/=(T&& a, Scalar b) {
  a.div_(b);
  return std::forward<T>(a);
}
/// \}

}  // namespace tutti
