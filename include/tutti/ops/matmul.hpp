// SPDX-License-Identifier: Apache-2.0
/// \file
/// Matrix products.
#pragma once

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// NumPy's matmul: vectors, matrices, and batches of them whose leading dims broadcast. All transposes and strides.
/// ShapeError naming both shapes if the inner sizes differ; DTypeError if the dtypes do.
TUTTI_API Tensor matmul(const Tensor& a, const Tensor& b);
/// x [..., in] times the transpose of weight [out, in], plus bias [out] (undefined: none): [..., out].
TUTTI_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// How products of float32 are computed; PyTorch's names. kHigh: three bfloat16 products (error about 2e-7 of the sum of
/// |a b|), kMedium: one. They take effect on CPUs with AMX or AVX512-BF16 and on GPUs with TF32; elsewhere kHighest runs.
enum class MatmulPrecision : std::uint8_t { kHighest, kHigh, kMedium };
TUTTI_API void set_float32_matmul_precision(MatmulPrecision precision) noexcept;
TUTTI_API MatmulPrecision float32_matmul_precision() noexcept;

}  // namespace tutti
