// SPDX-License-Identifier: Apache-2.0
/// \file
/// Functions that make tensors: row-major, without gradient, on the CPU and of float32 unless said otherwise.
/// They throw ShapeError for negative or too large sizes, DeviceError for a device that is not there,
/// MemoryError.
///
/// Random ones draw from `generator`, or from the calling thread's default generator. Element i in row-major
/// order draws the numbers at place i of the sequence: the values depend on neither threads, device nor
/// layout.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/core/random.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

namespace detail {
/// A CPU tensor with the bytes at `data`: `count` elements of `dtype`. ShapeError if the sizes hold another
/// number.
TUTTI_API Tensor copy_in(const void* data, std::size_t count, const Dims& sizes, DType dtype);
}  // namespace detail

/// Uninitialised.
TUTTI_API Tensor empty(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {});
/// Uninitialised, with given strides (in elements, not negative); the memory is just large enough.
TUTTI_API Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype = DType::kFloat32,
                               Device device = {});
/// All 0.
TUTTI_API Tensor zeros(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {});
/// All 1.
TUTTI_API Tensor ones(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {});
/// All `value`. ValueError if an integer dtype can't hold it.
TUTTI_API Tensor full(const Dims& sizes, Scalar value, DType dtype = DType::kFloat32, Device device = {});

/// 0, 1, ... below end. int64 for an integer, else float32.
TUTTI_API Tensor arange(Scalar end);
/// start, start + step, ... below end (above it for a negative step). int64 if all three are integers, else
/// float32. ValueError if step is 0 or leads away from end, or a number is not finite.
TUTTI_API Tensor arange(Scalar start, Scalar end, Scalar step = 1);
/// The same of any dtype but bool. ValueError if an integer dtype can't hold a value.
TUTTI_API Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype, Device device = {});
/// `steps` numbers at equal distances from start to end, both included.
TUTTI_API Tensor linspace(double start, double end, std::int64_t steps, DType dtype = DType::kFloat32,
                          Device device = {});
/// [rows, columns] with 1 on the diagonal and 0 elsewhere; columns -1: as many as rows.
TUTTI_API Tensor eye(std::int64_t rows, std::int64_t columns = -1, DType dtype = DType::kFloat32,
                     Device device = {});

/// Uniform in [0, 1). DTypeError for a dtype that is not floating-point.
TUTTI_API Tensor rand(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {},
                      Generator* generator = nullptr);
/// Standard normal. DTypeError for a dtype that is not floating-point.
TUTTI_API Tensor randn(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {},
                       Generator* generator = nullptr);
/// Uniform integers in [low, high). ValueError if there is none or the dtype can't hold them.
TUTTI_API Tensor randint(std::int64_t low, std::int64_t high, const Dims& sizes, DType dtype = DType::kInt64,
                         Device device = {}, Generator* generator = nullptr);
/// Uniform integers in [low, high) of the other's sizes, dtype and device. ValueError as for randint.
TUTTI_API Tensor randint_like(const Tensor& other, std::int64_t low, std::int64_t high,
                              Generator* generator = nullptr);
/// The integers 0 to count - 1 in random order, int64; all orders are equally likely. Shuffled on the host
/// (Fisher-Yates).
TUTTI_API Tensor randperm(std::int64_t count, Device device = {}, Generator* generator = nullptr);

/// Uninitialised; keeps sizes, dtype, device and the order of dims in memory, as do the others.
TUTTI_API Tensor empty_like(const Tensor& other);
TUTTI_API Tensor zeros_like(const Tensor& other);                                  ///< All 0.
TUTTI_API Tensor ones_like(const Tensor& other);                                   ///< All 1.
TUTTI_API Tensor full_like(const Tensor& other, Scalar value);                     ///< All `value`.
TUTTI_API Tensor rand_like(const Tensor& other, Generator* generator = nullptr);   ///< Uniform in [0, 1).
TUTTI_API Tensor randn_like(const Tensor& other, Generator* generator = nullptr);  ///< Standard normal.

/// A 0-dim tensor: float32, int64 or bool by the number's kind.
TUTTI_API Tensor scalar_tensor(Scalar value);
/// A 0-dim tensor of a dtype.
TUTTI_API Tensor scalar_tensor(Scalar value, DType dtype, Device device = {});
/// Copies numbers: tensor({1.0, 2.0}) is float32 [2] for double and float lists; use the vector form for
/// float64.
TUTTI_API Tensor tensor(std::initializer_list<double> values, DType dtype = DType::kFloat32);
/// Copies a vector, of dtype dtype_of<T>. ShapeError if the sizes' product is not the vector's length.
template <class T>
Tensor tensor(const std::vector<T>& values, const Dims& sizes) {
  if constexpr (std::same_as<T, bool>) {  // a vector<bool> has no array of bool
    const std::vector<std::uint8_t> bytes(values.begin(), values.end());
    return detail::copy_in(bytes.data(), bytes.size(), sizes, DType::kBool);
  } else {
    return detail::copy_in(values.data(), values.size(), sizes, dtype_of<T>);
  }
}
/// The same as [values.size()].
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return tensor(values, {static_cast<std::int64_t>(values.size())});
}
/// Wraps memory that somebody else owns, of at least as many bytes as sizes and strides (in elements; empty: row-major) reach. It
/// must outlive all uses, failed operations of process groups too, or be held by `release`, which runs when the last view dies,
/// on the thread that drops it, and must not throw (it has run if this throws). ValueError for a null pointer unless empty.
TUTTI_API Tensor from_blob(void* data, const Dims& sizes, DType dtype, const Dims& strides = {},
                           Device device = {}, std::function<void()> release = {});

}  // namespace tutti
