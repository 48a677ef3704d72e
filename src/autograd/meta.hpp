// SPDX-License-Identifier: Apache-2.0
// What autograd keeps with a tensor, and the node of a leaf.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "autograd/hook_list.hpp"
#include "tutti/autograd/node.hpp"

namespace tutti::autograd {

// Adds incoming gradients to leaf.grad. Belongs to the leaf's Meta, so it never outlives the leaf and needs no weak reference;
// a NodePtr to it counts a reference to the leaf.
class AccumulateGrad final : public Node {
 public:
  // Leaves that got requires_grad later come first, as operations do. That order depends on no graph, so f(weight, x) and
  // f(x, weight) run their hooks in the same order. The high bit puts leaves before all operations.
  AccumulateGrad(tutti::detail::TensorImpl* leaf, std::uint64_t order) noexcept
      : Node(leaf, (std::uint64_t{1} << 63) | order) {}
  void run(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs, detail::RunScope& scope) override;

  Tensor leaf_tensor() const noexcept;
  // Adds `gradient`, whose sizes and dtype are right. May take it over.
  void accumulate(Tensor gradient);
  void run_post_hooks();

  std::shared_ptr<TensorHooks> tensor_hooks() {
    const std::lock_guard lock(mutex);
    return tensor_hooks_;
  }
  // The list, made if there is none.
  std::shared_ptr<TensorHooks> ensure_tensor_hooks();
  std::shared_ptr<PostAccumulateHooks> ensure_post_hooks();

  std::mutex mutex;  // guards the leaf's Meta::grad and all below; a claimed destination holds it
  Tensor destination;

 private:
  std::shared_ptr<TensorHooks> tensor_hooks_;
  std::shared_ptr<PostAccumulateHooks> post_hooks_;
};

struct Meta {
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory, std::size_t bytes) noexcept;

  NodePtr grad_fn;                 // null: a leaf
  std::uint32_t output_nr = 0;     // which output of grad_fn
  std::uint32_t rebases = 0;       // how often a recorded in-place operation gave this tensor a new history
  std::uint32_t base_rebases = 0;  // the base's count when this view was made: a view does not follow it
  Tensor base;                     // of a view made by a recorded operation
  Tensor grad;                     // of a leaf; guarded by the accumulator's mutex
  std::unique_ptr<AccumulateGrad> accumulator;  // of a leaf that requires grad
  // Of a non-leaf after retain_grad(): grad_fn writes it, without a lock.
  std::shared_ptr<Tensor> retained_grad;
};

// Hooks on the outputs of a node.
struct detail::NodeHooks {
  struct Hooks {
    std::uint32_t output_nr;
    std::shared_ptr<TensorHooks> list;
  };
  struct Retained {
    std::uint32_t output_nr;
    std::weak_ptr<Tensor> grad;
  };
  std::vector<Hooks> hooks;
  std::vector<Retained> retained;
};

// What a pack hook made of a saved tensor.
struct detail::PackedTensor {
  std::shared_ptr<void> data;
  std::shared_ptr<std::function<Tensor(const std::shared_ptr<void>&)>> unpack;
  Dims sizes;
  DType dtype;
};

// Access to a node's hooks.
struct HookAccess {
  static detail::NodeHooks* get(const Node& node) noexcept { return node.hooks_; }
  static detail::NodeHooks& ensure(Node& node) {
    if (node.hooks_ == nullptr) node.hooks_ = new detail::NodeHooks;
    return *node.hooks_;
  }
};

// The tensor's Meta, made if it has none.
Meta& ensure_meta(const Tensor& tensor);
inline Meta* meta_of(const Tensor& tensor) noexcept { return tensor.impl()->autograd; }
// Where the gradient of a tensor that requires grad goes. AutogradError for a stale view.
Edge gradient_edge(const Tensor& tensor, std::string_view consumer);
// Takes the operation that made x out of the graph if `is_meant` says so: x then has the history of that operation's input, and
// what calls this computes both gradients at once. Only if nobody can tell: no other handle or view of x has that history, no hook
// is there, and x is not written since. False: nothing changed.
bool absorb_producer(const Tensor& x, bool (*is_meant)(const Node&));
// "float32 [2, 3]".
std::string describe(const Tensor& tensor);

// True if both see the same elements in the same places.
bool same_elements(const Tensor& a, const Tensor& b) noexcept;
// out = a + b; out may be a or b.
void add_into(const Tensor& out, const Tensor& a, const Tensor& b);
// a + b, in the memory of one of them where nobody else sees it.
Tensor add_gradients(Tensor a, Tensor b);
bool has_nan(const Tensor& tensor);
// What anomaly mode does: AutogradError that names the operation if there is a NaN in an output, saying whether it was in an input
// already; or in a gradient that a backward has given.
void check_forward_anomaly(const detail::Recording& recording, const Tensor& output, std::size_t index);
void check_backward_anomaly(const Node& node, const Tensor& gradient, std::size_t input);
// Rethrows the current exception. One of the first kind, from an operation that a backward calls, names that backward too.
[[noreturn]] void name_backward_of_anomaly(const Node& node);

}  // namespace tutti::autograd
