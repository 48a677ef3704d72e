// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/errors.hpp"
#include "support/golden.hpp"
#include "tutti/autograd/autograd.hpp"
#include "tutti/device/memory.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/optim/adam.hpp"
#include "tutti/optim/sgd.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::optim {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::expect_error;
using tutti::testing::golden::all_close;

Tensor leaf(const Tensor& value) {
  Tensor tensor = value.clone();
  tensor.requires_grad_();
  return tensor;
}

TEST(Optimizer, TrainsWithGradientsOfBackward) {
  Tensor weight = leaf(tensor({4.0, -2.0}));
  Sgd optimizer({weight}, {.lr = 0.25});
  for (int step = 1; step <= 3; ++step) {
    optimizer.zero_grad();
    (weight * weight).sum().backward();
    optimizer.step();  // w <- w - 0.25 * 2 w
    EXPECT_TRUE(
        all_close(weight.detach(), tensor({4.0 * std::pow(0.5, step), -2.0 * std::pow(0.5, step)}), 1e-6, 0));
  }
}

TEST(Optimizer, AParameterWithoutAGradientIsUntouchedAndItsStepsDontCount) {
  Tensor often = zeros({1}, DType::kFloat64);
  Tensor rarely = zeros({1}, DType::kFloat64);
  Adam optimizer({often, rarely}, {.lr = 0.1});
  often.set_grad(full({1}, 1.0, DType::kFloat64));
  for (int step = 0; step < 4; ++step) optimizer.step();
  EXPECT_EQ(rarely.item<double>(), 0.0);
  EXPECT_EQ(rarely.version(), 0U);
  EXPECT_FALSE(optimizer.state_dict().contains("state.1.exp_avg"));
  // The bias correction of the very first step makes it lr * sign(g), whatever the other parameter has done.
  rarely.set_grad(full({1}, 0.5, DType::kFloat64));
  optimizer.step();
  EXPECT_NEAR(rarely.item<double>(), -0.1, 1e-8);
  EXPECT_EQ(optimizer.state_dict().integer("state.0.step"), 5);
  EXPECT_EQ(optimizer.state_dict().integer("state.1.step"), 1);
}

// 0 * infinity would be NaN; PyTorch leaves the product out.
TEST(Optimizer, AnInfiniteParameterStaysInfiniteWithoutWeightDecay) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16}) {
    const auto stepped = [&](auto make) {
      Tensor weight = tensor({infinity, 1.0}).to(dtype);
      weight.set_grad(tensor({0.5, 0.5}).to(dtype));
      make(weight).step();
      return weight.to_vector<double>();
    };
    const auto sgd = stepped([](const Tensor& w) { return Sgd({w}, {.lr = 0.25}); });
    EXPECT_EQ(sgd, (std::vector<double>{infinity, 0.875})) << name(dtype);
    const auto momentum = stepped([](const Tensor& w) { return Sgd({w}, {.lr = 0.25, .momentum = 0.9}); });
    EXPECT_EQ(momentum, (std::vector<double>{infinity, 0.875})) << name(dtype);
    const auto adam = stepped([](const Tensor& w) { return Adam({w}, {.lr = 0.25}); });
    EXPECT_EQ(adam[0], infinity) << name(dtype);
    EXPECT_NEAR(adam[1], 0.75, 1e-3) << name(dtype);
  }
}

TEST(Optimizer, DampeningStartsInAParametersSecondStep) {
  Tensor early = zeros({1}, DType::kFloat64);
  Tensor late = zeros({1}, DType::kFloat64);
  Sgd optimizer({early, late}, {.lr = 1, .momentum = 0.5, .dampening = 0.5});
  early.set_grad(ones({1}, DType::kFloat64));
  optimizer.step();
  late.set_grad(ones({1}, DType::kFloat64));
  optimizer.step();
  EXPECT_NEAR(early.item<double>(), -1 - (0.5 + 0.5), 1e-15);
  EXPECT_NEAR(late.item<double>(), -1, 1e-15);
}

TEST(Optimizer, GroupsHaveTheirOwnOptions) {
  Tensor a = zeros({1});
  Tensor b = zeros({1});
  Sgd optimizer(std::vector<Sgd::Group>{{{a}, {.lr = 1}}, {{b}, {.lr = 10}}});
  a.set_grad(ones({1}));
  b.set_grad(ones({1}));
  optimizer.step();
  EXPECT_EQ(a.item<float>(), -1.0F);
  EXPECT_EQ(b.item<float>(), -10.0F);
  optimizer.set_lr(1, 0.5);
  optimizer.step();
  EXPECT_EQ(a.item<float>(), -2.0F);
  EXPECT_EQ(b.item<float>(), -10.5F);
  Tensor c = zeros({1});
  optimizer.add_group({{c}, {.lr = 3}});
  c.set_grad(ones({1}));
  optimizer.step();
  EXPECT_EQ(c.item<float>(), -3.0F);
  EXPECT_EQ(optimizer.group_count(), 3U);
}

TEST(Optimizer, MixedDtypesOfOneGroup) {
  std::vector<Tensor> parameters;
  for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kFloat32, DType::kBFloat16}) {
    parameters.push_back(ones({3}, dtype));
    parameters.back().set_grad(full({3}, 0.5, dtype));
  }
  AdamW optimizer(parameters, {.lr = 0.25, .weight_decay = 0});
  optimizer.step();
  for (const Tensor& parameter : parameters)
    EXPECT_TRUE(all_close(parameter, tensor({0.75, 0.75, 0.75}), 0, 1e-6)) << name(parameter.dtype());
}

// The update is elementwise: whatever the layouts, the result is that of contiguous copies.
TEST(Optimizer, AnyLayoutOfParameterAndGradientGivesTheSameValues) {
  Generator generator(7);
  const Tensor values = randn({2, 3, 4, 5}, DType::kFloat32, {}, &generator);
  const Tensor gradient = randn({2, 3, 4, 5}, DType::kFloat32, {}, &generator);
  const auto strided = [](const Tensor& tensor) {  // not dense
    Tensor wide = zeros({2, 3, 4, 10});
    Tensor view = wide.slice(3, 0, 10, 2);
    return view.copy_(tensor);
  };
  const auto channels_last = [](const Tensor& tensor) {
    return tensor.contiguous(MemoryFormat::kChannelsLast);
  };
  const auto same = [](const Tensor& tensor) { return tensor.clone(); };
  const auto run = [&](const auto& layout_of_parameter, const auto& layout_of_gradient) {
    Tensor parameter = layout_of_parameter(values);
    AdamW optimizer({parameter}, {.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      parameter.set_grad(layout_of_gradient(gradient));
      optimizer.step();
    }
    EXPECT_EQ(parameter.version() > 0, true);
    return parameter.to_vector<float>();
  };
  const std::vector<float> expected = run(same, same);
  EXPECT_EQ(run(channels_last, channels_last), expected);
  EXPECT_EQ(run(channels_last, same), expected);
  EXPECT_EQ(run(same, channels_last), expected);
  EXPECT_EQ(run(strided, same), expected);
  EXPECT_EQ(run(same, strided), expected);
  EXPECT_EQ(run(strided, channels_last), expected);
}

TEST(Optimizer, AnUpdateCountsAsAnInPlaceWrite) {
  Tensor weight = leaf(tensor({1.0}));
  Sgd optimizer({weight}, {.lr = 0.1});
  const Tensor loss = (weight * weight).sum();
  loss.backward({}, {.retain_graph = true});
  optimizer.step();
  expect_error<AutogradError>([&] { loss.backward(); },
                              "Mul: saved tensor 1 (float32 [1]) was modified in place: version 1, wanted 0");
}

TEST(Optimizer, ZeroGradForgetsOrZeroes) {
  Tensor weight = leaf(tensor({1.0}));
  Sgd optimizer({weight}, {.lr = 0.1});
  weight.sum().backward();
  const Tensor gradient = weight.grad();
  optimizer.zero_grad(false);
  EXPECT_TRUE(weight.grad().is_same(gradient));
  EXPECT_EQ(gradient.item<float>(), 0.0F);
  optimizer.zero_grad();
  EXPECT_FALSE(weight.grad().defined());
}

TEST(Optimizer, AWarmStepMakesNoTensor) {
  Tensor a = zeros({100});
  Tensor b = zeros({3, 3});
  AdamW optimizer({a, b});
  a.set_grad(ones({100}));
  b.set_grad(ones({3, 3}));
  optimizer.step();
  const std::int64_t before = memory_stats().allocations;
  for (int step = 0; step < 5; ++step) optimizer.step();
  EXPECT_EQ(memory_stats().allocations, before);
}

TEST(Optimizer, ALoadedStateIsConvertedToTheParametersDtype) {
  Tensor parameter = zeros({2}, DType::kFloat64);
  Sgd optimizer({parameter}, {.lr = 1, .momentum = 0.5});
  parameter.set_grad(ones({2}, DType::kFloat64));
  optimizer.step();
  StateDict state = optimizer.state_dict();
  Tensor converted = parameter.to(DType::kFloat32);
  Sgd other({converted}, {.lr = 1, .momentum = 0.5});
  other.load_state_dict(state);
  converted.set_grad(ones({2}));
  other.step();  // velocity 0.5 * 1 + 1
  EXPECT_TRUE(all_close(converted, tensor({-2.5, -2.5}), 0, 1e-6));
}

TEST(Optimizer, OptionsOutsideTheirDomainAreRefusedAtConstructionAndWhenSet) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Tensor> parameters{zeros({1})};
  const auto message = [](const auto& f) { return error_of<ValueError>(f); };
  EXPECT_EQ(message([&] { Sgd(parameters, {.lr = nan}); }),
            "SGD: lr must be finite and at least 0, given nan");
  EXPECT_EQ(message([&] { Sgd(parameters, {.lr = -0.1}); }),
            "SGD: lr must be finite and at least 0, given -0.1");
  EXPECT_TRUE(contains(message([&] { Sgd(parameters, {.momentum = -1}); }), "momentum must be"));
  EXPECT_TRUE(contains(message([&] { Sgd(parameters, {.dampening = nan}); }), "dampening must be finite"));
  EXPECT_TRUE(contains(message([&] { Sgd(parameters, {.weight_decay = -1}); }), "weight_decay must be"));
  EXPECT_TRUE(
      contains(message([&] { Sgd(parameters, {.nesterov = true}); }), "nesterov needs a momentum above 0"));
  EXPECT_TRUE(
      contains(message([&] { Sgd(parameters, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }),
               "given momentum 0.9 and dampening 0.1"));
  EXPECT_TRUE(contains(message([&] { Adam(parameters, {.beta1 = 1}); }),
                       "Adam: beta1 must be at least 0 and below 1"));
  EXPECT_TRUE(contains(message([&] { AdamW(parameters, {.beta2 = nan}); }), "AdamW: beta2 must be"));
  EXPECT_TRUE(contains(message([&] { AdamW(parameters, {.eps = -1}); }), "AdamW: eps must be"));

  Sgd sgd(parameters, {.lr = 0.5, .momentum = 0.9, .nesterov = true});
  EXPECT_EQ(message([&] { sgd.set_lr(0, nan); }), "SGD: lr must be finite and at least 0, given nan");
  EXPECT_TRUE(contains(message([&] { sgd.set_momentum(0, 0); }), "nesterov needs"));
  EXPECT_TRUE(contains(message([&] { sgd.set_options(0, {.lr = -1}); }), "lr must be"));
  EXPECT_EQ(sgd.lr(), 0.5);
  EXPECT_EQ(sgd.momentum(), 0.9);
  Adam adam(parameters);
  EXPECT_TRUE(contains(message([&] { adam.set_momentum(0, 1.5); }), "beta1 must be"));
}

TEST(Optimizer, ParameterListsAreChecked) {
  Tensor a = zeros({1});
  Tensor b = zeros({1});
  const auto message = [](const auto& f) { return error_of<ValueError>(f); };
  EXPECT_TRUE(contains(message([&] { Sgd{std::vector<Tensor>{}}; }), "parameter group 0 is empty"));
  EXPECT_TRUE(
      contains(message([&] { Sgd{std::vector<Sgd::Group>{}}; }), "list of parameter groups is empty"));
  EXPECT_TRUE(contains(message([&] {
                         Sgd({a, b, a});
                       }),
                       "parameter 2 of group 0 is parameter 0 of group 0 too"));
  EXPECT_TRUE(contains(message([&] {
                         Sgd(std::vector<Sgd::Group>{{{a}, {}}, {{b, a}, {}}});
                       }),
                       "parameter 1 of group 1 is parameter 0 of group 0 too"));
  EXPECT_TRUE(contains(message([&] { Sgd({a, Tensor()}); }), "parameter 1 of group 0 is undefined"));
  const Tensor result = leaf(a) * 2;
  EXPECT_TRUE(contains(message([&] { Sgd({result}); }), "only leaves can be optimized"));
  Sgd optimizer({a});
  EXPECT_TRUE(contains(error_of<IndexError>([&] { optimizer.set_lr(1, 0.1); }),
                       "there is no parameter group 1 of 1"));
  EXPECT_TRUE(contains(error_of<IndexError>([&] { (void)optimizer.options(4); }), "no parameter group 4"));
}

TEST(Optimizer, AnExpandedParameterIsRefusedBeforeAnythingChanges) {
  const Tensor a = zeros({1});
  const auto message = [](const auto& f) { return error_of<ShapeError>(f); };
  EXPECT_TRUE(
      contains(message([&] {
                 Sgd({a, zeros({1}).expand({3})});
               }),
               "optimizer: parameter 1 of group 0: elements of the tensor to be written share memory"));
  Sgd optimizer({a}, {.lr = 1});
  EXPECT_TRUE(contains(message([&] {
                         optimizer.add_group({{zeros({1}).expand({3})}, {}});
                       }),
                       "optimizer: parameter 0 of group 1"));
  EXPECT_EQ(optimizer.group_count(), 1U);
}

TEST(Optimizer, AnInitialRateOutsideItsDomainIsRefused) {
  Adam optimizer({zeros({1})});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of<ValueError>([&] { optimizer.set_initial_lr(0, nan); }),
            "Adam: initial_lr must be finite and at least 0, given nan");
  EXPECT_FALSE(optimizer.initial_lr().has_value());
}

}  // namespace
}  // namespace tutti::optim
