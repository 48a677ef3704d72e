// SPDX-License-Identifier: Apache-2.0
// The little arithmetic that the engine does itself: sums of gradients, and the search for NaN.
#include <algorithm>
#include <string_view>

#include "autograd/meta.hpp"
#include "backend/registry.hpp"
#include "kernels/functors/list.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::autograd {

namespace {

constexpr std::string_view kAnomaly = "anomaly: ";

template <class Functor>
void run_pointwise(const char* name, const Tensor& out, std::initializer_list<const Tensor*> inputs) {
  constexpr auto kIndex = static_cast<std::size_t>(functors::index_in<Functor>(functors::Pointwise{}));
  const Device device = out.device();
  tutti_pointwise call{};
  call.stream = device.is_cpu() ? nullptr : current_stream(device).handle();
  call.inputs = static_cast<std::int32_t>(inputs.size());
  call.scalar_input = -1;
  raw::fill_view(call.out, out);
  std::size_t i = 0;
  for (const Tensor* input : inputs) raw::fill_view(call.in[i++], *input);
  const tutti_backend& backend = backend::get(static_cast<int>(device.type()));
  backend::check(backend, backend.kernels.pointwise[kIndex](&call), name);
}

}  // namespace

bool same_elements(const Tensor& a, const Tensor& b) noexcept {
  if (a.impl()->data != b.impl()->data || a.sizes() != b.sizes()) return false;
  for (int d = 0; d < a.dim(); ++d) {
    if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  }
  return true;
}

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (out.numel() > 0) run_pointwise<functors::Add>("AccumulateGrad", out, {&a, &b});
}

Tensor add_gradients(Tensor a, Tensor b) {
  if (raw::is_sole_view(a) && raw::is_dense(a)) {
    add_into(a, a, b);
    return a;
  }
  if (raw::is_sole_view(b) && raw::is_dense(b)) {
    add_into(b, a, b);
    return b;
  }
  Tensor sum = empty_like(a);
  add_into(sum, a, b);
  return sum;
}

bool has_nan(const Tensor& tensor) {
  if (!is_floating_point(tensor.dtype()) || tensor.numel() == 0) return false;
  const Tensor flags = empty(tensor.sizes(), DType::kBool, tensor.device());
  run_pointwise<functors::IsNan>("AnomalyGuard", flags, {&tensor});
  const Tensor host = empty(tensor.sizes(), DType::kBool);
  raw::copy(host, flags);
  if (!tensor.device().is_cpu()) synchronize(tensor.device());
  const bool* values = host.data<bool>();
  return std::any_of(values, values + host.numel(), [](bool value) { return value; });
}

void check_forward_anomaly(const detail::Recording& recording, const Tensor& output, std::size_t index) {
  if (!has_nan(output)) return;
  for (std::size_t i = 0; i < recording.inputs.size(); ++i) {
    const Tensor& input = *recording.inputs[i];
    const bool is_as_before = i >= 64 || (recording.dirty >> i & 1) == 0;
    TUTTI_CHECK(!is_as_before || !input.defined() || !has_nan(input), AutogradError, kAnomaly, "forward of ",
                recording.name, " was given NaN in input ", i, " (", describe(input), ")");
  }
  tutti::detail::fail<AutogradError>(kAnomaly, "forward of ", recording.name, " made NaN in output ", index,
                                     " (", describe(output), ")");
}

void check_backward_anomaly(const Node& node, const Tensor& gradient, std::size_t input) {
  if (!has_nan(gradient)) return;
  tutti::detail::fail<AutogradError>(kAnomaly, "backward of ", node.name(),
                                     " made NaN in the gradient of input ", input, " (", describe(gradient),
                                     ")");
}

void name_backward_of_anomaly(const Node& node) {
  try {
    throw;
  } catch (const AutogradError& error) {
    const std::string_view text = error.what();
    if (text.starts_with(kAnomaly))
      tutti::detail::fail<AutogradError>(text, ", in the backward of ", node.name());
    throw;
  }
}

}  // namespace tutti::autograd
