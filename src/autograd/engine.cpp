// SPDX-License-Identifier: Apache-2.0
#include "tutti/autograd/engine.hpp"

#include <cstddef>
#include <iterator>
#include <list>
#include <utility>

#include "autograd/graph_task.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::autograd {

namespace {

// The backward calls that this thread is in, one inside the other.
struct BackwardCalls {
  int depth = 0;
  std::list<std::function<void()>> callbacks;  // a list: dropping some allocates nothing
};
thread_local BackwardCalls calls;

// Counts a call. Unless complete() is reached, the callbacks that the call queued are dropped.
class CallScope {
 public:
  CallScope() : queued_before_(static_cast<std::ptrdiff_t>(calls.callbacks.size())) { ++calls.depth; }
  ~CallScope() {
    --calls.depth;
    if (complete_) return;
    // Out of the list first: what a callback holds may call backward when it dies.
    std::list<std::function<void()>> dropped;
    const auto first = std::next(calls.callbacks.begin(), queued_before_);
    dropped.splice(dropped.end(), calls.callbacks, first, calls.callbacks.end());
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  void complete() {
    if (calls.depth == 1) {
      while (!calls.callbacks.empty()) {
        const std::function<void()> callback = std::move(calls.callbacks.front());
        calls.callbacks.pop_front();
        callback();  // may queue another
      }
    }
    complete_ = true;
  }

 private:
  std::ptrdiff_t queued_before_;
  bool complete_ = false;
};

// The gradient of a root: what was given, or 1.
Tensor root_gradient(const Tensor& root, const Tensor& given) {
  if (!given.defined()) {
    TUTTI_CHECK(root.numel() == 1, AutogradError, "backward of ", describe(root),
                " needs a gradient of that size; only a tensor of one element has the default, 1");
    return full(root.sizes(), 1.0, root.dtype(), root.device());
  }
  TUTTI_CHECK(given.sizes() == root.sizes(), ShapeError, "backward of ", describe(root),
              ": the gradient given is ", describe(given));
  TUTTI_CHECK(given.dtype() == root.dtype(), DTypeError, "backward of ", describe(root),
              ": the gradient given is ", describe(given));
  TUTTI_CHECK(given.device() == root.device(), DeviceError, "backward of a tensor on ", root.device(),
              ": the gradient given is on ", given.device());
  return given;
}

void add_roots(GraphTask& task, std::span<const Tensor> roots, std::span<const Tensor> gradients) {
  TUTTI_CHECK(gradients.empty() || gradients.size() == roots.size(), AutogradError, "backward of ",
              roots.size(), " tensors with ", gradients.size(), " gradients");
  for (std::size_t i = 0; i < roots.size(); ++i) {
    TUTTI_CHECK(roots[i].requires_grad(), AutogradError,
                "backward needs a tensor that requires grad; this one (", describe(roots[i]),
                ") was made without recording: of inputs that require none, or under no_grad");
    task.add_root(roots[i], root_gradient(roots[i], gradients.empty() ? Tensor() : gradients[i]));
  }
}

}  // namespace

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options) {
  TUTTI_CHECK(!options.create_graph, AutogradError,
              "double backward (create_graph = true) is not supported: gradients carry no graph");
  const phase::Scope measured(phase::Kind::kBackward);
  const trace::Range range{"backward"};
  CallScope call;
  const detail::GradModeGuard guard(false);
  {
    GraphTask task(options.retain_graph);
    add_roots(task, roots, gradients);
    task.run();
  }
  call.complete();
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs, GradOptions options) {
  const phase::Scope measured(phase::Kind::kBackward);
  const trace::Range range{"backward"};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TUTTI_CHECK(inputs[i].requires_grad(), AutogradError, "grad: input ", i, " (", describe(inputs[i]),
                ") requires no grad");
  }
  CallScope call;
  const detail::GradModeGuard guard(false);
  std::vector<Tensor> gradients;
  {
    GraphTask task(options.retain_graph);
    add_roots(task, outputs, grad_outputs);
    gradients = task.run_and_capture(inputs);
  }
  call.complete();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TUTTI_CHECK(gradients[i].defined() || options.allow_unused, AutogradError,
                "grad: the outputs don't depend on input ", i, " (", describe(inputs[i]),
                "); pass allow_unused = true if that is intended");
  }
  return gradients;
}

std::vector<Tensor> grad(const Tensor& output, std::span<const Tensor> inputs, const Tensor& grad_output,
                         GradOptions options) {
  return grad(std::span(&output, 1), inputs, std::span(&grad_output, 1), options);
}

void queue_callback(std::function<void()> callback) {
  TUTTI_CHECK(callback != nullptr, ValueError, "queue_callback: the callback is empty");
  TUTTI_CHECK(calls.depth > 0, AutogradError, "queue_callback is called outside of a backward");
  calls.callbacks.push_back(std::move(callback));
}

bool in_backward() noexcept { return calls.depth > 0; }

}  // namespace tutti::autograd
