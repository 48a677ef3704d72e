// SPDX-License-Identifier: Apache-2.0
// Optimizers against PyTorch's, 50 steps, in float64 and float32.
#include <gtest/gtest.h>

#include <memory>

#include "support/golden.hpp"
#include "tutti/optim/optim.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::optim {
namespace {

namespace golden = tutti::testing::golden;

template <class Options>
void read_adam_options(Options& options, const nlohmann::json& args) {
  options.lr = args.at("lr").get<double>();
  if (args.contains("betas")) {
    options.beta1 = args.at("betas").at(0).get<double>();
    options.beta2 = args.at("betas").at(1).get<double>();
  }
  options.eps = args.value("eps", options.eps);
  options.weight_decay = args.value("weight_decay", options.weight_decay);
  options.amsgrad = args.value("amsgrad", false);
  options.maximize = args.value("maximize", false);
}

std::unique_ptr<Optimizer> make_optimizer(const golden::Case& one, const std::vector<Tensor>& parameters) {
  const nlohmann::json& args = one.args();
  const auto kind = one.json.at("optimizer").get<std::string>();
  if (kind == "SGD") {
    SgdOptions options;
    options.lr = args.at("lr").get<double>();
    options.momentum = args.value("momentum", 0.0);
    options.dampening = args.value("dampening", 0.0);
    options.weight_decay = args.value("weight_decay", 0.0);
    options.nesterov = args.value("nesterov", false);
    options.maximize = args.value("maximize", false);
    return std::make_unique<Sgd>(parameters, options);
  }
  if (kind == "Adam") {
    AdamOptions options;
    read_adam_options(options, args);
    return std::make_unique<Adam>(parameters, options);
  }
  if (kind == "AdamW") {
    AdamWOptions options;
    read_adam_options(options, args);
    return std::make_unique<AdamW>(parameters, options);
  }
  return nullptr;
}

void run_all(DType dtype, double tolerance) {
  const golden::File file = golden::load("optim");
  int cases = 0;
  for (const golden::Case& one : file.cases) {
    SCOPED_TRACE(one.name);
    Tensor a = file.tensor("p0/a").to(dtype).clone();
    Tensor b = file.tensor("p0/b").to(dtype).clone();
    const auto optimizer = make_optimizer(one, {a, b});
    if (optimizer == nullptr) continue;
    ++cases;
    for (std::int64_t step = 1; step <= 50; ++step) {
      a.set_grad(file.tensor("grads/a").select(0, step - 1).to(dtype));
      b.set_grad(file.tensor("grads/b").select(0, step - 1).to(dtype));
      optimizer->step();
      const std::string name = concat("step", step, "/");
      if (one.tensors.count(name + "a") == 0) continue;
      EXPECT_TRUE(golden::all_close(a, one.tensor(name + "a"), tolerance, tolerance)) << name;
      EXPECT_TRUE(golden::all_close(b, one.tensor(name + "b"), tolerance, tolerance)) << name;
    }
  }
  EXPECT_EQ(cases, 8);
}

TEST(OptimizerGolden, Float64StepsEqualPyTorchs) { run_all(DType::kFloat64, 1e-12); }
TEST(OptimizerGolden, Float32StepsEqualPyTorchs) { run_all(DType::kFloat32, 2e-5); }

}  // namespace
}  // namespace tutti::optim
