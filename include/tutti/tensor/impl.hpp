// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a Tensor handle points to. Not for users: here only so that the handle's accessors are inline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tutti/core/dtype.hpp"
#include "tutti/core/export.hpp"
#include "tutti/device/device.hpp"
#include "tutti/tensor/dims.hpp"

struct tutti_packed_slot;

namespace tutti::autograd {
struct Meta;
}

namespace tutti::detail {

/// Shared by all views of one piece of memory. Reference counted.
struct Storage {
  std::atomic<std::int32_t> references{1};
  std::atomic<std::uint32_t> version{0};  ///< Counts in-place writes; saved tensors compare it.
  Device device;
  void* data = nullptr;
  std::size_t bytes = 0;
  void* stream = nullptr;  ///< Handle of the stream it was allocated on.
  void (*release)(Storage& storage) =
      nullptr;  ///< Gives the memory back: to the allocator, a group, or the user.
  void* release_context = nullptr;
  /// Somebody has a pointer to the data and may write without counting a version: no packed copy is kept.
  std::atomic<bool> exposed{false};
  tutti_packed_slot* packed = nullptr;  ///< A kernel's re-packed copy (weights); created on first use.
};
/// Gives memory and packed copy back; called when the last reference is gone.
TUTTI_API void destroy(Storage* storage) noexcept;

/// One view: memory, sizes, strides, dtype, and autograd's data.
struct TensorImpl {
  std::atomic<std::int32_t> references{1};
  DType dtype = DType::kFloat32;
  bool requires_grad = false;  ///< Leaf that collects a gradient, or result of a recorded operation.
  bool is_contiguous = true;   ///< Row-major and dense.
  bool is_view = false;        ///< Made by a view operation on another tensor.
  bool is_inference = false;   ///< Made under InferenceMode: never enters a graph.
  Storage* storage = nullptr;
  std::byte* data = nullptr;  ///< Element (0, ..., 0).
  std::int64_t numel = 0;
  Dims sizes;
  Dims strides;                        ///< In elements.
  autograd::Meta* autograd = nullptr;  ///< Owned; floor 5 defines and deletes it (destroy_autograd).
};
/// Lets go of storage and autograd's data; called when the last reference is gone.
TUTTI_API void destroy(TensorImpl* impl) noexcept;

/// Floor 5 tells floor 4 how to delete and copy its data; set once by autograd's first use, no static
/// initialiser.
TUTTI_API extern void (*destroy_autograd)(autograd::Meta* meta) noexcept;

}  // namespace tutti::detail
