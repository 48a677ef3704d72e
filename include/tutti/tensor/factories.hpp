// SPDX-License-Identifier: Apache-2.0
/// \file
/// Functions that make tensors. Row-major, no gradient. Random ones draw from `generator`, or from the calling
/// thread's default generator.
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
/// A CPU tensor with the bytes at `data`: `count` elements of `dtype`. ShapeError if the sizes hold another number.
TUTTI_API Tensor copy_in(const void* data, std::size_t count, const Dims& sizes, DType dtype);
}  // namespace detail

TUTTI_API Tensor empty(const Dims& sizes, DType dtype = DType::kFloat32,
                       Device device = {});  ///< Uninitialised.
/// Uninitialised, with given strides: the memory is just large enough.
TUTTI_API Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype = DType::kFloat32,
                               Device device = {});
TUTTI_API Tensor zeros(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {});
TUTTI_API Tensor ones(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {});
TUTTI_API Tensor full(const Dims& sizes, Scalar value, DType dtype = DType::kFloat32, Device device = {});
/// start, start + step, ... below end. dtype of the overloads without one: int64 for integers, else float32.
TUTTI_API Tensor arange(Scalar end);
TUTTI_API Tensor arange(Scalar start, Scalar end, Scalar step = 1);
TUTTI_API Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype, Device device = {});
TUTTI_API Tensor linspace(double start, double end, std::int64_t steps, DType dtype = DType::kFloat32,
                          Device device = {});
TUTTI_API Tensor eye(std::int64_t rows, std::int64_t columns = -1, DType dtype = DType::kFloat32,
                     Device device = {});

TUTTI_API Tensor rand(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {},
                      Generator* generator = nullptr);  ///< Uniform in [0, 1).
TUTTI_API Tensor randn(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {},
                       Generator* generator = nullptr);  ///< Standard normal.
TUTTI_API Tensor randint(std::int64_t low, std::int64_t high, const Dims& sizes, DType dtype = DType::kInt64,
                         Device device = {}, Generator* generator = nullptr);  ///< [low, high).
TUTTI_API Tensor randperm(std::int64_t count, Device device = {},
                          Generator* generator = nullptr);  ///< int64.

TUTTI_API Tensor
empty_like(const Tensor& other);  ///< Keeps dtype, device and (dense) layout; so do the others.
TUTTI_API Tensor zeros_like(const Tensor& other);
TUTTI_API Tensor ones_like(const Tensor& other);
TUTTI_API Tensor full_like(const Tensor& other, Scalar value);
TUTTI_API Tensor rand_like(const Tensor& other, Generator* generator = nullptr);
TUTTI_API Tensor randn_like(const Tensor& other, Generator* generator = nullptr);

/// A 0-dim tensor: float32, int64 or bool by the number's kind.
TUTTI_API Tensor scalar_tensor(Scalar value);
TUTTI_API Tensor scalar_tensor(Scalar value, DType dtype, Device device = {});
/// Copies numbers: tensor({1.0, 2.0}) is float32 [2] for double and float lists; use the vector form for float64.
TUTTI_API Tensor tensor(std::initializer_list<double> values, DType dtype = DType::kFloat32);
/// Copies a vector; dtype_of<T>. Optional sizes (their product must be the vector's length).
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
/// Wraps memory that somebody else owns; `release` runs when the last view dies. strides empty: row-major.
TUTTI_API Tensor from_blob(void* data, const Dims& sizes, DType dtype, const Dims& strides = {},
                           Device device = {}, std::function<void()> release = {});

}  // namespace tutti
