// SPDX-License-Identifier: Apache-2.0
#include "tutti/tensor/state_dict.hpp"

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using tutti::testing::error_of;
using tutti::testing::expect_error;

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> result;
  for (const auto& [name, value] : state) result.push_back(name);
  return result;
}

TEST(StateDict, KeepsTheOrderOfAddition) {
  StateDict state;
  for (const char* name : {"weight", "bias", "running_mean", "a"}) state.set(name, std::int64_t{1});
  EXPECT_EQ(names(state), (std::vector<std::string>{"weight", "bias", "running_mean", "a"}));
}

TEST(StateDict, SetReplacesInPlace) {
  StateDict state;
  state.set("step", std::int64_t{1});
  state.set("lr", 0.5);
  state.set("step", std::int64_t{2});
  EXPECT_EQ(state.size(), 2U);
  EXPECT_EQ(state.integer("step"), 2);
  EXPECT_EQ(names(state).front(), "step");
}

TEST(StateDict, HoldsTensorsNumbersAndText) {
  StateDict state;
  const Tensor weight = ones({2, 3});
  state.set("weight", weight);
  state.set("step", std::int64_t{3});
  state.set("lr", 0.1);
  state.set("name", std::string("adam"));
  EXPECT_TRUE(state.tensor("weight").is_same(weight));
  EXPECT_EQ(state.integer("step"), 3);
  EXPECT_EQ(state.real("lr"), 0.1);
  EXPECT_EQ(state.real("step"), 3.0);
  EXPECT_EQ(state.text("name"), "adam");
  EXPECT_FALSE(state.contains("Weight"));
}

TEST(StateDict, MissingEntryAndWrongKindAreNamed) {
  StateDict state;
  state.set("lr", 0.1);
  EXPECT_EQ(error_of<Error>([&] { state.tensor("weight"); }),
            "state_dict: there is no entry \"weight\", wanted a tensor");
  EXPECT_EQ(error_of<Error>([&] { state.integer("lr"); }),
            "state_dict: entry \"lr\" is a real number, wanted an integer");
  expect_error<Error>([&] { state.text("lr"); }, "state_dict: entry \"lr\" is a real number, wanted");
  expect_error<Error>([&] { state.real("x"); }, "state_dict: there is no entry \"x\", wanted");
}

TEST(StateDict, PrefixesAreAddedAndTakenAway) {
  StateDict inner;
  inner.set("weight", std::int64_t{1});
  inner.set("bias", std::int64_t{2});
  StateDict state;
  state.set("step", std::int64_t{0});
  state.merge("fc1.", inner);
  state.merge("fc10.", inner);
  EXPECT_EQ(names(state),
            (std::vector<std::string>{"step", "fc1.weight", "fc1.bias", "fc10.weight", "fc10.bias"}));
  EXPECT_EQ(names(state.with_prefix("fc1.")), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(state.with_prefix("fc10.").integer("bias"), 2);
  EXPECT_EQ(state.with_prefix("none").size(), 0U);
  state.merge("copy.", state);
  EXPECT_EQ(state.size(), 10U);
}

TEST(StateDict, FindsEachOfManyNames) {
  StateDict state;
  for (std::int64_t i = 0; i < 2000; ++i) state.set(concat("entry", i * 7919 % 2000), i * 7919 % 2000);
  for (std::int64_t i = 0; i < 2000; ++i) ASSERT_EQ(state.integer(concat("entry", i)), i);
  const StateDict copy = state;
  EXPECT_EQ(copy.integer("entry77"), 77);
}

}  // namespace
}  // namespace tutti
