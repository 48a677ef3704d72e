// SPDX-License-Identifier: Apache-2.0
// Makes storages and the handles onto them.
#pragma once

#include <cstddef>
#include <functional>

#include "tutti/tensor/tensor.hpp"

namespace tutti::detail {

// Memory from the device's allocator, one reference.
Storage* allocate_storage(Device device, std::size_t bytes);
// Memory of somebody else; `release` (may be empty) runs when the storage dies. Left as it was if this throws.
Storage* wrap_storage(Device device, void* data, std::size_t bytes, std::function<void()>&& release);

// Elements of `sizes`. Throws ShapeError naming `op` for negative sizes and products beyond 63 bits.
std::int64_t checked_numel(const Dims& sizes, const char* op);
// numel * element size, checked alike.
std::size_t checked_bytes(std::int64_t numel, DType dtype, const char* op);
bool is_row_major(const Dims& sizes, const Dims& strides) noexcept;

// A handle onto `storage`, of which it takes over one reference, even if it throws. `numel` is the product of sizes.
Tensor make_tensor(Storage* storage, void* data, DType dtype, const Dims& sizes, const Dims& strides,
                   std::int64_t numel, bool is_contiguous);

}  // namespace tutti::detail
