// SPDX-License-Identifier: Apache-2.0
// What DistributedDataParallel asks of a module in every step.
#include <gtest/gtest.h>

#include <vector>

#include "support/out_of_memory.hpp"
#include "tutti/nn/layers.hpp"

namespace tutti {
namespace {

struct Inner : nn::Module<Inner> {
  using Module::Module;
  nn::Linear fc{*this, "a_name_that_no_string_holds_without_memory", {.in_features = 3, .out_features = 2}};
  Tensor forward(const Tensor& x) { return fc(x); }
};
struct Net : nn::Module<Net> {
  Inner first{*this, "another_name_that_no_string_holds_without_memory"};
  Tensor forward(const Tensor& x) { return first(x); }
};

TEST(Walk, BuffersOfAModuleThatHasNoneNeedNoMemory) {
  const Net net;
  std::vector<Tensor> buffers;
  {
    const testing::OutOfMemory guard;
    buffers = net.buffers();
  }
  EXPECT_TRUE(buffers.empty());
}

}  // namespace
}  // namespace tutti
