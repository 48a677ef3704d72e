// SPDX-License-Identifier: Apache-2.0
/// \file
/// The recorded graph. Not for users, who write a Function (function.hpp): here because Function is a
/// template.
///
/// A Node is one recorded operation. It owns its saved tensors and an edge for each differentiable input to
/// the node that made that input. A leaf's node is its AccumulateGrad, which is part of the leaf: counting a
/// reference to it counts one to the leaf.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tutti/autograd/guards.hpp"
#include "tutti/autograd/small_vector.hpp"
#include "tutti/core/export.hpp"
#include "tutti/device/stream.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

class Node;

/// A counted reference to a Node. Dropping the last one destroys the node, and what only it kept alive,
/// without recursion.
class NodePtr {
 public:
  NodePtr() noexcept = default;
  NodePtr(const NodePtr& other) noexcept : node_(other.node_) { retain(); }
  NodePtr(NodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodePtr& operator=(NodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr() {
    if (node_ != nullptr) drop();
  }
  /// Takes over the reference that a new node is born with.
  static NodePtr adopt(Node* node) noexcept {
    NodePtr pointer;
    pointer.node_ = node;
    return pointer;
  }
  /// Counts one more reference.
  static NodePtr share(Node* node) noexcept {
    NodePtr pointer;
    pointer.node_ = node;
    pointer.retain();
    return pointer;
  }
  Node* get() const noexcept { return node_; }
  Node* operator->() const noexcept { return node_; }
  Node& operator*() const noexcept { return *node_; }
  explicit operator bool() const noexcept { return node_ != nullptr; }

 private:
  inline void retain() const noexcept;
  inline void drop() noexcept;
  Node* node_ = nullptr;
};

/// Where the gradient of an input goes: gradient number `output_nr` of `function`. Null if the input needs
/// none.
struct Edge {
  NodePtr function;
  std::uint32_t output_nr = 0;
};

/// What a gradient of an output must look like.
struct OutputInfo {
  Dims sizes;
  DType dtype = DType::kFloat32;
  bool differentiable = false;
  Device device;
};

namespace detail {
struct PackedTensor;
struct NodeHooks;
class RunScope;
}  // namespace detail

/// A tensor kept for backward, with the storage's version at that time.
struct SavedTensor {
  SavedTensor() noexcept = default;
  SavedTensor(SavedTensor&& other) noexcept
      : tensor(std::move(other.tensor)),
        packed(std::exchange(other.packed, nullptr)),
        version(other.version) {}
  TUTTI_API ~SavedTensor();

  Tensor tensor;                           ///< Undefined if packed.
  detail::PackedTensor* packed = nullptr;  ///< What a pack hook made of it; owned.
  std::uint32_t version = 0;
};

/// One recorded operation.
class TUTTI_API Node {
 public:
  Node(std::string_view name, std::uint64_t sequence) noexcept : name_(name), sequence_(sequence) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node();
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory, std::size_t bytes) noexcept;

  /// Computes the inputs' gradients from those of the outputs. Undefined stands for zero.
  virtual void run(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs,
                   detail::RunScope& scope) = 0;
  /// Frees what was kept for backward.
  virtual void release() noexcept;

  std::string_view name() const noexcept { return name_; }
  std::uint64_t sequence() const noexcept { return sequence_; }
  std::span<const Edge> edges() const noexcept { return {edges_.data(), edges_.size()}; }
  std::span<const OutputInfo> outputs() const noexcept { return {outputs_.data(), outputs_.size()}; }
  const Stream& stream() const noexcept { return stream_; }
  /// The leaf whose AccumulateGrad this is; else null.
  tutti::detail::TensorImpl* leaf() const noexcept { return leaf_; }
  bool released() const noexcept { return released_; }

  /// Keeps a tensor (possibly undefined) for backward. Runs the pack hook if there is one.
  void save(const Tensor& tensor);
  /// Saved tensor i. AutogradError if it was modified since, or freed.
  Tensor saved(std::size_t i) const;
  std::size_t saved_count() const noexcept { return saved_.size(); }
  void set_materialize_grads(bool on) noexcept { materialize_grads_ = on; }
  bool materialize_grads() const noexcept { return materialize_grads_; }

 protected:
  explicit Node(tutti::detail::TensorImpl* leaf, std::uint64_t sequence) noexcept
      : leaf_(leaf), name_("AccumulateGrad"), sequence_(sequence) {}
  /// True if release() took something away, so that the node can't run again.
  bool released_ = false;

 private:
  friend class NodePtr;
  friend struct Recorder;
  friend struct HookAccess;
  static void destroy(Node* node) noexcept;

  std::atomic<std::int32_t> references_{1};
  bool materialize_grads_ = true;
  tutti::detail::TensorImpl* leaf_ = nullptr;
  std::string_view name_;
  std::uint64_t sequence_;
  Node* next_dead_ = nullptr;
  detail::NodeHooks* hooks_ = nullptr;  // owned
  Stream stream_;                       // where the forward ran; the backward runs there too
  SmallVector<Edge, 4> edges_;
  SmallVector<SavedTensor, 4> saved_;
  SmallVector<OutputInfo, 1> outputs_;
};

inline void NodePtr::retain() const noexcept {
  if (node_ == nullptr) return;
  auto& count = node_->leaf_ != nullptr ? node_->leaf_->references : node_->references_;
  count.fetch_add(1, std::memory_order_relaxed);
}
inline void NodePtr::drop() noexcept {
  auto& count = node_->leaf_ != nullptr ? node_->leaf_->references : node_->references_;
  if (count.fetch_sub(1, std::memory_order_acq_rel) == 1) Node::destroy(node_);
}

/// Where a backward may write an input's gradient instead of returning a new tensor.
struct GradDestination {
  Tensor tensor;            ///< Of the input's sizes and dtype.
  bool accumulate = false;  ///< Add to it (beta 1); else overwrite it (beta 0).
};

namespace detail {

/// What a forward said about its inputs and outputs. Bit i is input or output i.
struct Recording {
  std::span<const Tensor* const> inputs;
  std::string_view name;
  Node* node = nullptr;  ///< Null: nothing is recorded.
  std::uint64_t dirty = 0;
  std::uint64_t counted = 0;  ///< Dirty inputs whose version counts the write already.
  std::uint64_t non_differentiable = 0;
};

/// Makes the node's edges. AutogradError for a view whose base got another history since.
TUTTI_API void connect(Node& node, std::span<const Tensor* const> inputs);
/// Checks that input i may be modified in place, and notes that it is.
TUTTI_API void mark_dirty(Recording& recording, std::size_t i);
/// Notes that output i has no gradient. AutogradError from 64 on.
TUTTI_API void mark_non_differentiable(Recording& recording, std::size_t i);
/// Counts the versions of the inputs that were modified in place.
TUTTI_API void count_writes(Recording& recording) noexcept;
/// Counts the in-place writes, and gives the outputs their history if one is recorded.
TUTTI_API void finish(Recording& recording, std::span<Tensor* const> outputs, const ThreadState& state);
/// True if finish() has nothing to do when nothing is recorded.
inline bool nothing_to_finish(const Recording& recording, const ThreadState& state) noexcept {
  return recording.dirty == 0 && !state.inference && !state.anomaly;
}

/// Zeros in place of undefined gradients of differentiable outputs.
TUTTI_API void materialize(const Node& node, std::span<Tensor> grad_outputs);
TUTTI_API bool needs_input_grad(const RunScope& scope, std::size_t i) noexcept;
TUTTI_API std::optional<GradDestination> claim_destination(RunScope& scope, std::size_t i);
[[noreturn]] TUTTI_API void throw_input_index(std::string_view op, std::size_t given, std::size_t count);
/// Of a member of Context that only forward, or only backward, may call.
[[noreturn]] TUTTI_API void throw_wrong_phase(std::string_view op, std::string_view member,
                                              std::string_view wanted);
[[noreturn]] TUTTI_API void throw_gradient_count(std::string_view op, std::size_t given, std::size_t wanted);
[[noreturn]] TUTTI_API void throw_output_count(std::string_view op, std::size_t given, std::size_t wanted);

}  // namespace detail
}  // namespace tutti::autograd
