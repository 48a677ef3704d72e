// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layers. Each takes its options, and a device, alone or after its owner and name. Default initialisation is PyTorch's:
/// weights and biases of Linear and Conv2d uniform in +-1 / sqrt(fan_in).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tutti/core/export.hpp"
#include "tutti/nn/module.hpp"
#include "tutti/ops/convolution.hpp"
#include "tutti/ops/pointwise.hpp"

namespace tutti::nn {

/// Options of Linear.
struct LinearOptions {
  std::int64_t in_features = 0;   ///< Required.
  std::int64_t out_features = 0;  ///< Required.
  bool bias = true;
};
/// y = x weight^T + bias; weight [out, in], bias [out].
class TUTTI_API Linear : public Module<Linear> {
 public:
  explicit Linear(const LinearOptions& given, Device device = {});
  Linear(ModuleBase& parent, std::string_view name, const LinearOptions& given, Device device = {});
  Tensor forward(const Tensor& x);

  LinearOptions options;
  Parameter weight;
  Parameter bias;
};

/// Options of Conv2d.
struct Conv2dOptions {
  std::int64_t in_channels = 0;   ///< Required.
  std::int64_t out_channels = 0;  ///< Required.
  Size2d kernel_size = {};        ///< Required.
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d dilation = 1;
  int groups = 1;
  bool bias = true;
};
/// Two-dimensional convolution; weight [out, in / groups, kh, kw], bias [out].
class TUTTI_API Conv2d : public Module<Conv2d> {
 public:
  explicit Conv2d(const Conv2dOptions& given, Device device = {});
  Conv2d(ModuleBase& parent, std::string_view name, const Conv2dOptions& given, Device device = {});
  Tensor forward(const Tensor& x);

  Conv2dOptions options;
  Parameter weight;
  Parameter bias;
};

/// Options of BatchNorm1d and BatchNorm2d.
struct BatchNormOptions {
  std::int64_t num_features = 0;  ///< Required.
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< None: the cumulative average.
  bool affine = true;
  bool track_running_stats = true;
};

/// What BatchNorm1d and BatchNorm2d share.
template <class Derived>
class TUTTI_API BatchNormBase : public Module<Derived> {
 public:
  explicit BatchNormBase(const BatchNormOptions& given, Device device = {});
  BatchNormBase(ModuleBase& parent, std::string_view name, const BatchNormOptions& given, Device device = {});
  Tensor forward(const Tensor& x);

  BatchNormOptions options;
  Parameter weight;
  Parameter bias;
  Buffer running_mean;
  Buffer running_var;
  Buffer num_batches_tracked;
};
/// Over [N, C] or [N, C, L].
class TUTTI_API BatchNorm1d : public BatchNormBase<BatchNorm1d> {
 public:
  using BatchNormBase::BatchNormBase;
};
/// Over [N, C, H, W].
class TUTTI_API BatchNorm2d : public BatchNormBase<BatchNorm2d> {
 public:
  using BatchNormBase::BatchNormBase;
};

/// Greatest value of each window of [N, C, H, W]; see max_pool2d.
class TUTTI_API MaxPool2d : public Module<MaxPool2d> {
 public:
  explicit MaxPool2d(const MaxPool2dOptions& given);
  MaxPool2d(ModuleBase& parent, std::string_view name, const MaxPool2dOptions& given);
  Tensor forward(const Tensor& x) { return max_pool2d(x, options); }
  MaxPool2dOptions options;
};

/// Mean of each window of [N, C, H, W]; see avg_pool2d.
class TUTTI_API AvgPool2d : public Module<AvgPool2d> {
 public:
  explicit AvgPool2d(const AvgPool2dOptions& given);
  AvgPool2d(ModuleBase& parent, std::string_view name, const AvgPool2dOptions& given);
  Tensor forward(const Tensor& x) { return avg_pool2d(x, options); }
  AvgPool2dOptions options;
};

/// Options of Dropout.
struct DropoutOptions {
  double p = 0.5;  ///< Probability that an element becomes 0.
};
/// Zeroes elements in training and scales the others; the identity in evaluation. See dropout.
class TUTTI_API Dropout : public Module<Dropout> {
 public:
  explicit Dropout(const DropoutOptions& given = {});
  Dropout(ModuleBase& parent, std::string_view name, const DropoutOptions& given = {});
  Tensor forward(const Tensor& x);
  DropoutOptions options;
};

/// max(x, 0).
class TUTTI_API ReLU : public Module<ReLU> {
 public:
  using Module::Module;
  Tensor forward(const Tensor& x) { return relu(x); }
};

/// Options of GELU.
struct GeluOptions {
  GeluForm form = GeluForm::kErf;
};
/// x * Phi(x); see gelu.
class TUTTI_API GELU : public Module<GELU> {
 public:
  explicit GELU(const GeluOptions& given = {}) : options(given) {}
  GELU(ModuleBase& parent, std::string_view name, const GeluOptions& given = {})
      : Module(parent, name), options(given) {}
  Tensor forward(const Tensor& x) { return gelu(x, options.form); }
  GeluOptions options;
};

/// Options of Flatten.
struct FlattenOptions {
  int start_dim = 1;
  int end_dim = -1;
};
/// Joins the dims from start_dim to end_dim into one.
class TUTTI_API Flatten : public Module<Flatten> {
 public:
  explicit Flatten(const FlattenOptions& given = {}) : options(given) {}
  Flatten(ModuleBase& parent, std::string_view name, const FlattenOptions& given = {})
      : Module(parent, name), options(given) {}
  Tensor forward(const Tensor& x) { return x.flatten(options.start_dim, options.end_dim); }
  FlattenOptions options;
};

}  // namespace tutti::nn
