// SPDX-License-Identifier: Apache-2.0
#include "tutti/autograd/node.hpp"

#include "autograd/meta.hpp"
#include "core/small_pool.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/saved_tensors_hooks.hpp"

namespace tutti::autograd {

detail::ThreadState& detail::thread_state() noexcept {
  static constinit thread_local ThreadState state __attribute__((tls_model("initial-exec")));
  return state;
}

Node::~Node() { delete hooks_; }
void* Node::operator new(std::size_t bytes) { return small_allocate(bytes); }
void Node::operator delete(void* memory, std::size_t bytes) noexcept { small_release(memory, bytes); }

// A node may hold the last reference to others, through edges and saved tensors, and those to more: nodes that die while one is
// being destroyed wait in a list, so that the depth of the stack does not grow with the graph.
void Node::destroy(Node* node) noexcept {
  if (node->leaf_ != nullptr) {
    tutti::detail::destroy(node->leaf_);
    return;
  }
  static constinit thread_local Node* dead = nullptr;
  static constinit thread_local bool destroying = false;
  node->next_dead_ = std::exchange(dead, node);
  if (destroying) return;
  destroying = true;
  while (dead != nullptr) {
    Node* next = dead;
    dead = next->next_dead_;
    delete next;
  }
  destroying = false;
}

void Node::release() noexcept {
  if (saved_.empty()) return;
  saved_.clear();
  released_ = true;
}

SavedTensor::~SavedTensor() { delete packed; }

void Node::save(const Tensor& tensor) {
  SavedTensor& saved = saved_.emplace_back();
  if (!tensor.defined()) return;
  TUTTI_CHECK(!tensor.impl()->is_inference, AutogradError, name_, ": a result of inference mode (",
              describe(tensor), ") can't be saved for backward; clone it outside the InferenceGuard");
  saved.version = tensor.version();
  detail::SavedTensorsHooks* hooks = detail::thread_state().saved_tensors_hooks;
  if (hooks == nullptr) {
    saved.tensor = tensor;
    return;
  }
  const detail::GradModeGuard guard(false);
  // An in-place operation, this one or a later one, may give the tensor a history that leads to this node: a hook that keeps that
  // handle would close a cycle. Leaves that require grad never get one.
  const Tensor given = tensor.requires_grad() && tensor.is_leaf() ? tensor : raw::alias(tensor);
  saved.packed = new detail::PackedTensor{hooks->pack(given), hooks->unpack, tensor.sizes(), tensor.dtype()};
}

Tensor Node::saved(std::size_t i) const {
  TUTTI_CHECK(!released_, AutogradError, name_,
              ": its saved tensors were freed by an earlier backward; pass retain_graph = true to that one");
  TUTTI_CHECK(i < saved_.size(), AutogradError, name_, ": backward asks for saved tensor ", i,
              ", forward saved ", saved_.size());
  const SavedTensor& saved = saved_[i];
  if (saved.packed != nullptr) [[unlikely]] {
    const detail::PackedTensor& packed = *saved.packed;
    Tensor tensor = (*packed.unpack)(packed.data);
    TUTTI_CHECK(tensor.defined() && tensor.sizes() == packed.sizes && tensor.dtype() == packed.dtype,
                AutogradError, name_, ": the unpack hook of saved tensor ", i, " gave ", describe(tensor),
                ", wanted ", packed.dtype, " ", packed.sizes);
    return tensor;
  }
  const Tensor& tensor = saved.tensor;
  if (tensor.defined() && tensor.version() != saved.version) [[unlikely]] {
    const Meta* meta = meta_of(tensor);
    const std::string maker =
        meta != nullptr && meta->grad_fn ? concat("; made by ", meta->grad_fn->name()) : "";
    tutti::detail::fail<AutogradError>(name_, ": saved tensor ", i, " (", describe(tensor),
                                       ") was modified in place: version ", tensor.version(), ", wanted ",
                                       saved.version, maker);
  }
  return tensor;
}

SavedTensorsHooksGuard::SavedTensorsHooksGuard(PackHook pack, UnpackHook unpack)
    : hooks_{std::move(pack), std::make_shared<UnpackHook>(std::move(unpack)), nullptr} {
  TUTTI_CHECK(hooks_.pack != nullptr && *hooks_.unpack != nullptr, ValueError, "SavedTensorsHooksGuard: the ",
              hooks_.pack == nullptr ? "pack" : "unpack", " hook is empty");
  hooks_.outer = std::exchange(detail::thread_state().saved_tensors_hooks, &hooks_);
}
SavedTensorsHooksGuard::~SavedTensorsHooksGuard() {
  detail::thread_state().saved_tensors_hooks = hooks_.outer;
}

}  // namespace tutti::autograd
