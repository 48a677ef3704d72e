// SPDX-License-Identifier: Apache-2.0
// Modules against PyTorch's: outputs, gradients of inputs and parameters, buffers after the step. Every case is either run or
// stands in the list of modules that Tutti does not have.
#include <gtest/gtest.h>

#include <set>

#include "support/golden.hpp"
#include "tutti/nn/nn.hpp"

namespace tutti::nn {
namespace {

namespace golden = tutti::testing::golden;
using golden::Case;

const std::set<std::string> kAbsentModules = {"LSTM",
                                              "GRU",
                                              "RNN",
                                              "MultiheadAttention",
                                              "TransformerEncoderLayer",
                                              "TransformerDecoderLayer",
                                              "Bilinear",
                                              "ParametrizedLinear"};

::testing::AssertionResult close(const Tensor& given, const Tensor& wanted) {
  // float64 matches up to the rounding of the stored values, float32 as the files' README says.
  if (given.dtype() == DType::kFloat64) return golden::all_close(given, wanted, 1.0 / (1 << 24), 1e-14);
  return golden::all_close(given, wanted, 1e-5, 1e-5);
}

// A case's module with one input and one output, called in training mode.
template <class Net>
void run_case(Net net, const Case& one, DType dtype) {
  const auto names = [&](const char* key) { return one.json.at(key).get<std::vector<std::string>>(); };
  net.to(dtype);
  StateDict state;
  for (const std::string& name : names("state")) state.set(name, one.tensor("state/" + name));
  ASSERT_EQ(net.state_dict().size(), state.size());
  net.load_state_dict(state);
  net.train(one.json.at("train").get<bool>());

  Tensor x = one.tensor("x").to(dtype).clone().requires_grad_();
  const Tensor y = net(x);
  y.backward(one.tensor("gy").to(dtype));
  EXPECT_EQ(y.dtype(), dtype);
  EXPECT_TRUE(close(y, one.tensor("y")));
  EXPECT_TRUE(close(x.grad(), one.tensor("gx")));

  const auto gradients = names("parameter_gradients");
  const std::vector<NamedTensor> parameters = net.named_parameters();
  ASSERT_EQ(parameters.size(), gradients.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].name, gradients[i]) << "order of parameters";
    EXPECT_TRUE(close(parameters[i].tensor.grad(), one.tensor("grad/" + parameters[i].name)))
        << parameters[i].name;
  }
  for (const std::string& name : names("buffers_after"))
    EXPECT_TRUE(close(net.state_dict().tensor(name), one.tensor("after/" + name))) << name;
}

BatchNormOptions batch_norm_options(const nlohmann::json& args) {
  BatchNormOptions options{.num_features = args.at("num_features").get<std::int64_t>()};
  if (args.contains("momentum") && args.at("momentum").is_null()) options.momentum = std::nullopt;
  return options;
}

// Returns false for a module that it doesn't know.
bool run(const Case& one, DType dtype) {
  const auto module = one.json.at("module").get<std::string>();
  if (module == "BatchNorm1d") {
    run_case(BatchNorm1d(batch_norm_options(one.args())), one, dtype);
  } else if (module == "BatchNorm2d") {
    run_case(BatchNorm2d(batch_norm_options(one.args())), one, dtype);
  } else if (module == "Sequential") {
    run_case(Sequential(Conv2d({.in_channels = 1, .out_channels = 4, .kernel_size = 3, .padding = 1}),
                        BatchNorm2d({.num_features = 4}), ReLU(), MaxPool2d({.kernel_size = 2}), Flatten(),
                        Linear({.in_features = 36, .out_features = 5})),
             one, dtype);
  } else {
    return false;
  }
  return true;
}

TEST(ModulesGolden, MatchPyTorch) {
  int runs = 0;
  for (const Case& one : golden::load("modules").cases) {
    SCOPED_TRACE(one.name);
    const auto module = one.json.at("module").get<std::string>();
    if (kAbsentModules.contains(module)) continue;
    ASSERT_TRUE(run(one, DType::kFloat64)) << module << " is neither run nor in the list of absent modules";
    run(one, DType::kFloat32);
    ++runs;
  }
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace tutti::nn
