// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/layers.hpp"

#include <algorithm>
#include <cmath>

#include "ops/option_checks.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/error.hpp"
#include "tutti/nn/init.hpp"
#include "tutti/ops/matmul.hpp"
#include "tutti/ops/normalization.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::nn {

namespace {

void require_positive(const char* module, const char* field, std::int64_t value) {
  TUTTI_CHECK(value > 0, ShapeError, module, ": ", field, " is required and must be positive, given ", value);
}

// PyTorch's default of Linear and Conv2d: uniform in +-1 / sqrt(fan_in).
Tensor uniform_by_fan(const Dims& sizes, std::int64_t fan_in, Device device) {
  Tensor tensor = empty(sizes, DType::kFloat32, device);
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(tensor, -bound, bound);
  return tensor;
}

const LinearOptions& checked(const LinearOptions& given) {
  require_positive("Linear", "in_features", given.in_features);
  require_positive("Linear", "out_features", given.out_features);
  return given;
}
Tensor linear_weight(const LinearOptions& o, Device device) {
  return uniform_by_fan({o.out_features, o.in_features}, o.in_features, device);
}
Tensor linear_bias(const LinearOptions& o, Device device) {
  return o.bias ? uniform_by_fan({o.out_features}, o.in_features, device) : Tensor();
}

const Conv2dOptions& checked(const Conv2dOptions& given) {
  require_positive("Conv2d", "in_channels", given.in_channels);
  require_positive("Conv2d", "out_channels", given.out_channels);
  require_positive("Conv2d", "kernel_size", std::min(given.kernel_size.height, given.kernel_size.width));
  require_positive("Conv2d", "groups", given.groups);
  TUTTI_CHECK(given.in_channels % given.groups == 0 && given.out_channels % given.groups == 0, ShapeError,
              "Conv2d: in_channels ", given.in_channels, " and out_channels ", given.out_channels,
              " must be multiples of groups ", given.groups);
  ops::check_convolution("Conv2d", given.stride, given.padding, given.dilation);
  return given;
}
std::int64_t conv_fan_in(const Conv2dOptions& o) {
  return o.in_channels / o.groups * o.kernel_size.height * o.kernel_size.width;
}
Tensor conv_weight(const Conv2dOptions& o, Device device) {
  return uniform_by_fan({o.out_channels, o.in_channels / o.groups, o.kernel_size.height, o.kernel_size.width},
                        conv_fan_in(o), device);
}
Tensor conv_bias(const Conv2dOptions& o, Device device) {
  return o.bias ? uniform_by_fan({o.out_channels}, conv_fan_in(o), device) : Tensor();
}

}  // namespace

Linear::Linear(const LinearOptions& given, Device device)
    : options(checked(given)),
      weight(*this, "weight", linear_weight(given, device)),
      bias(*this, "bias", linear_bias(given, device)) {}
Linear::Linear(ModuleBase& parent, std::string_view name, const LinearOptions& given, Device device)
    : Module(parent, name),
      options(checked(given)),
      weight(*this, "weight", linear_weight(given, device)),
      bias(*this, "bias", linear_bias(given, device)) {}
Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

Conv2d::Conv2d(const Conv2dOptions& given, Device device)
    : options(checked(given)),
      weight(*this, "weight", conv_weight(given, device)),
      bias(*this, "bias", conv_bias(given, device)) {}
Conv2d::Conv2d(ModuleBase& parent, std::string_view name, const Conv2dOptions& given, Device device)
    : Module(parent, name),
      options(checked(given)),
      weight(*this, "weight", conv_weight(given, device)),
      bias(*this, "bias", conv_bias(given, device)) {}
Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight, bias,
                {.stride = options.stride,
                 .padding = options.padding,
                 .dilation = options.dilation,
                 .groups = options.groups});
}

// ---- batch norm -------------------------------------------------------------------------------------------------------------

namespace {

template <class Derived>
const BatchNormOptions& checked_norm(const BatchNormOptions& given) {
  const std::string type(tutti::detail::type_name<Derived>());
  require_positive(type.c_str(), "num_features", given.num_features);
  ops::check_normalization(type.c_str(), given.momentum.value_or(0), given.eps);
  return given;
}
Tensor channel_vector(const BatchNormOptions& o, bool wanted, double value, Device device) {
  return wanted ? full({o.num_features}, value, DType::kFloat32, device) : Tensor();
}
Tensor batch_counter(const BatchNormOptions& o, Device device) {
  return o.track_running_stats ? zeros({}, DType::kInt64, device) : Tensor();
}
void check_input(const BatchNorm1d*, const Tensor& x) {
  TUTTI_CHECK(x.dim() == 2 || x.dim() == 3, ShapeError, "BatchNorm1d: wanted [N, C] or [N, C, L], given ",
              x.sizes());
}
void check_input(const BatchNorm2d*, const Tensor& x) {
  TUTTI_CHECK(x.dim() == 4, ShapeError, "BatchNorm2d: wanted [N, C, H, W], given ", x.sizes());
}

}  // namespace

template <class Derived>
BatchNormBase<Derived>::BatchNormBase(const BatchNormOptions& given, Device device)
    : options(checked_norm<Derived>(given)),
      weight(*this, "weight", channel_vector(given, given.affine, 1, device)),
      bias(*this, "bias", channel_vector(given, given.affine, 0, device)),
      running_mean(*this, "running_mean", channel_vector(given, given.track_running_stats, 0, device)),
      running_var(*this, "running_var", channel_vector(given, given.track_running_stats, 1, device)),
      num_batches_tracked(*this, "num_batches_tracked", batch_counter(given, device)) {}
template <class Derived>
BatchNormBase<Derived>::BatchNormBase(ModuleBase& parent, std::string_view name,
                                      const BatchNormOptions& given, Device device)
    : Module<Derived>(parent, name),
      options(checked_norm<Derived>(given)),
      weight(*this, "weight", channel_vector(given, given.affine, 1, device)),
      bias(*this, "bias", channel_vector(given, given.affine, 0, device)),
      running_mean(*this, "running_mean", channel_vector(given, given.track_running_stats, 0, device)),
      running_var(*this, "running_var", channel_vector(given, given.track_running_stats, 1, device)),
      num_batches_tracked(*this, "num_batches_tracked", batch_counter(given, device)) {}

template <class Derived>
Tensor BatchNormBase<Derived>::forward(const Tensor& x) {
  check_input(static_cast<const Derived*>(this), x);
  TUTTI_CHECK(x.size(1) == options.num_features, ShapeError, this->type_name(), ": num_features is ",
              options.num_features, ", given x ", x.sizes());
  double momentum = options.momentum.value_or(0);
  if (this->is_training() && num_batches_tracked.defined() && !autograd::recomputing()) {
    const autograd::NoGradGuard no_grad;
    num_batches_tracked.add_(1);
    if (!options.momentum) momentum = 1.0 / num_batches_tracked.template item<double>();
  }
  return batch_norm(x, running_mean, running_var, weight, bias,
                    {.training = this->is_training(), .momentum = momentum, .eps = options.eps});
}

template class BatchNormBase<BatchNorm1d>;
template class BatchNormBase<BatchNorm2d>;

// ---- pools and dropout --------------------------------------------------------------------------------------------------------

namespace {

const MaxPool2dOptions& checked(const MaxPool2dOptions& given) {
  ops::check_window("MaxPool2d", given.kernel_size, given.stride, given.padding, given.dilation);
  return given;
}
const AvgPool2dOptions& checked(const AvgPool2dOptions& given) {
  ops::check_window("AvgPool2d", given.kernel_size, given.stride, given.padding, 1);
  ops::check_divisor("AvgPool2d", given.divisor_override);
  return given;
}
const DropoutOptions& checked(const DropoutOptions& given) {
  ops::check_probability("Dropout", given.p);
  return given;
}

}  // namespace

MaxPool2d::MaxPool2d(const MaxPool2dOptions& given) : options(checked(given)) {}
MaxPool2d::MaxPool2d(ModuleBase& parent, std::string_view name, const MaxPool2dOptions& given)
    : Module(parent, name), options(checked(given)) {}

AvgPool2d::AvgPool2d(const AvgPool2dOptions& given) : options(checked(given)) {}
AvgPool2d::AvgPool2d(ModuleBase& parent, std::string_view name, const AvgPool2dOptions& given)
    : Module(parent, name), options(checked(given)) {}

Dropout::Dropout(const DropoutOptions& given) : options(checked(given)) {}
Dropout::Dropout(ModuleBase& parent, std::string_view name, const DropoutOptions& given)
    : Module(parent, name), options(checked(given)) {}
Tensor Dropout::forward(const Tensor& x) { return dropout(x, options.p, is_training()); }

}  // namespace tutti::nn
