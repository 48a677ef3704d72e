// SPDX-License-Identifier: Apache-2.0
// The two networks that the benchmarks train; peer.py's twins.
#pragma once

#include <tutti/tutti.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace perf {

using tutti::Tensor;

struct LeNet : tutti::nn::Module<LeNet> {
  tutti::nn::Conv2d conv1{
      *this, "conv1", {.in_channels = 1, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  tutti::nn::Conv2d conv2{
      *this, "conv2", {.in_channels = 32, .out_channels = 64, .kernel_size = 3, .padding = 1}};
  tutti::nn::Linear fc1{*this, "fc1", {.in_features = 64 * 7 * 7, .out_features = 128}};
  tutti::nn::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 10}};

  Tensor forward(const Tensor& images) {
    Tensor h = tutti::max_pool2d(tutti::relu(conv1(images)), {.kernel_size = 2});
    h = tutti::max_pool2d(tutti::relu(conv2(h)), {.kernel_size = 2});
    return fc2(tutti::relu(fc1(h.flatten(1))));
  }
};

struct Mlp : tutti::nn::Module<Mlp> {
  tutti::nn::Linear fc1{*this, "fc1", {.in_features = 784, .out_features = 512}};
  tutti::nn::Linear fc2{*this, "fc2", {.in_features = 512, .out_features = 512}};
  tutti::nn::Linear fc3{*this, "fc3", {.in_features = 512, .out_features = 10}};

  Tensor forward(const Tensor& rows) { return fc3(tutti::relu(fc2(tutti::relu(fc1(rows))))); }
};

/// Trains a network on one synthetic batch; on several ranks under DistributedDataParallel.
template <class Net>
class Trainer {
 public:
  Trainer(tutti::Dims input_sizes, bool distributed)
      : inputs_(tutti::randn(input_sizes)), targets_(tutti::randint(0, 10, {input_sizes[0]})) {
    if (distributed) model_.emplace(net_);
  }
  void step() {
    optimizer_.zero_grad();
    tutti::cross_entropy(model_ ? (*model_)(inputs_) : net_(inputs_), targets_).backward();
    optimizer_.step();
  }

 private:
  Net net_;
  std::optional<tutti::parallel::DistributedDataParallel<Net>> model_;
  tutti::optim::Sgd optimizer_{net_.parameters(), {.lr = 0.01, .momentum = 0.9}};
  Tensor inputs_;
  Tensor targets_;
};

inline tutti::Dims lenet_batch() { return {64, 1, 28, 28}; }
inline tutti::Dims mlp_batch() { return {128, 784}; }

}  // namespace perf
