// SPDX-License-Identifier: Apache-2.0
// Readable text of a tensor, in PyTorch's layout.
#pragma once

#include <string>

#include "tutti/tensor/tensor.hpp"

namespace tutti::detail {

// The element at `data` (host memory).
Scalar read_scalar(const void* data, DType dtype) noexcept;

std::string format_tensor(const Tensor& tensor);

}  // namespace tutti::detail
