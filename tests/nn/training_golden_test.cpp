// SPDX-License-Identifier: Apache-2.0
// Whole trainings of 20 steps on Fashion-MNIST against PyTorch's: each step's loss, the score on test images, the parameters' norms.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include "support/formula_weights.hpp"
#include "support/golden.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/data/mnist.hpp"
#include "tutti/nn/nn.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/optim/optim.hpp"

namespace tutti {
namespace {

namespace golden = tutti::testing::golden;
using golden::Case;

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";
constexpr std::int64_t kTestImages = 1000;

struct LeNet : nn::Module<LeNet> {
  using Module::Module;
  nn::Conv2d conv1{*this, "conv1", {.in_channels = 1, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  nn::Conv2d conv2{*this, "conv2", {.in_channels = 32, .out_channels = 64, .kernel_size = 3, .padding = 1}};
  nn::Linear fc1{*this, "fc1", {.in_features = 3136, .out_features = 128}};
  nn::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 10}};
  Tensor forward(const Tensor& x) {
    const Tensor a = max_pool2d(relu(conv1(x)), {.kernel_size = 2});
    const Tensor b = max_pool2d(relu(conv2(a)), {.kernel_size = 2});
    return fc2(relu(fc1(b.flatten(1))));
  }
};

struct Mlp : nn::Module<Mlp> {
  using Module::Module;
  nn::Linear fc1{*this, "fc1", {.in_features = 784, .out_features = 128}};
  nn::BatchNorm1d bn{*this, "bn", {.num_features = 128}};
  nn::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 10}};
  Tensor forward(const Tensor& x) { return fc2(relu(bn(fc1(x.flatten(1))))); }
};

struct Samples {
  Tensor images;  // [N, 1, 28, 28], pixels / 255
  Tensor labels;
};
Samples samples(const data::Mnist& set, std::int64_t first, std::int64_t count, DType dtype) {
  const Tensor pixels = set.images().narrow(0, first, count).unsqueeze(1);
  return {pixels.to(dtype) / 255.0, set.labels().narrow(0, first, count).to(DType::kInt64)};
}

struct Tolerances {
  double loss, norm;  // relative
  std::int64_t correct;
};
Tolerances tolerances(DType dtype) {
  return dtype == DType::kFloat64 ? Tolerances{1e-6, 1e-6, 0} : Tolerances{1e-3, 1e-2, 10};
}

void expect_relative(double given, double wanted, double tolerance, const std::string& what) {
  EXPECT_NEAR(given, wanted, tolerance * std::abs(wanted)) << what;
}

template <class Net>
void expect_test_score(Net& net, const Case& one, DType dtype) {
  const data::FashionMnist test(kFashionMnist, data::Split::kTest);
  const Samples batch = samples(test, 0, kTestImages, dtype);
  net.eval();
  const autograd::NoGradGuard no_grad;
  const Tensor logits = net(batch.images);
  const Tolerances allowed = tolerances(dtype);
  const auto correct = eq(argmax(logits, 1), batch.labels).sum().template item<std::int64_t>();
  const auto wanted = one.json.at("test_correct_of_1000").template get<std::int64_t>();
  EXPECT_LE(std::abs(correct - wanted), allowed.correct) << correct << " correct, wanted " << wanted;
  expect_relative(cross_entropy(logits, batch.labels).item(), one.json.at("test_loss").template get<double>(),
                  allowed.loss, "test loss");
}

using StepFunction = std::function<void()>;
// Makes what runs after each backward: the optimizer's step, and the scheduler's.
using MakeStep = std::function<StepFunction(const std::vector<Tensor>& parameters)>;

template <class Net>
void train(const std::string& name, DType dtype, const MakeStep& make_step) {
  const golden::File file = golden::load("train");
  const Case& one = file.find(name);
  Net net;
  net.load_state_dict(tutti::testing::formula_weights(net.state_dict()));
  net.to(dtype);
  const StepFunction step = make_step(net.parameters());
  const data::FashionMnist set(kFashionMnist, data::Split::kTrain);
  const auto batch_size = one.json.at("batch").template get<std::int64_t>();
  const auto first = one.json.at("first_image").template get<std::int64_t>();
  const auto losses = one.json.at("loss").template get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 20U);
  const Tolerances allowed = tolerances(dtype);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Samples batch = samples(set, first + static_cast<std::int64_t>(i) * batch_size, batch_size, dtype);
    const Tensor loss = cross_entropy(net(batch.images), batch.labels);
    expect_relative(loss.item(), losses[i], allowed.loss, concat("loss of step ", i));
    net.zero_grad();
    loss.backward();
    step();
  }
  expect_test_score(net, one, dtype);
  for (const nn::NamedTensor& parameter : net.named_parameters()) {
    const double norm = std::sqrt((parameter.tensor.detach() * parameter.tensor.detach()).sum().item());
    expect_relative(norm, one.json.at("param_l2").at(parameter.name).template get<double>(), allowed.norm,
                    parameter.name);
  }
}

StepFunction lenet_sgd(const std::vector<Tensor>& parameters) {
  auto sgd = std::make_shared<optim::Sgd>(
      parameters, optim::SgdOptions{.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
  return [sgd] { sgd->step(); };
}
StepFunction mlp_adamw(const std::vector<Tensor>& parameters) {
  auto adamw =
      std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.01});
  return [adamw] { adamw->step(); };
}
StepFunction mlp_nesterov_cosine(const std::vector<Tensor>& parameters) {
  auto sgd = std::make_shared<optim::Sgd>(parameters,
                                          optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  auto cosine =
      std::make_shared<optim::CosineAnnealingLR>(*sgd, optim::CosineAnnealingLROptions{.t_max = 20});
  return [sgd, cosine] {
    sgd->step();
    cosine->step();
  };
}

class Training : public ::testing::TestWithParam<DType> {};

TEST_P(Training, LeNetWithSgdFollowsPyTorch) { train<LeNet>("lenet_sgd", GetParam(), lenet_sgd); }
TEST_P(Training, MlpWithAdamWFollowsPyTorch) { train<Mlp>("mlp_adamw", GetParam(), mlp_adamw); }
TEST_P(Training, MlpWithNesterovAndCosineFollowsPyTorch) {
  train<Mlp>("mlp_nesterov_cosine", GetParam(), mlp_nesterov_cosine);
}

INSTANTIATE_TEST_SUITE_P(In, Training, ::testing::Values(DType::kFloat64, DType::kFloat32),
                         [](const auto& given) { return std::string(name(given.param)); });

}  // namespace
}  // namespace tutti
