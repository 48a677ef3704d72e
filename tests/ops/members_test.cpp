// SPDX-License-Identifier: Apache-2.0
// Tensor's members that forward to a function: each gives that function's bits. Inputs are such that no two of the functions
// give the same.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

bool same_bits(const Tensor& given, const Tensor& wanted) {
  if (given.dtype() != wanted.dtype() || given.sizes() != wanted.sizes()) return false;
  const Tensor left = given.contiguous(), right = wanted.contiguous();
  const std::size_t bytes = static_cast<std::size_t>(left.numel()) * left.element_size();
  return std::memcmp(left.raw_data(), right.raw_data(), bytes) == 0;
}

class Members : public ::testing::Test {
 protected:
  Tensor a = tensor({0.5, 1.25, 2, 3.5, 0.75, 2.25, 1.5, 0.25, 3}).view({3, 3});
  Tensor b = tensor({1.5, 0.5, 3, 0.25, 2, 1.25, 2.5, 0.75, 1.75}).view({3, 3});
  Tensor signs = tensor({-2.5, 1.5, -0.5, 0.25, -1.75, 3, 2.25, -0.75, 0.5}).view({3, 3});
  Tensor places = tensor({2, 0}, DType::kInt64);
};

struct Forwarded {
  Tensor member, function;
};

TEST_F(Members, GiveTheBitsOfTheirFunctions) {
  const std::map<std::string, Forwarded> results = {
      {"add", {a.add(b), add(a, b)}},
      {"add alpha", {a.add(b, 0.25), add(a, b, 0.25)}},
      {"sub", {a.sub(b), sub(a, b)}},
      {"mul", {a.mul(b), mul(a, b)}},
      {"div", {a.div(b), div(a, b)}},
      {"neg", {signs.neg(), neg(signs)}},
      {"exp", {a.exp(), exp(a)}},
      {"log", {a.log(), log(a)}},
      {"sqrt", {a.sqrt(), sqrt(a)}},
      {"tanh", {signs.tanh(), tanh(signs)}},
      {"sigmoid", {signs.sigmoid(), sigmoid(signs)}},
      {"relu", {signs.relu(), relu(signs)}},
      {"pow number", {a.pow(1.7), pow(a, 1.7)}},
      {"pow tensor", {a.pow(b), pow(a, b)}},
      {"matmul", {a.matmul(b), matmul(a, b)}},
      {"sum all", {a.sum(), sum(a)}},
      {"sum dim", {a.sum({1}), sum(a, {1})}},
      {"sum keepdim", {a.sum({0}, true), sum(a, {0}, true)}},
      {"mean all", {a.mean(), mean(a)}},
      {"mean dim", {a.mean({1}), mean(a, {1})}},
      {"mean keepdim", {a.mean({0}, true), mean(a, {0}, true)}},
      {"max all", {a.max(), max(a)}},
      {"max dim", {a.max(1).first, max(a, 1).first}},
      {"max dim's place", {a.max(1).second, max(a, 1).second}},
      {"max keepdim", {a.max(0, true).first, max(a, 0, true).first}},
      {"max keepdim's place", {a.max(0, true).second, max(a, 0, true).second}},
      {"argmax all", {b.argmax(), argmax(b)}},
      {"argmax dim", {b.argmax(0), argmax(b, 0)}},
      {"argmax keepdim", {b.argmax(0, true), argmax(b, 0, true)}},
      {"softmax 0", {a.softmax(0), softmax(a, 0)}},
      {"softmax 1", {a.softmax(1), softmax(a, 1)}},
      {"log_softmax 0", {a.log_softmax(0), log_softmax(a, 0)}},
      {"log_softmax 1", {a.log_softmax(1), log_softmax(a, 1)}},
      {"index_select 0", {a.index_select(0, places), index_select(a, 0, places)}},
      {"index_select 1", {a.index_select(1, places), index_select(a, 1, places)}},
  };
  for (const auto& [name, result] : results) {
    EXPECT_TRUE(same_bits(result.member, result.function)) << name;
    // What the member must not be taken for. max's two forms of one dim differ by sizes.
    for (const auto& [other_name, other] : results) {
      if (other_name != name) {
        EXPECT_FALSE(same_bits(result.member, other.function))
            << name << " and " << other_name << " can't be told apart";
      }
    }
  }
}

TEST_F(Members, InPlaceFormsGiveTheBitsOfTheirFunctions) {
  const std::map<std::string, Forwarded> results = {
      {"add_", {a.clone().add_(b), add(a, b)}},
      {"add_ alpha", {a.clone().add_(b, 0.25), add(a, b, 0.25)}},
      {"add_ number", {a.clone().add_(0.7), add(a, 0.7)}},
      {"sub_", {a.clone().sub_(b), sub(a, b)}},
      {"sub_ number", {a.clone().sub_(0.7), sub(a, 0.7)}},
      {"mul_", {a.clone().mul_(b), mul(a, b)}},
      {"mul_ number", {a.clone().mul_(0.7), mul(a, 0.7)}},
      {"div_", {a.clone().div_(b), div(a, b)}},
      {"div_ number", {a.clone().div_(0.7), div(a, 0.7)}},
      {"pow_", {a.clone().pow_(b), pow(a, b)}},
      {"pow_ number", {a.clone().pow_(1.7), pow(a, 1.7)}},
  };
  for (const auto& [name, result] : results) EXPECT_TRUE(same_bits(result.member, result.function)) << name;
}

TEST_F(Members, OrderOfOperandsIsTheFunctions) {
  EXPECT_FALSE(same_bits(a.sub(b), b.sub(a)));
  EXPECT_FALSE(same_bits(a.div(b), b.div(a)));
  EXPECT_FALSE(same_bits(a.pow(b), b.pow(a)));
  EXPECT_FALSE(same_bits(a.matmul(b), b.matmul(a)));
}

TEST_F(Members, RecordTheirFunctionsOperation) {
  const Tensor x = a.clone().requires_grad_();
  const std::map<std::string, Forwarded> results = {
      {"sub", {x.sub(b), sub(x, b)}},
      {"softmax", {x.softmax(1), softmax(x, 1)}},
      {"matmul", {x.matmul(b), matmul(x, b)}},
      {"index_select", {x.index_select(0, places), index_select(x, 0, places)}},
      {"mean", {x.mean(), mean(x)}},
      {"pow", {x.pow(1.7), pow(x, 1.7)}},
  };
  for (const auto& [name, result] : results) {
    EXPECT_FALSE(result.function.grad_fn_name().empty()) << name;
    EXPECT_EQ(result.member.grad_fn_name(), result.function.grad_fn_name()) << name;
  }
}

}  // namespace
}  // namespace tutti
