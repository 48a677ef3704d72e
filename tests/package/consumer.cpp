// SPDX-License-Identifier: Apache-2.0
// A user's program: one step of training, with every part of the library linked in. Also run under an emulator of an old processor.
#include <tutti/tutti.hpp>

#include <cmath>
#include <cstdio>

using namespace tutti;

struct Net : nn::Module<Net> {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", {.in_channels = 1, .out_channels = 4, .kernel_size = 3, .padding = 1}};
  nn::Linear fc{*this, "fc", {.in_features = 4 * 4 * 4, .out_features = 3}};

  Tensor forward(const Tensor& images) {
    return fc(max_pool2d(relu(conv(images)), {.kernel_size = 2}).flatten(1));
  }
};

int main(int argc, char** argv) {
  Environment env{argc, argv};
  Net net;
  parallel::DistributedDataParallel model{net};
  optim::AdamW optimizer{net.parameters(), {.lr = 0.01}};
  const Tensor images = ones({2, 1, 8, 8});
  const Tensor labels = zeros({2}, DType::kInt64);

  double losses[2];
  for (double& value : losses) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(model(images), labels);
    loss.backward();
    optimizer.step();
    value = loss.item<double>();
  }
  std::printf("tutti %s: loss %.4f, then %.4f\n", version(), losses[0], losses[1]);
  return std::isfinite(losses[1]) && losses[1] < losses[0] ? 0 : 1;
}
