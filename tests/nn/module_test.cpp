// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/module.hpp"

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "tutti/nn/containers.hpp"
#include "tutti/nn/layers.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using testing::expect_error;

struct Inner : nn::Module<Inner> {
  using Module::Module;
  nn::Linear fc{*this, "fc", {.in_features = 3, .out_features = 2}};
  nn::Buffer scale{*this, "scale", full(Dims::filled(1, 2), 2.0)};
  nn::Buffer scratch{*this, "scratch", zeros({1}), /*persistent=*/false};
  Tensor forward(const Tensor& x) { return fc(x) * scale; }
};

struct Net : nn::Module<Net> {
  using Module::Module;
  nn::Parameter bias{*this, "bias", zeros({2})};
  Inner first{*this, "first"};
  Inner second{*this, "second"};
  Tensor forward(const Tensor& x) { return first(x) + second(x) + bias; }
};

std::vector<std::string> names_of(const std::vector<nn::NamedTensor>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

TEST(Module, NamesFollowTheDeclaration) {
  Net net;
  EXPECT_EQ(names_of(net.named_parameters()),
            (std::vector<std::string>{"bias", "first.fc.weight", "first.fc.bias", "second.fc.weight",
                                      "second.fc.bias"}));
  EXPECT_EQ(names_of(net.named_buffers()),
            (std::vector<std::string>{"first.scale", "first.scratch", "second.scale", "second.scratch"}));
  std::vector<std::string> modules;
  for (const auto& entry : net.named_modules())
    modules.push_back(entry.name + ":" + entry.module->type_name());
  EXPECT_EQ(modules, (std::vector<std::string>{":Net", "first:Inner", "first.fc:Linear", "second:Inner",
                                               "second.fc:Linear"}));
}

// PyTorch's order: a module's own entries before those of its children.
TEST(Module, StateDictLeavesTransientBuffersOut) {
  Net net;
  std::vector<std::string> names;
  for (const auto& [name, value] : net.state_dict()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"bias", "first.scale", "first.fc.weight", "first.fc.bias",
                                             "second.scale", "second.fc.weight", "second.fc.bias"}));
}

TEST(Module, ChildrenAreTheDirectOnesInOrder) {
  Net net;
  std::vector<std::string> names;
  std::vector<nn::ModuleBase*> modules;
  for (const auto& [name, module] : net.named_children()) {
    names.push_back(name);
    modules.push_back(module);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second"}))
      << "neither the module nor what lies deeper";
  EXPECT_EQ(modules, (std::vector<nn::ModuleBase*>{&net.first, &net.second}));
  EXPECT_TRUE(net.first.fc.named_children().empty());
  nn::ModuleList<Inner> list;
  list.emplace_back();
  list.emplace_back();
  std::vector<std::string> places;
  for (const auto& child : list.named_children()) places.push_back(child.name);
  EXPECT_EQ(places, (std::vector<std::string>{"0", "1"})) << "children that the module owns elsewhere";
}

TEST(Module, ApplyVisitsChildrenBeforeTheirOwners) {
  Net net;
  std::vector<nn::ModuleBase*> visited;
  net.apply([&](nn::ModuleBase& module) { visited.push_back(&module); });
  EXPECT_EQ(visited,
            (std::vector<nn::ModuleBase*>{&net.first.fc, &net.first, &net.second.fc, &net.second, &net}));
  net.apply([](nn::ModuleBase& module) {
    if (auto* inner = dynamic_cast<Inner*>(&module)) inner->scale.fill_(7);
  });
  EXPECT_EQ(net.second.scale.to_vector<double>(), (std::vector<double>{7, 7}));
}

struct Twice : nn::Module<Twice> {
  nn::ReLU a{*this, "act"};
  nn::ReLU b{*this, "act"};
  Tensor forward(const Tensor& x) { return x; }
};
TEST(Module, TwoMembersOfOneNameAreRefused) {
  expect_error<ModuleError>([] { Twice twice; }, "two members of one module are named \"act\"");
}

struct Dotted : nn::Module<Dotted> {
  nn::ReLU a{*this, "a.b"};
  Tensor forward(const Tensor& x) { return x; }
};
TEST(Module, NamesWithDotsAreRefused) {
  expect_error<ModuleError>([] { Dotted dotted; }, "\"a.b\" is no name for a member");
}

struct Stray : nn::Module<Stray> {
  Stray() { nn::ReLU local(*this, "local"); }
  Tensor forward(const Tensor& x) { return x; }
};
TEST(Module, ChildThatIsNoMemberIsRefused) {
  expect_error<ModuleError>([] { auto stray = std::make_unique<Stray>(); },
                            "\"local\" registers with a module that it is no member of");
}

TEST(Module, MovedToModuleWorks) {
  Net net;
  const Tensor x = ones({1, 3});
  const std::vector<float> before = net(x).to_vector<float>();
  const Tensor weight = net.first.fc.weight;
  Net moved = std::move(net);
  EXPECT_EQ(moved(x).to_vector<float>(), before);
  ASSERT_EQ(moved.named_parameters().size(), 5U);
  EXPECT_TRUE(moved.named_parameters()[1].tensor.is_same(weight));
  Net assigned;
  assigned = std::move(moved);
  EXPECT_TRUE(assigned.named_parameters()[1].tensor.is_same(weight));
}

struct Tied : nn::Module<Tied> {
  nn::Linear in{*this, "in", {.in_features = 4, .out_features = 4}};
  nn::Linear out{*this, "out", {.in_features = 4, .out_features = 4, .bias = false}};
  Tied() { out.weight = in.weight; }
  Tensor forward(const Tensor& x) { return out(in(x)); }
};

TEST(Module, TiedParameterCountsOnceButIsSavedUnderBothNames) {
  Tied tied;
  EXPECT_EQ(names_of(tied.named_parameters()), (std::vector<std::string>{"in.weight", "in.bias"}));
  EXPECT_TRUE(tied.state_dict().contains("out.weight"));
}

TEST(Module, ListsWithoutNamesHoldTheSameTensorsInTheSameOrder) {
  nn::Sequential net{nn::Linear{{.in_features = 2, .out_features = 3}}, nn::BatchNorm1d{{.num_features = 3}},
                     nn::Sequential{nn::BatchNorm1d{{.num_features = 3}}}};
  const auto expect_same = [](const std::vector<Tensor>& tensors, const std::vector<nn::NamedTensor>& named) {
    ASSERT_EQ(tensors.size(), named.size());
    for (std::size_t i = 0; i < named.size(); ++i) EXPECT_TRUE(tensors[i].is_same(named[i].tensor)) << i;
  };
  expect_same(net.parameters(), net.named_parameters());
  expect_same(net.buffers(), net.named_buffers());
  Tied tied;
  expect_same(tied.parameters(), tied.named_parameters());
}

TEST(Module, CloneIsDeepAndKeepsTies) {
  Tied tied;
  Tied copy = tied.clone();
  EXPECT_TRUE(copy.out.weight.is_same(copy.in.weight));
  EXPECT_FALSE(copy.in.weight.shares_storage(tied.in.weight));
  EXPECT_EQ(copy.in.weight.to_vector<float>(), tied.in.weight.to_vector<float>());
  EXPECT_TRUE(copy.in.weight.requires_grad());
  tied.in.weight.detach().fill_(7);
  EXPECT_NE(copy.in.weight.to_vector<float>(), tied.in.weight.to_vector<float>());
}

TEST(Module, CopyingWithoutCloneIsRefused) {
  Tied tied;
  expect_error<ModuleError>([&] { Tied copy(tied); }, "use clone() for a deep copy");
}

TEST(Module, StrictLoadListsEverythingThatDoesNotFitAndChangesNothing) {
  Net net;
  StateDict state = Net().state_dict();
  StateDict given;
  for (const auto& [name, value] : state) {
    if (name != "bias") given.set(name, value);
  }
  given.set("first.fc.weight", zeros({2, 4}));
  given.set("extra", zeros({1}));
  const std::vector<float> before = net.second.fc.weight.to_vector<float>();
  expect_error<ModuleError>([&] { net.load_state_dict(given); },
                            "load_state_dict: the entries do not fit Net\n"
                            "  missing (in the module, not in the state_dict):\n    bias\n"
                            "  unexpected (in the state_dict, not in the module):\n    extra\n"
                            "  misshapen:\n    first.fc.weight: module [2, 3], state_dict [2, 4]");
  EXPECT_EQ(net.second.fc.weight.to_vector<float>(), before);
  const nn::LoadReport report = net.load_state_dict(given, /*strict=*/false);
  EXPECT_EQ(report.missing, std::vector<std::string>{"bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"extra"});
  EXPECT_EQ(report.misshapen, std::vector<std::string>{"first.fc.weight: module [2, 3], state_dict [2, 4]"});
  EXPECT_EQ(net.second.fc.weight.to_vector<float>(), state.tensor("second.fc.weight").to_vector<float>());
}

struct Two : nn::Module<Two> {
  nn::Parameter v{*this, "v", full({2}, 1.0)};
  nn::Parameter w{*this, "w", tensor({1, 2, 3, 4}).view({2, 2})};
};

TEST(Module, AnUndefinedEntryIsNamedAndChangesNothing) {
  Two module;
  StateDict state;
  state.set("v", full({2}, 5.0));
  state.set("w", Tensor());
  expect_error<ModuleError>([&] { module.load_state_dict(state); },
                            "misshapen:\n    w: module [2, 2], state_dict an undefined tensor");
  EXPECT_EQ(module.v.to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_FALSE(module.load_state_dict(state, /*strict=*/false).ok());
  EXPECT_EQ(module.v.to_vector<float>(), (std::vector<float>{5, 5}));
}

TEST(Module, LoadReadsTheModulesOwnMemoryBeforeItWrites) {
  Two module;
  StateDict state;
  state.set("v", module.w.detach().select(0, 1));  // as it is before w is loaded
  state.set("w", module.w.detach().t());
  module.load_state_dict(state);
  EXPECT_EQ(module.v.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(module.w.to_vector<float>(), (std::vector<float>{1, 3, 2, 4}));
  StateDict swapped;
  swapped.set("v", module.w.detach().select(0, 0));
  swapped.set("w", module.v.detach().expand({2, 2}));
  module.load_state_dict(swapped);
  EXPECT_EQ(module.v.to_vector<float>(), (std::vector<float>{1, 3}));
  EXPECT_EQ(module.w.to_vector<float>(), (std::vector<float>{3, 4, 3, 4}));
}

TEST(Module, LoadIntoAnExpandedTensorChangesNothing) {
  Two module;
  module.w = zeros({1}).expand({2, 2});
  StateDict state;
  state.set("v", full({2}, 5.0));
  state.set("w", ones({2, 2}));
  expect_error<ShapeError>([&] { module.load_state_dict(state); },
                           "load_state_dict: w: elements of the tensor to be written share memory");
  EXPECT_EQ(module.v.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Module, OnlyFloatingParametersAreAskedForGradients) {
  struct Counted : nn::Module<Counted> {
    nn::Parameter count{*this, "count", zeros({1}, DType::kInt64)};
    nn::Parameter w{*this, "w", ones({2})};
  } module;
  module.requires_grad_(false);
  EXPECT_FALSE(module.w.requires_grad());
  module.requires_grad_(true);
  EXPECT_TRUE(module.w.requires_grad());
  EXPECT_FALSE(module.count.requires_grad());
}

TEST(Module, EmptyFunctionsAreRefused) {
  Two module;
  expect_error<ValueError>([&] { static_cast<void>(module.register_forward_hook(nullptr)); },
                           "register_forward_hook: the hook is empty");
  expect_error<ValueError>([&] { static_cast<void>(module.register_forward_pre_hook(nullptr)); },
                           "register_forward_pre_hook: the hook is empty");
  expect_error<ValueError>([&] { module.apply(nullptr); }, "apply: the function is empty");
}

TEST(Module, LoadConvertsDTypes) {
  Net net;
  StateDict state;
  for (const auto& [name, value] : net.state_dict())
    state.set(name, std::get<Tensor>(value).to(DType::kFloat64));
  state.set("bias", tensor({3, 4}, DType::kFloat64));
  net.load_state_dict(state);
  EXPECT_EQ(net.bias.dtype(), DType::kFloat32);
  EXPECT_EQ(net.bias.to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST(Module, ModesReachEveryChild) {
  Net net;
  net.eval();
  for (const auto& entry : net.named_modules()) EXPECT_FALSE(entry.module->is_training()) << entry.name;
  net.train();
  for (const auto& entry : net.named_modules()) EXPECT_TRUE(entry.module->is_training()) << entry.name;
}

TEST(Module, ConversionKeepsTheHandlesThatOthersHold) {
  Net net;
  const std::vector<Tensor> held = net.parameters();
  net(ones({1, 3})).sum().backward();
  net.to(DType::kFloat64);
  EXPECT_EQ(held[1].dtype(), DType::kFloat64);
  EXPECT_EQ(held[1].grad().dtype(), DType::kFloat64);
  EXPECT_TRUE(held[1].is_same(net.first.fc.weight));
  EXPECT_EQ(net.first.scale.dtype(), DType::kFloat64);
  net(ones({1, 3}, DType::kFloat64)).sum().backward();
  EXPECT_EQ(held[1].grad().to_vector<double>(), (std::vector<double>(6, 4.0)));  // twice the scale of 2
  expect_error<DTypeError>([&] { net.to(DType::kInt32); },
                           "can be converted to a floating dtype only, given int32");
}

TEST(Module, ConversionToWhatItIsChangesNothing) {
  Net net;
  const Tensor loss = net(ones({1, 3})).sum();
  const auto version = net.first.fc.weight.version();
  const void* memory = net.first.fc.weight.raw_data();
  net.to(Device{});
  net.to(DType::kFloat32);
  EXPECT_EQ(net.first.fc.weight.version(), version);
  EXPECT_EQ(net.first.fc.weight.raw_data(), memory);
  EXPECT_NO_THROW(loss.backward());
}

TEST(Module, ConversionTakesTheGradientOfAFrozenParameterAlong) {
  Net net;
  net(ones({1, 3})).sum().backward();
  net.first.fc.requires_grad_(false);
  net.to(DType::kFloat64);
  EXPECT_EQ(net.first.fc.weight.grad().dtype(), DType::kFloat64);
}

TEST(Module, HooksRunAroundForwardUntilTheirHandlesDie) {
  Net net;
  std::vector<std::string> calls;
  {
    auto before = net.first.register_forward_pre_hook(
        [&](nn::ModuleBase& m) { calls.push_back("before " + m.type_name()); });
    auto after = net.first.register_forward_hook([&](nn::ModuleBase&, std::span<const Tensor> outputs) {
      calls.push_back(concat("after ", outputs.size(), " ", outputs[0].sizes()));
    });
    net(ones({1, 3}));
  }
  net(ones({1, 3}));
  EXPECT_EQ(calls, (std::vector<std::string>{"before Inner", "after 1 [1, 2]"}));
}

TEST(Module, HookHandleMayOutliveItsModule) {
  nn::ModuleHookHandle handle;
  {
    Net net;
    handle = net.register_forward_pre_hook([](nn::ModuleBase&) {});
  }
  handle.remove();
}

struct Pairs : nn::Module<Pairs> {
  std::pair<Tensor, Tensor> forward(const Tensor& a, int factor) { return {a, a * factor}; }
};
TEST(Module, ForwardMayHaveAnySignature) {
  Pairs pairs;
  std::size_t seen = 0;
  auto hook = pairs.register_forward_hook(
      [&](nn::ModuleBase&, std::span<const Tensor> outputs) { seen = outputs.size(); });
  const auto [a, b] = pairs(ones({2}), 3);
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(seen, 2U);
}

TEST(Module, SummaryCountsParameters) {
  Net net;
  const std::string text = net.summary();
  EXPECT_NE(text.find("fc: Linear"), std::string::npos) << text;
  EXPECT_NE(text.find("weight [2, 3], bias [2]  8 parameters"), std::string::npos) << text;
  EXPECT_NE(text.find("total: 18 parameters\n"), std::string::npos) << text;
}

TEST(Module, ZeroGradForgetsGradients) {
  Net net;
  net(ones({1, 3})).sum().backward();
  EXPECT_TRUE(net.bias.grad().defined());
  net.zero_grad();
  EXPECT_FALSE(net.bias.grad().defined());
}

}  // namespace
}  // namespace tutti
