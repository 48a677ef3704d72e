// SPDX-License-Identifier: Apache-2.0
#include "autograd/meta.hpp"
#include "core/small_pool.hpp"
#include "tensor/raw.hpp"

namespace tutti::autograd {

void* Meta::operator new(std::size_t bytes) { return small_allocate(bytes); }
void Meta::operator delete(void* memory, std::size_t bytes) noexcept { small_release(memory, bytes); }

Meta& ensure_meta(const Tensor& tensor) {
  tutti::detail::TensorImpl& impl = *tensor.impl();
  if (impl.autograd == nullptr) {
    static const bool installed = [] {
      tutti::detail::destroy_autograd = [](Meta* meta) noexcept { delete meta; };
      return true;
    }();
    static_cast<void>(installed);
    impl.autograd = new Meta;
  }
  return *impl.autograd;
}

Edge gradient_edge(const Tensor& tensor, std::string_view consumer) {
  const Meta& meta = *meta_of(tensor);
  if (!meta.grad_fn) return {NodePtr::share(meta.accumulator.get()), 0};
  if (meta.base.defined()) [[unlikely]] {
    const Meta& base = *meta_of(meta.base);
    TUTTI_CHECK(base.rebases == meta.base_rebases, AutogradError, consumer, ": a view (", describe(tensor),
                ", made by ", meta.grad_fn->name(), ") is used after its base was modified in place by ",
                base.grad_fn ? base.grad_fn->name() : std::string_view("an operation"),
                "; make the view again");
  }
  return {meta.grad_fn, meta.output_nr};
}

std::string describe(const Tensor& tensor) {
  return tensor.defined() ? concat(tensor.dtype(), " ", tensor.sizes()) : "an undefined tensor";
}

Tensor AccumulateGrad::leaf_tensor() const noexcept {
  leaf()->references.fetch_add(1, std::memory_order_relaxed);
  return Tensor::adopt(leaf());
}

void AccumulateGrad::run(std::span<Tensor> grad_outputs, std::span<Tensor> /*grad_inputs*/,
                         detail::RunScope& /*scope*/) {
  accumulate(std::move(grad_outputs[0]));
}

void AccumulateGrad::accumulate(Tensor gradient) {
  const std::lock_guard lock(mutex);
  Tensor& grad = leaf()->autograd->grad;
  if (grad.defined()) {
    TUTTI_CHECK(grad.sizes() == leaf()->sizes && grad.dtype() == leaf()->dtype, AutogradError,
                "the gradient that a leaf holds is ", describe(grad), ", the leaf is ", leaf()->dtype, " ",
                leaf()->sizes);
    if (!raw::is_dense(grad)) {  // set by the user: an expanded one has no memory of its own for each element
      grad = add_gradients(grad, std::move(gradient));
      return;
    }
    // A hook may return a view of .grad itself, its transpose for one.
    if (gradient.shares_storage(grad) && !same_elements(gradient, grad)) gradient = raw::clone(gradient);
    add_into(grad, grad, gradient);
    raw::bump_version(grad);
    return;
  }
  // The leaf may have been converted or moved since.
  if (destination.defined() && destination.dtype() == leaf()->dtype &&
      destination.device() == leaf()->storage->device) {
    if (!same_elements(gradient, destination)) {
      raw::copy(destination, gradient.shares_storage(destination) ? raw::clone(gradient) : gradient);
    }
    raw::bump_version(destination);
    grad = destination;
    return;
  }
  // The optimizer walks parameter and gradient side by side: both get one layout.
  const Tensor parameter = leaf_tensor();
  const bool dense = raw::is_dense(parameter);
  const bool fits = dense ? gradient.strides() == parameter.strides() : gradient.is_contiguous();
  if (fits && raw::is_sole_view(gradient)) {
    grad = std::move(gradient);
    return;
  }
  Tensor copy = dense ? empty_strided(leaf()->sizes, leaf()->strides, leaf()->dtype, parameter.device())
                      : empty(leaf()->sizes, leaf()->dtype, parameter.device());
  raw::copy(copy, gradient);
  grad = std::move(copy);
}

std::shared_ptr<TensorHooks> AccumulateGrad::ensure_tensor_hooks() {
  const std::lock_guard lock(mutex);
  if (tensor_hooks_ == nullptr) tensor_hooks_ = std::make_shared<TensorHooks>();
  return tensor_hooks_;
}

std::shared_ptr<PostAccumulateHooks> AccumulateGrad::ensure_post_hooks() {
  const std::lock_guard lock(mutex);
  if (post_hooks_ == nullptr) post_hooks_ = std::make_shared<PostAccumulateHooks>();
  return post_hooks_;
}

void AccumulateGrad::run_post_hooks() {
  std::shared_ptr<PostAccumulateHooks> hooks;
  {
    const std::lock_guard lock(mutex);
    hooks = post_hooks_;
  }
  if (hooks == nullptr) return;
  const Tensor tensor = leaf_tensor();
  hooks->for_each([&](const PostAccumulateHooks::Hook& hook) { hook(tensor); });
}

}  // namespace tutti::autograd
