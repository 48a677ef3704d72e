// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a graph keeps in place of a saved tensor: a copy on another device, a compressed form, or nothing
/// (checkpoint.hpp).
#pragma once

#include <functional>
#include <memory>

#include "tutti/autograd/guards.hpp"
#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

/// Turns a tensor into what the graph keeps; it need not hold the tensor. Sees a leaf that requires grad itself, of any other
/// tensor a handle without history.
using PackHook = std::function<std::shared_ptr<void>(const Tensor& tensor)>;
/// Gives the tensor back, with the same values, sizes and dtype. Called in backward, each time the tensor is
/// asked for.
using UnpackHook = std::function<Tensor(const std::shared_ptr<void>& packed)>;

namespace detail {
struct SavedTensorsHooks {
  PackHook pack;
  std::shared_ptr<UnpackHook> unpack;  // shared with the tensors that it has to unpack later
  SavedTensorsHooks* outer = nullptr;
};
}  // namespace detail

/// While it lives, every tensor that an operation of this thread saves goes through `pack`, and through
/// `unpack` when backward asks for it. Of nested ones only the innermost applies. Operations inside the hooks
/// are not recorded.
class TUTTI_API SavedTensorsHooksGuard {
 public:
  SavedTensorsHooksGuard(PackHook pack, UnpackHook unpack);
  ~SavedTensorsHooksGuard();
  SavedTensorsHooksGuard(const SavedTensorsHooksGuard&) = delete;
  SavedTensorsHooksGuard& operator=(const SavedTensorsHooksGuard&) = delete;

 private:
  detail::SavedTensorsHooks hooks_;
};

}  // namespace tutti::autograd
