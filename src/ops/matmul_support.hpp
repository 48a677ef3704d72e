// SPDX-License-Identifier: Apache-2.0
// Products outside autograd, for ops that are built on them.
#pragma once

#include "backend/backend.h"
#include "tutti/tensor/tensor.hpp"

namespace tutti::ops {

// Value of set_float32_matmul_precision in the table's numbering.
int current_precision() noexcept;

// View of a weight; keep_packed: its re-packed copy may stay with its storage.
void fill_weight(tutti_weight& weight, const Tensor& tensor, bool keep_packed);

struct ProductOptions {
  bool accumulate = false;   // add to out instead of overwriting it
  bool b_is_weight = false;  // b lives longer than this call: keep its packed form
};
// out = a b + bias, shapes as in the table's matmul.
void product(const char* name, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
             const ProductOptions& options);

}  // namespace tutti::ops
