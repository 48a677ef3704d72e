// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs the recorded graph backwards.
///
/// Order: the AccumulateGrad of a leaf runs as soon as its gradient is complete; otherwise the operation that
/// was recorded last runs first. Several threads may call backward at once, on graphs that share leaves; but
/// the retained gradient of a non-leaf (retain_grad) may not be read or set while another thread's backward
/// may write it. A hook or a backward may itself call backward.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

/// Adds the gradient of the sum of `roots`, each weighted elementwise by its tensor in `gradients`, to the
/// .grad of every leaf that they depend on. `gradients` may be empty or hold undefined tensors: then that
/// root must have one element, and its weight is 1. Throws AutogradError if a root requires no gradient, has
/// been through backward before without retain_graph, or create_graph is set.
TUTTI_API void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients = {},
                        BackwardOptions options = {});

/// Options of grad.
struct GradOptions {
  /// Keep saved tensors, so that backward may run again.
  bool retain_graph = false;
  /// An input that the outputs don't depend on gives an undefined tensor instead of an error.
  bool allow_unused = false;
};

/// Gradients of the sum of `outputs` (weighted by `grad_outputs`, as in backward) with respect to `inputs`,
/// leaves or not, in their order. Touches no .grad and runs no post-accumulate hook.
TUTTI_API std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                   std::span<const Tensor> grad_outputs = {}, GradOptions options = {});
/// The same for one output.
TUTTI_API std::vector<Tensor> grad(const Tensor& output, std::span<const Tensor> inputs,
                                   const Tensor& grad_output = {}, GradOptions options = {});

/// Has `callback` called once when this thread's outermost backward has run all its operations, before it
/// returns, in the order of the calls. A backward that throws drops its callbacks. AutogradError outside of a
/// backward.
TUTTI_API void queue_callback(std::function<void()> callback);
/// True while this thread runs a backward.
TUTTI_API bool in_backward() noexcept;

}  // namespace tutti::autograd
