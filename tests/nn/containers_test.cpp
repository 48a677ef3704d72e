// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/containers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ranges>

#include "support/errors.hpp"
#include "tutti/nn/layers.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

struct BlockOptions {
  std::int64_t width = 0;
};
struct Block : nn::Module<Block> {
  nn::Linear fc;
  explicit Block(const BlockOptions& o)
      : fc(*this, "fc", {.in_features = o.width, .out_features = o.width}) {}
  Tensor forward(const Tensor& x) { return fc(x); }
};
struct Tower : nn::Module<Tower> {
  nn::ModuleList<Block> blocks{*this, "blocks", 3, BlockOptions{.width = 4}};
  nn::Sequential head{*this, "head", nn::Linear{{.in_features = 4, .out_features = 2}}, nn::ReLU{},
                      nn::Sequential{nn::Flatten{}, nn::Dropout{{.p = 0.25}}}};
  Tensor forward(const Tensor& x) {
    Tensor h = x;
    for (Block& block : blocks) h = block(h);
    return head(h);
  }
};

std::vector<std::string> parameter_names(nn::ModuleBase& module) {
  std::vector<std::string> names;
  for (const auto& entry : module.named_parameters()) names.push_back(entry.name);
  return names;
}

TEST(Containers, ElementsAreNamedByPosition) {
  Tower tower;
  EXPECT_EQ(parameter_names(tower),
            (std::vector<std::string>{"blocks.0.fc.weight", "blocks.0.fc.bias", "blocks.1.fc.weight",
                                      "blocks.1.fc.bias", "blocks.2.fc.weight", "blocks.2.fc.bias",
                                      "head.0.weight", "head.0.bias"}));
  std::vector<std::string> modules;
  for (const auto& entry : tower.named_modules()) modules.push_back(entry.name);
  EXPECT_EQ(modules.back(), "head.2.1");
}

TEST(Containers, CloneCopiesElements) {
  Tower tower;
  Tower copy = tower.clone();
  EXPECT_FALSE(copy.blocks[1].fc.weight.shares_storage(tower.blocks[1].fc.weight));
  tower.eval();
  copy.eval();
  const Tensor x = ones({2, 4});
  EXPECT_EQ(copy(x).to_vector<float>(), tower(x).to_vector<float>());
  EXPECT_EQ(parameter_names(copy), parameter_names(tower));
}

TEST(Containers, ModesReachElements) {
  Tower tower;
  tower.eval();
  EXPECT_FALSE(tower.blocks[2].fc.is_training());
}

TEST(Containers, MovedToTowerWorks) {
  Tower tower;
  tower.eval();
  const Tensor x = ones({2, 4});
  const auto before = tower(x).to_vector<float>();
  Tower moved = std::move(tower);
  EXPECT_EQ(moved(x).to_vector<float>(), before);
  EXPECT_EQ(parameter_names(moved).size(), 8U);
}

TEST(Containers, IndexOutsideTheListIsAnError) {
  Tower tower;
  tutti::testing::expect_error<IndexError>([&] { tower.blocks[3]; }, "ModuleList: index 3 in a list of 3");
}

TEST(Containers, AlgorithmsWalkOverAList) {
  static_assert(std::forward_iterator<nn::ModuleList<Block>::Iterator>);
  Tower tower;
  EXPECT_EQ(std::ranges::distance(tower.blocks), 3);
  const auto found =
      std::ranges::find_if(tower.blocks, [&](const Block& block) { return &block == &tower.blocks[1]; });
  ASSERT_TRUE(found != tower.blocks.end());
  EXPECT_EQ(&*found, &tower.blocks[1]);
  EXPECT_EQ(found->fc.options.in_features, 4);
  EXPECT_EQ(std::distance(tower.blocks.begin(), found), 1);
}

// As deep as it arose, by the names of state_dict; each error once, whatever else is tried with the same module.
TEST(Containers, ErrorsOfForwardNameTheModule) {
  nn::Sequential net{nn::Linear({.in_features = 3, .out_features = 4}),
                     nn::Sequential{nn::ReLU(), nn::Linear({.in_features = 5, .out_features = 2})}};
  for (int i = 0; i < 2; ++i) {
    try {
      net(ones({1, 3}));
      ADD_FAILURE() << "no error";
    } catch (const ShapeError& error) {
      const std::string text = error.what();
      const std::string end = "; in Sequential.1.1 (Linear)";
      EXPECT_TRUE(text.ends_with(end) && text.find("; in ") == text.size() - end.size()) << text;
    }
  }
  nn::Linear alone({.in_features = 3, .out_features = 4});
  tutti::testing::expect_error<ShapeError>([&] { alone(ones({1, 2})); }, "; in Linear");
}

// Layers get their predecessor's result as a temporary, whose memory ReLU and MaxPool2d may take; a hook that keeps it is seen.
TEST(Containers, SequentialHandsOnTemporariesWithoutAnyoneNoticing) {
  const Tensor x = randn({2, 1, 8, 8});
  nn::Sequential net{nn::Conv2d{{.in_channels = 1, .out_channels = 4, .kernel_size = 3}}, nn::ReLU{},
                     nn::MaxPool2d{{.kernel_size = 2}}};
  const auto parameters = net.parameters();
  const auto gradients = [&] {
    std::vector<std::vector<float>> values;
    for (const Tensor& p : parameters) values.push_back(p.grad().to_vector<float>());
    net.zero_grad();
    return values;
  };
  const Tensor convolved = conv2d(x, parameters[0], parameters[1]), positive = relu(convolved);
  max_pool2d(positive, {.kernel_size = 2}).sum().backward();
  const auto wanted = gradients();
  net(x).sum().backward();
  EXPECT_EQ(gradients(), wanted);

  std::vector<Tensor> seen;
  std::vector<nn::ModuleHookHandle> handles;
  for (const auto& entry : net.named_modules()) {
    if (entry.module == &net) continue;
    handles.push_back(entry.module->register_forward_hook(
        [&seen](nn::ModuleBase&, std::span<const Tensor> outputs) { seen.push_back(outputs[0]); }));
  }
  net(x).sum().backward();
  EXPECT_EQ(gradients(), wanted);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].to_vector<float>(), convolved.to_vector<float>());
  EXPECT_EQ(seen[1].to_vector<float>(), positive.to_vector<float>());
}

}  // namespace
}  // namespace tutti
