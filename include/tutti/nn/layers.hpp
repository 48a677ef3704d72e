// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layers. Each takes its options, and a device, alone or after its owner and name. Default initialisation is PyTorch's:
/// weights and biases of Linear and Conv2d uniform in +-1 / sqrt(fan_in), drawn from the calling thread's default generator, as
/// float32 (see Module::to). Call a layer itself, `fc(x)`, so that its hooks run; forward() is what it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tutti/core/export.hpp"
#include "tutti/nn/module.hpp"
#include "tutti/ops/convolution.hpp"
#include "tutti/ops/pointwise.hpp"

namespace tutti::nn {

/// Options of Linear.
struct LinearOptions {
  std::int64_t in_features = 0;   ///< Required.
  std::int64_t out_features = 0;  ///< Required.
  bool bias = true;               ///< Whether there is a bias.
};
/// y = x weight^T + bias; weight [out, in], bias [out].
class TUTTI_API Linear : public Module<Linear> {
 public:
  /// ShapeError unless in_features and out_features are positive.
  explicit Linear(const LinearOptions& given, Device device = {});
  /// As a member of `parent`.
  Linear(ModuleBase& parent, std::string_view name, const LinearOptions& given, Device device = {});
  /// x [..., in] to [..., out]; see linear().
  Tensor forward(const Tensor& x);

  LinearOptions options;  ///< As given.
  Parameter weight;       ///< [out, in].
  Parameter bias;         ///< [out]; undefined without one.
};

/// Options of Conv2d.
struct Conv2dOptions {
  std::int64_t in_channels = 0;   ///< Required.
  std::int64_t out_channels = 0;  ///< Required.
  Size2d kernel_size = {};        ///< Required.
  Size2d stride = 1;              ///< Distance of windows.
  Size2d padding = 0;             ///< Zeros on each side.
  Size2d dilation = 1;            ///< Distance of a window's elements.
  int groups = 1;                 ///< Into so many parts both kinds of channels are cut.
  bool bias = true;               ///< Whether there is a bias.
};
/// Two-dimensional convolution; weight [out, in / groups, kh, kw], bias [out].
class TUTTI_API Conv2d : public Module<Conv2d> {
 public:
  /// ShapeError unless channels, kernel_size and groups are positive and groups divides both numbers of channels; ValueError
  /// unless stride and dilation are positive and padding is not negative.
  explicit Conv2d(const Conv2dOptions& given, Device device = {});
  /// As a member of `parent`.
  Conv2d(ModuleBase& parent, std::string_view name, const Conv2dOptions& given, Device device = {});
  /// x [N, in, H, W] to [N, out, H', W']; see conv2d().
  Tensor forward(const Tensor& x);

  Conv2dOptions options;  ///< As given.
  Parameter weight;       ///< [out, in / groups, kh, kw].
  Parameter bias;         ///< [out]; undefined without one.
};

/// Options of BatchNorm1d and BatchNorm2d.
struct BatchNormOptions {
  std::int64_t num_features = 0;         ///< Required.
  double eps = 1e-5;                     ///< Added to the variance.
  std::optional<double> momentum = 0.1;  ///< Of the running statistics; none: the cumulative average.
  bool affine = true;                    ///< Whether there are weight and bias.
  bool track_running_stats = true;       ///< Without, the batch's statistics serve in evaluation too.
};

/// What BatchNorm1d and BatchNorm2d share: see batch_norm(). In training a forward updates the buffers.
template <class Derived>
class TUTTI_API BatchNormBase : public Module<Derived> {
 public:
  /// ShapeError unless num_features is positive; ValueError unless eps is finite and at least 0, and momentum in [0, 1].
  explicit BatchNormBase(const BatchNormOptions& given, Device device = {});
  /// As a member of `parent`.
  BatchNormBase(ModuleBase& parent, std::string_view name, const BatchNormOptions& given, Device device = {});
  /// The result has x's shape. ShapeError for another number of dims or channels, or one value a channel in training.
  Tensor forward(const Tensor& x);

  BatchNormOptions options;  ///< As given.
  Parameter weight;          ///< [C], ones at first; undefined unless affine.
  Parameter bias;            ///< [C], zeros at first; undefined unless affine.
  Buffer running_mean;       ///< [C], zeros at first; undefined unless track_running_stats, as the two below.
  Buffer running_var;        ///< [C], ones at first.
  Buffer num_batches_tracked;  ///< int64, 0-dim.
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
  /// ShapeError without a kernel_size; ValueError for a negative stride, or a padding that is negative or above half of it.
  explicit MaxPool2d(const MaxPool2dOptions& given);
  /// As a member of `parent`.
  MaxPool2d(ModuleBase& parent, std::string_view name, const MaxPool2dOptions& given);
  /// x [N, C, H, W] to [N, C, H', W'].
  Tensor forward(const Tensor& x) { return max_pool2d(x, options); }
  Tensor forward(Tensor&& x) { return max_pool2d(std::move(x), options); }  ///< The same of a temporary.
  MaxPool2dOptions options;                                                 ///< As given.
};

/// Mean of each window of [N, C, H, W]; see avg_pool2d.
class TUTTI_API AvgPool2d : public Module<AvgPool2d> {
 public:
  /// ShapeError without a kernel_size; ValueError for a negative stride, or a padding that is negative or above half of it.
  explicit AvgPool2d(const AvgPool2dOptions& given);
  /// As a member of `parent`.
  AvgPool2d(ModuleBase& parent, std::string_view name, const AvgPool2dOptions& given);
  /// x [N, C, H, W] to [N, C, H', W'].
  Tensor forward(const Tensor& x) { return avg_pool2d(x, options); }
  AvgPool2dOptions options;  ///< As given.
};

/// Options of Dropout.
struct DropoutOptions {
  double p = 0.5;  ///< Probability that an element becomes 0.
};
/// Zeroes elements in training and scales the others; the identity in evaluation. See dropout.
class TUTTI_API Dropout : public Module<Dropout> {
 public:
  /// ValueError unless 0 <= p <= 1.
  explicit Dropout(const DropoutOptions& given = {});
  /// As a member of `parent`.
  Dropout(ModuleBase& parent, std::string_view name, const DropoutOptions& given = {});
  /// Of x's shape and dtype; draws from the calling thread's default generator.
  Tensor forward(const Tensor& x);
  DropoutOptions options;  ///< As given.
};

/// max(x, 0).
class TUTTI_API ReLU : public Module<ReLU> {
 public:
  using Module::Module;
  /// Of x's shape and dtype; see relu().
  Tensor forward(const Tensor& x) { return relu(x); }
  Tensor forward(Tensor&& x) { return relu(std::move(x)); }  ///< The same of a temporary.
};

/// Options of GELU.
struct GeluOptions {
  GeluForm form = GeluForm::kErf;  ///< Exact, or PyTorch's approximate="tanh".
};
/// x * Phi(x); see gelu.
class TUTTI_API GELU : public Module<GELU> {
 public:
  /// On its own.
  explicit GELU(const GeluOptions& given = {}) : options(given) {}
  /// As a member of `parent`.
  GELU(ModuleBase& parent, std::string_view name, const GeluOptions& given = {})
      : Module(parent, name), options(given) {}
  /// Of x's shape and dtype.
  Tensor forward(const Tensor& x) { return gelu(x, options.form); }
  GeluOptions options;  ///< As given.
};

/// Options of Flatten.
struct FlattenOptions {
  int start_dim = 1;  ///< First dim to join; negative counts from the end.
  int end_dim = -1;   ///< Last dim to join.
};
/// Joins the dims from start_dim to end_dim into one.
class TUTTI_API Flatten : public Module<Flatten> {
 public:
  /// On its own.
  explicit Flatten(const FlattenOptions& given = {}) : options(given) {}
  /// As a member of `parent`.
  Flatten(ModuleBase& parent, std::string_view name, const FlattenOptions& given = {})
      : Module(parent, name), options(given) {}
  /// [N, C, H, W] to [N, C H W] by default. IndexError if there is no such dim.
  Tensor forward(const Tensor& x) { return x.flatten(options.start_dim, options.end_dim); }
  FlattenOptions options;  ///< As given.
};

}  // namespace tutti::nn
