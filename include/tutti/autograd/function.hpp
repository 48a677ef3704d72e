// SPDX-License-Identifier: Apache-2.0
/// \file
/// An operation with its own backward: a struct with two static functions.
///
/// \code
/// struct Cube : autograd::Function<Cube> {          // y = x^3, dy/dx = 3 x^2
///   static Tensor forward(Context& ctx, const Tensor& x) { ctx.save(x); return x * x * x; }
///   static Tensor backward(Context& ctx, const Tensor& grad_y) {
///     const Tensor x = ctx.saved(0);
///     return 3 * x * x * grad_y;
///   }
/// };
/// Tensor y = Cube::apply(x);
/// \endcode
///
/// Inputs. Each argument of forward that is a Tensor (it may be undefined) is one differentiable input; a
/// `std::span<const Tensor>` or a `std::vector<Tensor>` counts as many as it holds; every other argument is
/// plain data. Outputs. forward returns a Tensor, a pair, tuple or array of Tensors, or a
/// `std::vector<Tensor>`; apply returns the same type. backward takes one gradient for each output, or one
/// `std::span<const Tensor>` of them, and returns one for each differentiable input in the order of forward:
/// a Tensor, a pair, tuple or array, or a `std::vector<Tensor>`. An undefined one means zero. Both run with
/// gradients disabled. Double backward is not supported.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/autograd/node.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/type_name.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

/// What autocast does with the inputs of an operation.
enum class CastPolicy : std::uint8_t {
  kAsInput,         ///< Nothing.
  kLowerPrecision,  ///< Casts float32 to the autocast dtype: matrix products, convolutions.
  kFloat32,         ///< Casts to float32: losses, norms.
  kPromote,         ///< Casts to the widest dtype among the inputs.
};

namespace detail {

/// Derived::kName if there is one, else the type's name without namespaces.
template <class Derived>
constexpr std::string_view operation_name() {
  if constexpr (requires { std::string_view(Derived::kName); }) {
    return Derived::kName;
  } else {
    return tutti::detail::kTypeName<Derived>;
  }
}

template <class T>
concept IsTensor = std::same_as<std::remove_cvref_t<T>, Tensor>;
template <class T>
concept IsTensorRange = !IsTensor<T> && std::convertible_to<T, std::span<const Tensor>>;

/// Pointers to an operation's differentiable inputs.
template <class... Args>
using InputList = SmallVector<const Tensor*, (IsTensorRange<Args> || ...) ? 8 : sizeof...(Args) + 1>;

template <class List, class T>
void append_input(List& list, const T& argument) {
  if constexpr (IsTensor<T>) {
    list.emplace_back(&argument);
  } else if constexpr (IsTensorRange<const T&>) {
    for (const Tensor& tensor : std::span<const Tensor>(argument)) list.emplace_back(&tensor);
  }
}

/// Calls f with a span of pointers to the Tensors of a result.
template <class Result, class F>
void with_outputs(Result& result, F&& f) {
  if constexpr (IsTensor<Result>) {
    Tensor* const outputs[] = {&result};
    f(std::span<Tensor* const>(outputs));
  } else if constexpr (std::same_as<Result, std::vector<Tensor>>) {
    SmallVector<Tensor*, 8> outputs;
    for (Tensor& tensor : result) outputs.emplace_back(&tensor);
    f(std::span<Tensor* const>(outputs.data(), outputs.size()));
  } else {
    std::apply(
        [&](auto&... tensors) {
          static_assert((IsTensor<decltype(tensors)> && ...), "forward returns Tensors only");
          Tensor* const outputs[] = {&tensors...};
          f(std::span<Tensor* const>(outputs));
        },
        result);
  }
}

/// Moves what a backward returned to its places.
template <class Result>
void store_gradients(std::string_view op, Result&& result, std::span<Tensor> grad_inputs) {
  using Plain = std::remove_cvref_t<Result>;
  if constexpr (IsTensor<Plain>) {
    if (grad_inputs.size() != 1) throw_gradient_count(op, 1, grad_inputs.size());
    grad_inputs[0] = std::move(result);
  } else if constexpr (std::same_as<Plain, std::vector<Tensor>>) {
    if (grad_inputs.size() != result.size()) throw_gradient_count(op, result.size(), grad_inputs.size());
    for (std::size_t i = 0; i < result.size(); ++i) grad_inputs[i] = std::move(result[i]);
  } else {
    constexpr std::size_t kCount = std::tuple_size_v<Plain>;
    if (grad_inputs.size() != kCount) throw_gradient_count(op, kCount, grad_inputs.size());
    std::apply([&, i = std::size_t{0}](
                   auto&... gradients) mutable { ((grad_inputs[i++] = std::move(gradients)), ...); },
               result);
  }
}

/// Arguments of backward after the context: how many gradients, or one span.
template <class F>
struct BackwardTraits;
template <class Result, class ContextType, class... Gradients>
struct BackwardTraits<Result (*)(ContextType&, Gradients...)> {
  static constexpr std::size_t kCount = sizeof...(Gradients);
  static constexpr bool kTakesSpan =
      (std::same_as<std::remove_cvref_t<Gradients>, std::span<const Tensor>> || ...);
};

}  // namespace detail

/// What forward and backward of an operation share.
template <class Derived>
class Context {
 public:
  /// Seen by forward.
  template <class State>
  Context(detail::Recording& recording, State& state) noexcept
      : state_(&state), node_(recording.node), recording_(&recording) {}
  /// Seen by backward.
  template <class State>
  Context(Node& node, State& state, detail::RunScope& scope) noexcept
      : state_(&state), node_(&node), scope_(&scope) {}

  /// The operation's own data, of type Derived::State: what forward writes, backward reads.
  auto& state() const noexcept { return *static_cast<typename Derived::State*>(state_); }

  /// True if the operation is being recorded, so that backward may run: forward may skip what only backward
  /// needs.
  bool recording() const noexcept { return node_ != nullptr; }
  /// Keeps tensors (inputs, outputs or others; undefined ones too) for backward, in order. No effect if
  /// nothing is recorded.
  template <class... Tensors>
  void save(const Tensors&... tensors) const {
    static_assert((std::convertible_to<const Tensors&, const Tensor&> && ...), "save takes Tensors only");
    require_forward("save");
    if (node_ == nullptr) return;
    if (recording_->dirty != recording_->counted) detail::count_writes(*recording_);
    (node_->save(tensors), ...);
  }
  /// In backward: saved tensor i, outside any graph. AutogradError if it was modified in place since, or was
  /// freed by an earlier backward.
  Tensor saved(std::size_t i) const {
    require_backward("saved");
    return node_->saved(i);
  }

  /// True if differentiable input i needs a gradient (in backward: in this run). AutogradError if there is no
  /// such input.
  bool needs_input_grad(std::size_t i) const {
    if (scope_ != nullptr) return detail::needs_input_grad(*scope_, i);
    if (i >= recording_->inputs.size()) [[unlikely]]
      detail::throw_input_index(recording_->name, i, recording_->inputs.size());
    return node_ != nullptr && recording_->inputs[i]->defined() && recording_->inputs[i]->requires_grad();
  }

  /// In forward, before the write: says that differentiable input i is modified in place; forward then
  /// returns it. Gives the tensor the operation's history: save what the write destroys (a copy of it) before
  /// this call, the result after it. The version is counted by the next save() or when forward returns, so a
  /// forward that throws instead of writing counts none. AutogradError for an undefined input, a leaf that
  /// requires grad or a view of a graph's tensor.
  void mark_dirty(std::size_t i) const {
    require_forward("mark_dirty");
    detail::mark_dirty(*recording_, i);
  }
  /// In forward: output i (below 64) has no gradient. Integer outputs never have one.
  template <std::convertible_to<std::size_t>... Indices>
  void mark_non_differentiable(Indices... i) const {
    require_forward("mark_non_differentiable");
    (detail::mark_non_differentiable(*recording_, static_cast<std::size_t>(i)), ...);
  }
  /// In forward: whether backward sees zeros (default) or undefined tensors for outputs that nobody used.
  void set_materialize_grads(bool on) const noexcept {
    if (node_ != nullptr) node_->set_materialize_grads(on);
  }

  /// In backward: where the gradient of input i may be written directly. A backward that uses it writes at
  /// once, before any other backward can run, and returns that tensor. Nothing unless input i is a leaf that
  /// gets no other gradient in this run, has no hook that wants to see the gradient first, and has a gradient
  /// or a destination (set_grad_destination) already.
  std::optional<GradDestination> grad_destination(std::size_t i) const {
    require_backward("grad_destination");
    return detail::claim_destination(*scope_, i);
  }

 private:
  void require_forward(std::string_view member) const {
    if (recording_ == nullptr) [[unlikely]]
      detail::throw_wrong_phase(node_->name(), member, "forward");
  }
  void require_backward(std::string_view member) const {
    if (scope_ == nullptr) [[unlikely]]
      detail::throw_wrong_phase(recording_->name, member, "backward");
  }

  void* state_;
  Node* node_;
  detail::Recording* recording_ = nullptr;
  detail::RunScope* scope_ = nullptr;
};

namespace detail {

template <class Derived>
class FunctionNode final : public Node {
 public:
  using State = typename Derived::State;
  explicit FunctionNode(std::uint64_t sequence) : Node(operation_name<Derived>(), sequence) {}
  State state{};

  void run(std::span<Tensor> grad_outputs, std::span<Tensor> grad_inputs, RunScope& scope) override {
    using Traits = BackwardTraits<decltype(&Derived::backward)>;
    if (materialize_grads()) materialize(*this, grad_outputs);
    typename Derived::Context context(*this, state, scope);
    if constexpr (Traits::kTakesSpan) {
      store_gradients(name(), Derived::backward(context, std::span<const Tensor>(grad_outputs)), grad_inputs);
    } else {
      if (grad_outputs.size() != Traits::kCount)
        throw_output_count(name(), Traits::kCount, grad_outputs.size());
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        store_gradients(name(), Derived::backward(context, std::as_const(grad_outputs[I])...), grad_inputs);
      }
      (std::make_index_sequence<Traits::kCount>());
    }
  }

  void release() noexcept override {
    if constexpr (!std::is_trivially_destructible_v<State>) {
      std::destroy_at(&state);
      std::construct_at(&state);
      released_ = true;
    }
    Node::release();
  }
};

}  // namespace detail

/// Base of an operation. See the file's head.
template <class Derived>
class Function {
 public:
  /// What autocast does with the inputs; Derived may hide it.
  static constexpr CastPolicy kCast = CastPolicy::kAsInput;
  /// Derived may hide it with its own default-constructible struct.
  struct State {};
  using Context = autograd::Context<Derived>;

  /// Runs forward, and records the operation if gradients are enabled and an input requires one.
  template <class... Args>
  static auto apply(Args&&... args) {
    static_assert(std::same_as<decltype(Derived::kCast), const CastPolicy>, "kCast is a CastPolicy");
    detail::ThreadState& thread = detail::thread_state();
    detail::InputList<Args...> inputs;
    (detail::append_input(inputs, std::as_const(args)), ...);
    detail::Recording recording{.inputs = {inputs.data(), inputs.size()},
                                .name = detail::operation_name<Derived>()};
    bool record = false;
    if (thread.grad_enabled) {
      for (const Tensor* input : inputs) record |= input->defined() && input->impl()->requires_grad;
    }
    if (record) return record_and_run(thread, recording, args...);
    typename Derived::State state{};
    Context context(recording, state);
    detail::GradModeGuard guard(thread, false);
    auto result = Derived::forward(context, args...);
    if (!detail::nothing_to_finish(recording, thread)) [[unlikely]]
      finish(recording, result, thread);
    return result;
  }

 private:
  template <class... Args>
  static auto record_and_run(detail::ThreadState& thread, detail::Recording& recording, Args&... args) {
    auto* node = new detail::FunctionNode<Derived>(thread.next_sequence++);
    const NodePtr owner = NodePtr::adopt(node);
    detail::connect(*node, recording.inputs);
    recording.node = node;
    Context context(recording, node->state);
    detail::GradModeGuard guard(thread, false);
    auto result = Derived::forward(context, args...);
    finish(recording, result, thread);
    return result;
  }
  template <class Result>
  static void finish(detail::Recording& recording, Result& result, const detail::ThreadState& thread) {
    detail::with_outputs(
        result, [&](std::span<Tensor* const> outputs) { detail::finish(recording, outputs, thread); });
  }
};

}  // namespace tutti::autograd
