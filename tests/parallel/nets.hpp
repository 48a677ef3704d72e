// SPDX-License-Identifier: Apache-2.0
// Modules and data that the tests of DistributedDataParallel share.
#pragma once

#include <cstring>
#include <vector>

#include "tensor/raw.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/random.hpp"
#include "tutti/nn/layers.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/parallel/distributed_data_parallel.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::testing {

inline int ranks() { return comm::world()->size(); }
inline int own_rank() { return comm::world()->rank(); }

// Convolution, two linear layers: six parameters from 4 to 2,304 elements.
struct SmallNet : nn::Module<SmallNet> {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", {.in_channels = 1, .out_channels = 4, .kernel_size = 3, .padding = 1}};
  nn::Linear fc1{*this, "fc1", {.in_features = 4 * 36, .out_features = 16}};
  nn::Linear fc2{*this, "fc2", {.in_features = 16, .out_features = 5}};
  Tensor forward(const Tensor& x) { return fc2(tanh(fc1(tanh(conv(x)).flatten(1)))); }
};

struct Samples {
  Tensor inputs, targets;
};
// The batch that all ranks have together: `per_rank` samples of each.
inline Samples joined_batch(int per_rank, DType dtype, std::uint64_t seed = 5) {
  Generator generator(seed);
  const std::int64_t count = static_cast<std::int64_t>(per_rank) * ranks();
  return {randn({count, 1, 6, 6}, dtype, {}, &generator),
          randint(0, 5, {count}, DType::kInt64, {}, &generator)};
}
inline Samples own_part(const Samples& joined, int per_rank) {
  const std::int64_t start = static_cast<std::int64_t>(own_rank()) * per_rank;
  return {joined.inputs.narrow(0, start, per_rank), joined.targets.narrow(0, start, per_rank)};
}

template <class Model>
Tensor loss_of(Model& model, const Samples& samples) {
  return cross_entropy(model(samples.inputs), samples.targets);
}

// Gradients of the joined batch, computed by this process alone.
inline std::vector<Tensor> reference_gradients(SmallNet& net, const Samples& joined) {
  SmallNet copy = net.clone();
  loss_of(copy, joined).backward();
  std::vector<Tensor> grads;
  for (const Tensor& parameter : copy.parameters()) grads.push_back(parameter.grad());
  return grads;
}

inline std::vector<Tensor> gradients_of(const nn::ModuleBase& net) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : net.parameters()) grads.push_back(parameter.grad());
  return grads;
}
inline std::vector<Tensor> copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(raw::clone(tensor));
  return result;
}

inline double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    for (std::size_t k = 0; k < x.size(); ++k) largest = std::max(largest, std::abs(x[k] - y[k]));
  }
  return largest;
}
inline bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor x = raw::contiguous(a[i]), y = raw::contiguous(b[i]);
    if (std::memcmp(x.raw_data(), y.raw_data(), static_cast<std::size_t>(x.numel()) * x.element_size()) != 0)
      return false;
  }
  return a.size() == b.size();
}
// True if every rank holds the same bits.
inline bool same_on_all_ranks(const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) {
    const Tensor x = raw::contiguous(tensor);
    bytes.append(static_cast<const char*>(x.raw_data()),
                 static_cast<std::size_t>(x.numel()) * x.element_size());
  }
  for (const std::string& other : comm::world()->exchange(bytes)) {
    if (other != bytes) return false;
  }
  return true;
}

}  // namespace tutti::testing
