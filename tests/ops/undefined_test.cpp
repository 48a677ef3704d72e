// SPDX-License-Identifier: Apache-2.0
// What ops say about a tensor that is undefined.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using testing::error_of;

TEST(UndefinedTensor, IsNamedWithItsOperation) {
  const Tensor x = ones({2}), none;
  const std::map<std::string, std::function<void()>> calls = {
      {"add: b is undefined", [&] { x + none; }},
      {"sub: x is undefined", [&] { 1 - none; }},
      {"pow: base is undefined", [&] { pow(none, 2); }},
      {"lt: a is undefined", [&] { static_cast<void>(none < x); }},
      {"where: condition is undefined", [&] { where(none, x, x); }},
      {"exp: x is undefined", [&] { exp(none); }},
      {"relu: x is undefined", [&] { relu(Tensor()); }},
      {"sum: x is undefined", [&] { none.sum(); }},
      {"matmul: b is undefined", [&] { matmul(x, none); }},
      {"linear: weight is undefined", [&] { linear(x, none); }},
      {"conv2d: x is undefined", [&] { conv2d(none, x); }},
      {"max_pool2d: x is undefined", [&] { max_pool2d(none, {.kernel_size = 2}); }},
      {"batch_norm: x is undefined", [&] { batch_norm(none, x, x); }},
      {"softmax: x is undefined", [&] { softmax(none, 0); }},
      {"cross_entropy: targets is undefined", [&] { cross_entropy(x, none); }},
      {"cat: tensor 1 is undefined",
       [&] {
         cat({x, none});
       }},
      {"index_select: indices is undefined", [&] { index_select(x, 0, none); }},
      {"add_: other is undefined", [&] { ones({2}).add_(none); }},
      {"mul_: the tensor is undefined", [&] { Tensor().mul_(2); }},
      {"neg_: the tensor is undefined", [&] { Tensor().neg_(); }}};
  for (const auto& [text, call] : calls) EXPECT_EQ(error_of<Error>(call), text);
}

}  // namespace
}  // namespace tutti
