// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/lr_scheduler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include "support/errors.hpp"
#include "support/golden.hpp"
#include "tutti/optim/adam.hpp"
#include "tutti/optim/sgd.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::optim {
namespace {

namespace golden = tutti::testing::golden;
using tutti::testing::contains;
using tutti::testing::error_of;

std::unique_ptr<LRScheduler> make_scheduler(const golden::Case& one, Optimizer& optimizer) {
  const nlohmann::json& args = one.args();
  const auto kind = one.json.at("scheduler").get<std::string>();
  if (kind == "StepLR") {
    return std::make_unique<StepLR>(optimizer,
                                    StepLROptions{.step_size = args.at("step_size").get<std::int64_t>(),
                                                  .gamma = args.at("gamma").get<double>()});
  }
  if (kind == "CosineAnnealingLR") {
    return std::make_unique<CosineAnnealingLR>(
        optimizer, CosineAnnealingLROptions{.t_max = args.at("T_max").get<std::int64_t>(),
                                            .eta_min = args.at("eta_min").get<double>()});
  }
  if (kind == "OneCycleLR") {
    OneCycleLROptions options{.max_lr = args.at("max_lr").get<double>(),
                              .total_steps = args.at("total_steps").get<std::int64_t>()};
    options.pct_start = args.value("pct_start", options.pct_start);
    options.div_factor = args.value("div_factor", options.div_factor);
    options.final_div_factor = args.value("final_div_factor", options.final_div_factor);
    options.three_phase = args.value("three_phase", false);
    if (args.value("anneal_strategy", "cos") == "linear") options.anneal_strategy = AnnealStrategy::kLinear;
    return std::make_unique<OneCycleLR>(optimizer, options);
  }
  return nullptr;
}

Sgd make_sgd(double lr, double momentum = 0) { return Sgd({zeros({2})}, {.lr = lr, .momentum = momentum}); }

TEST(LRScheduler, RatesAndMomentaEqualPyTorchs) {
  int cases = 0;
  for (const golden::Case& one : golden::load("schedulers").cases) {
    SCOPED_TRACE(one.name);
    Sgd optimizer = make_sgd(one.json.at("base_lr").get<double>(), 0.9);
    const auto scheduler = make_scheduler(one, optimizer);
    if (scheduler == nullptr) continue;
    ++cases;
    const auto rates = one.json.at("lr").get<std::vector<double>>();
    ASSERT_EQ(rates.size(), 60U);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      if (step > 0) scheduler->step();
      EXPECT_NEAR(optimizer.lr(), rates[step], 1e-12) << "step " << step;
      EXPECT_EQ(scheduler->last_lr().at(0), optimizer.lr());
      if (one.json.contains("momentum")) {
        EXPECT_NEAR(optimizer.momentum(), one.json.at("momentum").at(step).get<double>(), 1e-12)
            << "step " << step;
      }
    }
  }
  EXPECT_EQ(cases, 4);
}

TEST(LRScheduler, TwoSchedulersOnOneOptimizerMultiply) {
  Sgd optimizer = make_sgd(1.0);
  StepLR slow(optimizer, {.step_size = 4, .gamma = 0.5});
  StepLR fast(optimizer, {.step_size = 2, .gamma = 0.1});
  for (int step = 1; step <= 8; ++step) {
    slow.step();
    fast.step();
    EXPECT_NEAR(optimizer.lr(), std::pow(0.5, step / 4) * std::pow(0.1, step / 2), 1e-15) << step;
  }
}

TEST(LRScheduler, CosineGoesUpAgainAfterItsLowestPoint) {
  Sgd optimizer = make_sgd(0.2);
  CosineAnnealingLR scheduler(optimizer, {.t_max = 5, .eta_min = 0.02});
  for (int step = 0; step <= 20; ++step) {
    EXPECT_NEAR(optimizer.lr(), 0.02 + 0.18 * (1 + std::cos(std::numbers::pi * step / 5)) / 2, 1e-12) << step;
    scheduler.step();
  }
}

TEST(LRScheduler, OneCycleTakesAMaximumForEachGroupAndMovesAdamsBeta1) {
  Adam optimizer(std::vector<Adam::Group>{{{zeros({1})}, {.lr = 9}}, {{zeros({2})}, {.lr = 9}}});
  OneCycleLR scheduler(optimizer,
                       {.epochs = 2, .steps_per_epoch = 5, .pct_start = 0.5, .max_lr_by_group = {0.1, 1.0}});
  EXPECT_EQ(scheduler.total_steps(), 10);
  EXPECT_NEAR(optimizer.lr(0), 0.1 / 25, 1e-15);
  EXPECT_NEAR(optimizer.lr(1), 1.0 / 25, 1e-15);
  EXPECT_NEAR(optimizer.momentum(1), 0.95, 1e-15);
  for (int step = 0; step < 4; ++step) scheduler.step();  // 0.5 * 10 - 1: the top
  EXPECT_NEAR(optimizer.lr(0), 0.1, 1e-15);
  EXPECT_NEAR(optimizer.lr(1), 1.0, 1e-15);
  EXPECT_NEAR(optimizer.options(1).beta1, 0.85, 1e-15);
}

TEST(LRScheduler, SavedAndLoadedItGoesOnWithTheSameRates) {
  Sgd optimizer = make_sgd(0.1);
  OneCycleLR scheduler(optimizer, {.max_lr = 0.5, .total_steps = 20});
  for (int step = 0; step < 7; ++step) scheduler.step();
  const StateDict saved = scheduler.state_dict();
  const StateDict saved_optimizer = optimizer.state_dict();

  Sgd other = make_sgd(0.1);
  OneCycleLR resumed(other, {.max_lr = 0.5, .total_steps = 20});
  other.load_state_dict(saved_optimizer);
  resumed.load_state_dict(saved);
  EXPECT_EQ(resumed.step_count(), 7);
  EXPECT_EQ(resumed.last_lr(), scheduler.last_lr());
  EXPECT_EQ(other.lr(), optimizer.lr());
  for (int step = 0; step < 12; ++step) {
    scheduler.step();
    resumed.step();
    EXPECT_EQ(other.lr(), optimizer.lr()) << step;
    EXPECT_EQ(other.momentum(), optimizer.momentum()) << step;
  }
}

TEST(LRScheduler, AStateOfAnotherKindIsRefused) {
  Sgd optimizer = make_sgd(0.1);
  StepLR scheduler(optimizer, {.step_size = 3});
  const StateDict cosine = CosineAnnealingLR(optimizer, {.t_max = 3}).state_dict();
  EXPECT_TRUE(contains(error_of<ValueError>([&] { scheduler.load_state_dict(cosine); }),
                       "the state is not that of StepLR but of CosineAnnealingLR"));
  Sgd two(std::vector<Sgd::Group>{{{zeros({1})}, {}}, {{zeros({1})}, {}}});
  const StateDict two_groups = StepLR(two, {.step_size = 3}).state_dict();
  EXPECT_TRUE(contains(error_of<ValueError>([&] { scheduler.load_state_dict(two_groups); }),
                       "the optimizer has 1 parameter groups, the state base_lrs of 2"));
}

TEST(LRScheduler, AStateOutsideItsDomainIsRefusedAndChangesNothing) {
  Sgd optimizer = make_sgd(0.1);
  StepLR scheduler(optimizer, {.step_size = 3});
  const StateDict good = scheduler.state_dict();
  const auto refused = [&](const std::string& name, StateDict::Value value) {
    StateDict state = good;
    state.set("last_epoch", std::int64_t{7});
    state.set(name, std::move(value));
    const std::string message = error_of<ValueError>([&] { scheduler.load_state_dict(state); });
    EXPECT_EQ(scheduler.step_count(), 0);
    return message;
  };
  EXPECT_EQ(refused("last_lr.0", std::numeric_limits<double>::quiet_NaN()),
            "StepLR::load_state_dict: last_lr.0 must be finite and at least 0, given nan");
  EXPECT_EQ(refused("base_lrs.0", -3.0),
            "StepLR::load_state_dict: base_lrs.0 must be finite and at least 0, given -3");
  EXPECT_TRUE(contains(refused("last_epoch", std::int64_t{-1}), "last_epoch must be between 0 and"));
  EXPECT_TRUE(contains(refused("last_epoch", INT64_MAX), "given 9223372036854775807"));
}

TEST(LRScheduler, TheLongestSchedulesDoNotOverflow) {
  Sgd optimizer = make_sgd(0.1);
  EXPECT_TRUE(contains(error_of<ValueError>([&] {
                         OneCycleLR(optimizer, {.max_lr = 1, .epochs = INT64_MAX, .steps_per_epoch = 2});
                       }),
                       "OneCycleLR: epochs times steps_per_epoch exceeds 63 bits"));
  CosineAnnealingLR scheduler(optimizer, {.t_max = INT64_MAX});
  scheduler.step();
  EXPECT_DOUBLE_EQ(optimizer.lr(), 0.1);
}

TEST(LRScheduler, OptionsOutsideTheirDomainAreRefused) {
  Sgd optimizer = make_sgd(0.1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto message = [&](const auto& make) { return error_of<ValueError>(make); };
  EXPECT_TRUE(contains(message([&] { StepLR(optimizer, {}); }), "step_size must be at least 1, given 0"));
  EXPECT_TRUE(
      contains(message([&] { StepLR(optimizer, {.step_size = 1, .gamma = nan}); }), "gamma must be finite"));
  EXPECT_TRUE(
      contains(message([&] { CosineAnnealingLR(optimizer, {}); }), "t_max must be at least 1, given 0"));
  EXPECT_TRUE(contains(message([&] { OneCycleLR(optimizer, {.total_steps = 3}); }),
                       "max_lr must be finite and above 0"));
  EXPECT_TRUE(
      contains(message([&] { OneCycleLR(optimizer, {.max_lr = 1}); }), "wanted total_steps, or epochs"));
  EXPECT_TRUE(
      contains(message([&] { OneCycleLR(optimizer, {.max_lr = 1, .total_steps = 9, .pct_start = 1.5}); }),
               "pct_start must be between 0 and 1, given 1.5"));
  EXPECT_TRUE(contains(message([&] {
                         OneCycleLR(optimizer, {.total_steps = 9, .max_lr_by_group = {1, 2}});
                       }),
                       "max_lr_by_group has 2 entries, the optimizer 1"));
}

TEST(LRScheduler, ACycleEnds) {
  Sgd optimizer = make_sgd(0.1);
  OneCycleLR scheduler(optimizer, {.max_lr = 0.5, .total_steps = 3});
  for (int step = 0; step < 3; ++step) scheduler.step();
  EXPECT_TRUE(contains(error_of<ValueError>([&] { scheduler.step(); }), "step 4 of a cycle of 3 steps"));
  EXPECT_EQ(scheduler.step_count(), 3);
}

}  // namespace
}  // namespace tutti::optim
