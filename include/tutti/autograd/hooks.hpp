// SPDX-License-Identifier: Apache-2.0
/// \file
/// Functions that run when a gradient is there. A tensor may have any number; they run in the order of their
/// registration.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

namespace detail {
/// A list of hooks that a handle can remove its own from.
class HookRegistry {
 public:
  virtual ~HookRegistry() = default;
  virtual void remove(std::uint64_t id) noexcept = 0;
};
}  // namespace detail

/// Removes its hook when it dies, also from inside that hook; may outlive the tensor. Move-only.
class TUTTI_API HookHandle {
 public:
  HookHandle() noexcept = default;
  HookHandle(std::weak_ptr<detail::HookRegistry> registry, std::uint64_t id) noexcept
      : registry_(std::move(registry)), id_(id) {}
  HookHandle(HookHandle&& other) noexcept = default;
  HookHandle& operator=(HookHandle&& other) noexcept {
    if (this != &other) {
      remove();
      registry_ = std::move(other.registry_);
      id_ = other.id_;
    }
    return *this;
  }
  ~HookHandle() { remove(); }
  /// Removes the hook now.
  void remove() noexcept;
  /// Leaves the hook in place for as long as the tensor lives.
  void detach() noexcept { registry_.reset(); }

 private:
  std::weak_ptr<detail::HookRegistry> registry_;
  std::uint64_t id_ = 0;
};

/// Calls `hook` with the complete gradient of `tensor` in each backward, before it is used or accumulated. If
/// it returns a defined tensor, of the same sizes and dtype, that takes the gradient's place. AutogradError
/// if the tensor requires no gradient.
[[nodiscard]] TUTTI_API HookHandle register_hook(const Tensor& tensor,
                                                 std::function<Tensor(const Tensor& grad)> hook);

/// Calls `hook` after a backward has added to leaf.grad(): once for each backward, however often the leaf was
/// used. AutogradError if `leaf` is no leaf or requires no gradient.
[[nodiscard]] TUTTI_API HookHandle
register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor& leaf)> hook);

/// When leaf.grad() is undefined, the next gradient is written to `view` (of the leaf's sizes, dtype and
/// device), which then becomes leaf.grad(): so gradients land in a communication bucket without a copy of
/// their own.
TUTTI_API void set_grad_destination(const Tensor& leaf, const Tensor& view);
/// Ends that. leaf.grad() stays as it is.
TUTTI_API void clear_grad_destination(const Tensor& leaf);

}  // namespace tutti::autograd
