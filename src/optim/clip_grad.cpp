// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/clip_grad.hpp"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "backend/registry.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti::optim {

namespace {

// Gradients of one dtype and device, as kernels take them.
struct GradientList {
  DType dtype = DType::kFloat32;
  Device device;
  std::vector<std::int64_t> numels;
  std::vector<void*> data;

  tutti_tensor_list arrays() const noexcept {
    return {.count = static_cast<std::int64_t>(numels.size()),
            .numels = numels.data(),
            .dtype = static_cast<std::int32_t>(dtype),
            .params = data.data(),
            .grads = nullptr,
            .state1 = nullptr,
            .state2 = nullptr,
            .state3 = nullptr};
  }
  tutti_stream stream() const { return current_stream(device).handle(); }
  const tutti_backend& backend() const { return backend::get(static_cast<int>(device.type())); }
};

// All gradients of one call; the vectors keep their capacity from call to call.
struct Gradients {
  std::vector<Tensor> tensors;
  std::vector<GradientList> lists;
  std::size_t used = 0;
  std::vector<std::pair<Tensor, Tensor>> not_dense;  // gradient and dense copy

  void collect(std::span<const Tensor> parameters) {
    for (const Tensor& parameter : parameters) {
      Tensor gradient = parameter.grad();
      if (!gradient.defined() || gradient.numel() == 0) continue;
      TUTTI_CHECK(is_floating_point(gradient.dtype()), DTypeError, "clip_grad_norm_: a gradient of ",
                  gradient.dtype());
      tensors.push_back(std::move(gradient));
    }
  }
  void make_lists() {
    for (const Tensor& gradient : tensors) {
      void* data = gradient.impl()->data;
      if (!raw::is_dense(gradient))
        data = not_dense.emplace_back(gradient, raw::contiguous(gradient)).second.impl()->data;
      GradientList& list = list_of(gradient);
      list.numels.push_back(gradient.numel());
      list.data.push_back(data);
    }
  }
  void clear() noexcept {
    tensors.clear();
    not_dense.clear();
    used = 0;
  }

 private:
  GradientList& list_of(const Tensor& gradient) {
    for (std::size_t i = used; i-- > 0;) {
      if (lists[i].dtype == gradient.dtype() && lists[i].device == gradient.device()) return lists[i];
    }
    if (used == lists.size()) lists.emplace_back();
    GradientList& list = lists[used++];
    list.dtype = gradient.dtype();
    list.device = gradient.device();
    list.numels.clear();
    list.data.clear();
    return list;
  }
};

// Lets go of the gradients, also after an exception.
struct ClearAtEnd {
  Gradients& gradients;
  ~ClearAtEnd() { gradients.clear(); }
};

double sum_of_squares(const GradientList& list) {
  double sum = 0;
  Tensor on_device;
  if (!list.device.is_cpu()) on_device = empty({1}, DType::kFloat64, list.device);
  const tutti_list_norm call{.stream = list.stream(),
                             .list = list.arrays(),
                             .sum_of_squares = on_device.defined() ? on_device.data<double>() : &sum};
  backend::check(list.backend(), list.backend().kernels.list_norm(&call), "clip_grad_norm_");
  return on_device.defined() ? on_device.item<double>() : sum;
}

// Norms that have no kernel of their own. relu(x) + relu(-x) is |x|, NaN included.
double other_norm(const std::vector<Tensor>& gradients, double norm_type) {
  const autograd::NoGradGuard no_grad;
  double result = 0;
  for (const Tensor& gradient : gradients) {
    const Tensor values = gradient.detach().to(DType::kFloat64);
    const Tensor magnitudes = values.relu().add(values.neg().relu());
    if (std::isinf(norm_type)) {
      const double greatest = magnitudes.max().item<double>();
      if (std::isnan(greatest) || greatest > result) result = greatest;
      if (std::isnan(result)) return result;
    } else {
      result += magnitudes.pow(norm_type).sum().item<double>();
    }
  }
  return std::isinf(norm_type) ? result : std::pow(result, 1 / norm_type);
}

void scale(Gradients& gradients, double factor) {
  for (const auto& [gradient, copy] : gradients.not_dense)
    raw::check_writable(gradient, "clip_grad_norm_: a gradient");
  for (std::size_t i = 0; i < gradients.used; ++i) {
    const GradientList& list = gradients.lists[i];
    const tutti_list_scale call{.stream = list.stream(), .list = list.arrays(), .factor = factor};
    backend::check(list.backend(), list.backend().kernels.list_scale(&call), "clip_grad_norm_");
  }
  for (const auto& [gradient, copy] : gradients.not_dense) raw::copy(gradient, copy);
  for (const Tensor& gradient : gradients.tensors) raw::bump_version(gradient);
}

}  // namespace

double clip_grad_norm_(std::span<const Tensor> parameters, double max_norm,
                       const ClipGradNormOptions& options) {
  TUTTI_CHECK(max_norm >= 0, ValueError, "clip_grad_norm_: max_norm must be at least 0, given ", max_norm);
  TUTTI_CHECK(options.norm_type > 0, ValueError, "clip_grad_norm_: norm_type must be above 0, given ",
              options.norm_type);
  static thread_local Gradients gradients;
  const ClearAtEnd clear_at_end{gradients};
  gradients.collect(parameters);
  if (gradients.tensors.empty()) return 0;
  gradients.make_lists();
  double norm = 0;
  if (options.norm_type == 2) {
    for (std::size_t i = 0; i < gradients.used; ++i) norm += sum_of_squares(gradients.lists[i]);
    norm = std::sqrt(norm);
  } else {
    norm = other_norm(gradients.tensors, options.norm_type);
  }
  TUTTI_CHECK(!options.error_if_nonfinite || std::isfinite(norm), ValueError, "clip_grad_norm_: the ",
              options.norm_type, "-norm of all gradients is ", norm, ", so they can't be clipped");
  // Not std::min: a NaN is to reach all gradients.
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1)) scale(gradients, factor);
  return norm;
}

}  // namespace tutti::optim
