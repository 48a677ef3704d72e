// SPDX-License-Identifier: Apache-2.0
// The members of Tensor that are autograd's.
#include <atomic>

#include "autograd/meta.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/engine.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

using autograd::describe;
using autograd::ensure_meta;
using autograd::meta_of;

Tensor& Tensor::requires_grad_(bool on) {
  detail::TensorImpl& impl = checked();
  TUTTI_CHECK(is_leaf(), AutogradError, "requires_grad_ of a tensor that ", grad_fn_name(),
              " made: only a leaf has a choice; use detach()");
  if (impl.requires_grad == on) return *this;
  TUTTI_CHECK(!on || tutti::is_floating_point(impl.dtype), DTypeError,
              "only floating-point tensors can require grad; this is ", describe(*this));
  TUTTI_CHECK(!on || !impl.is_inference, AutogradError, "a result of inference mode (", describe(*this),
              ") can't require grad; clone it outside the InferenceGuard");
  if (autograd::Meta& meta = ensure_meta(*this); on && meta.accumulator == nullptr) {
    static std::atomic<std::uint64_t> leaves{0};
    meta.accumulator =
        std::make_unique<autograd::AccumulateGrad>(&impl, leaves.fetch_add(1, std::memory_order_relaxed));
  }
  impl.requires_grad = on;
  return *this;
}

bool Tensor::is_leaf() const {
  const autograd::Meta* meta = checked().autograd;
  return !impl_->requires_grad || meta == nullptr || !meta->grad_fn;
}

Tensor Tensor::grad() const {
  const autograd::Meta* meta = checked().autograd;
  if (meta == nullptr) return {};
  if (meta->retained_grad != nullptr) return *meta->retained_grad;
  if (meta->accumulator == nullptr) return meta->grad;
  const std::lock_guard lock(meta->accumulator->mutex);
  return meta->grad;
}

void Tensor::set_grad(const Tensor& grad) {
  if (grad.defined()) {
    TUTTI_CHECK(grad.sizes() == sizes(), ShapeError, "set_grad of ", describe(*this), " with ",
                describe(grad));
    TUTTI_CHECK(grad.dtype() == dtype(), DTypeError, "set_grad of ", describe(*this), " with ",
                describe(grad));
    TUTTI_CHECK(grad.device() == device(), DeviceError, "set_grad of a tensor on ", device(), " with one on ",
                grad.device());
    TUTTI_CHECK(!grad.is_same(*this), AutogradError, "set_grad of a tensor with itself");
  } else if (checked().autograd == nullptr) {
    return;
  }
  autograd::Meta& meta = ensure_meta(*this);
  if (meta.retained_grad != nullptr) {
    *meta.retained_grad = grad;
    return;
  }
  Tensor previous = grad;  // dies after the lock
  if (meta.accumulator == nullptr) {
    previous.swap(meta.grad);
    return;
  }
  const std::lock_guard lock(meta.accumulator->mutex);
  previous.swap(meta.grad);
}

std::string Tensor::grad_fn_name() const {
  return is_leaf() ? std::string() : std::string(meta_of(*this)->grad_fn->name());
}

void Tensor::backward(const Tensor& gradient, BackwardOptions options) const {
  const std::span<const Tensor> none;
  autograd::backward(std::span(this, 1), gradient.defined() ? std::span(&gradient, 1) : none, options);
}

Tensor Tensor::detach() const {
  Tensor tensor = raw::alias(*this);
  tensor.impl()->is_inference = impl_->is_inference;
  return tensor;
}

void Tensor::retain_grad() const {
  TUTTI_CHECK(requires_grad(), AutogradError, "retain_grad needs a tensor that requires grad; this one (",
              describe(*this), ") requires none");
  autograd::Meta& meta = *meta_of(*this);
  if (!meta.grad_fn || meta.retained_grad != nullptr) return;
  meta.retained_grad = std::make_shared<Tensor>();
  autograd::HookAccess::ensure(*meta.grad_fn).retained.push_back({meta.output_nr, meta.retained_grad});
}

}  // namespace tutti
