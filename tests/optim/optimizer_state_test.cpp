// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/golden.hpp"
#include "tutti/optim/adam.hpp"
#include "tutti/optim/sgd.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::optim {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;

void set_grads(std::vector<Tensor> parameters, std::uint64_t step) {
  Generator generator(step);
  for (Tensor& parameter : parameters)
    parameter.set_grad(randn(parameter.sizes(), parameter.dtype(), {}, &generator));
}

std::vector<Tensor> make_parameters() { return {ones({2, 3}), ones({4})}; }

template <class OptimizerType>
void expect_resumes_bit_equal(const typename OptimizerType::Options& options) {
  const std::vector<Tensor> parameters = make_parameters();
  OptimizerType optimizer(parameters, options);
  for (std::uint64_t step = 0; step < 3; ++step) {
    set_grads(parameters, step);
    optimizer.step();
  }
  std::vector<Tensor> copies;
  for (const Tensor& parameter : parameters) copies.push_back(parameter.clone());
  OptimizerType resumed(copies);
  resumed.load_state_dict(optimizer.state_dict());
  EXPECT_EQ(resumed.lr(), optimizer.lr());
  for (std::uint64_t step = 3; step < 6; ++step) {
    set_grads(parameters, step);
    set_grads(copies, step);
    optimizer.step();
    resumed.step();
  }
  for (std::size_t i = 0; i < copies.size(); ++i)
    EXPECT_EQ(copies[i].to_vector<float>(), parameters[i].to_vector<float>()) << "parameter " << i;
}

TEST(OptimizerState, ResumedTrainingIsBitEqual) {
  expect_resumes_bit_equal<Sgd>({.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.01});
  expect_resumes_bit_equal<Adam>({.lr = 0.1, .beta1 = 0.8, .amsgrad = true});
  expect_resumes_bit_equal<AdamW>({.lr = 0.1, .weight_decay = 0.1, .maximize = true});
}

TEST(OptimizerState, EntriesCarryPyTorchsNames) {
  const std::vector<Tensor> parameters = make_parameters();
  AdamW optimizer(std::vector<AdamW::Group>{{{parameters[0]}, {.lr = 0.5}}, {{parameters[1]}, {}}});
  set_grads(parameters, 0);
  optimizer.step();
  const StateDict state = optimizer.state_dict();
  EXPECT_EQ(state.text("type"), "AdamW");
  EXPECT_EQ(state.real("param_groups.0.lr"), 0.5);
  EXPECT_EQ(state.real("param_groups.1.weight_decay"), 1e-2);
  EXPECT_EQ(state.integer("state.1.step"), 1);
  EXPECT_EQ(state.tensor("state.0.exp_avg").sizes(), (Dims{2, 3}));
  EXPECT_EQ(state.tensor("state.1.exp_avg_sq").sizes(), (Dims{4}));
  EXPECT_FALSE(state.contains("state.0.max_exp_avg_sq"));
}

TEST(OptimizerState, WhatDoesNotFitIsRefusedAndChangesNothing) {
  const std::vector<Tensor> parameters = make_parameters();
  Adam optimizer(parameters, {.lr = 0.5});
  set_grads(parameters, 0);
  optimizer.step();
  const StateDict good = optimizer.state_dict();
  Adam target(make_parameters(), {.lr = 0.25});
  const auto refused = [&](const StateDict& state) {
    const std::string message = error_of<Error>([&] { target.load_state_dict(state); });
    EXPECT_EQ(target.lr(), 0.25);
    EXPECT_FALSE(target.state_dict().contains("state.0.step"));
    return message;
  };
  const auto without = [&](const std::string& name) {
    StateDict state;
    for (const auto& [entry, value] : good) {
      if (entry != name) state.set(entry, value);
    }
    return state;
  };
  const auto with = [&](const std::string& name, StateDict::Value value) {
    StateDict state = good;
    state.set(name, std::move(value));
    return state;
  };
  EXPECT_TRUE(
      contains(refused(Sgd(make_parameters()).state_dict()), "the state is not that of Adam but of SGD"));
  EXPECT_TRUE(contains(refused(StateDict()), "but of an object without a type"));
  EXPECT_TRUE(contains(refused(Adam({zeros({1})}).state_dict()),
                       "parameter group 0 has 2 parameters, in the state 1"));
  const std::vector<Tensor> others = make_parameters();
  EXPECT_TRUE(contains(refused(Adam(std::vector<Adam::Group>{{others, {}}, {{zeros({1})}, {}}}).state_dict()),
                       "the optimizer has 1 parameter groups, the state more"));
  EXPECT_TRUE(contains(refused(without("param_groups.0.eps")), "there is no entry \"param_groups.0.eps\""));
  EXPECT_TRUE(contains(refused(without("state.1.exp_avg_sq")),
                       "state.1.step is 1, but state.1.exp_avg_sq is missing"));
  EXPECT_TRUE(contains(refused(without("state.1.step")), "state.1.step is 0, but state.1.exp_avg is there"));
  EXPECT_TRUE(contains(refused(with("state.0.exp_avg", zeros({3, 2}))),
                       "state.0.exp_avg has shape [3, 2], its parameter [2, 3]"));
  for (const std::int64_t steps : {std::int64_t{-1}, INT64_MAX}) {
    EXPECT_TRUE(
        contains(refused(with("state.0.step", steps)),
                 "state.0.step must be between 0 and 9007199254740992, given " + std::to_string(steps)));
  }
  EXPECT_TRUE(contains(refused(with("state.0.exp_avg", Tensor())), "state.0.exp_avg is undefined"));
  EXPECT_TRUE(contains(refused(with("param_groups.0.initial_lr", -3.0)),
                       "initial_lr must be finite and at least 0, given -3"));
  EXPECT_TRUE(contains(refused(with("state.2.exp_avg", zeros({1}))),
                       "1 of the entries \"state.*\" belong to no parameter"));
  EXPECT_TRUE(contains(refused(with("param_groups.0.lr", -1.0)), "Adam: lr must be finite"));
  target.load_state_dict(good);
  EXPECT_EQ(target.lr(), 0.5);
}

TEST(OptimizerState, ALoadedStateIsACopy) {
  const std::vector<Tensor> parameters = make_parameters();
  Sgd optimizer(parameters, {.lr = 0.1, .momentum = 0.9});
  set_grads(parameters, 0);
  optimizer.step();
  Sgd other(make_parameters(), {.lr = 0.1, .momentum = 0.9});
  other.load_state_dict(optimizer.state_dict());
  const Tensor theirs = other.state_dict().tensor("state.0.momentum_buffer");
  EXPECT_FALSE(theirs.shares_storage(optimizer.state_dict().tensor("state.0.momentum_buffer")));
}

}  // namespace
}  // namespace tutti::optim
