// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor read one by one through its strides: independent of the copy kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/tensor/tensor.hpp"

namespace tutti::testing {

// Row-major.
template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> values;
  const T* data = tensor.data<T>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int d = tensor.dim() - 1; d >= 0; --d) {
      offset += rest % tensor.size(d) * tensor.stride(d);
      rest /= tensor.size(d);
    }
    values.push_back(data[offset]);
  }
  return values;
}

// first, first + step, ...
template <class T>
std::vector<T> sequence(T first, T step, int count) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<T>(first + static_cast<T>(i) * step));
  return values;
}

}  // namespace tutti::testing
