// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/containers.hpp"

namespace tutti::nn {

Sequential::Sequential(const Sequential& other) : Module(other) {
  for (const auto& layer : other.layers_) layers_.push_back(layer->copy());
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor h = x;
  for (const auto& layer : layers_) h = layer->call(std::move(h));
  return h;
}

void Sequential::append_dynamic_children(std::vector<NamedModule>& children) {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    children.push_back({std::to_string(i), &layers_[i]->module()});
}

}  // namespace tutti::nn
