// SPDX-License-Identifier: Apache-2.0
// Formulas and their rounding: torch/optim/lr_scheduler.py.
#include "tutti/optim/lr_scheduler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "tutti/core/error.hpp"

namespace tutti::optim {

namespace {

// A state's number of steps; doubles count them exactly.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

void check_rate(const char* scheduler, const char* option, double value) {
  TUTTI_CHECK(std::isfinite(value) && value >= 0, ValueError, scheduler, ": ", option,
              " must be finite and at least 0, given ", value);
}

void check_positive(const char* scheduler, const char* option, double value) {
  TUTTI_CHECK(std::isfinite(value) && value > 0, ValueError, scheduler, ": ", option,
              " must be finite and above 0, given ", value);
}

}  // namespace

// ---- LRScheduler ------------------------------------------------------------------------------------------------------

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(&optimizer) {
  for (std::size_t group = 0; group < optimizer.group_count(); ++group) {
    if (!optimizer.initial_lr(group)) optimizer.set_initial_lr(group, optimizer.lr(group));
    base_lrs_.push_back(*optimizer.initial_lr(group));
  }
  last_lr_.resize(base_lrs_.size());
}

LRScheduler::~LRScheduler() = default;

void LRScheduler::set_base_lr(std::size_t group, double lr) {
  base_lrs_[group] = lr;
  optimizer_->set_initial_lr(group, lr);
  optimizer_->set_lr(group, lr);
}

void LRScheduler::start() { apply(); }

void LRScheduler::step() {
  ++step_count_;
  try {
    apply();
  } catch (...) {
    --step_count_;
    throw;
  }
}

void LRScheduler::apply() {
  for (std::size_t group = 0; group < base_lrs_.size(); ++group) {
    last_lr_[group] = next_lr(group);
    optimizer_->set_lr(group, last_lr_[group]);
  }
}

StateDict LRScheduler::state_dict() const {
  StateDict dict;
  dict.set("type", std::string(type_name()));
  dict.set("last_epoch", step_count_);
  for (std::size_t group = 0; group < base_lrs_.size(); ++group) {
    dict.set(concat("base_lrs.", group), base_lrs_[group]);
    dict.set(concat("last_lr.", group), last_lr_[group]);
  }
  return dict;
}

void LRScheduler::load_state_dict(const StateDict& state) {
  const std::string where = concat(type_name(), "::load_state_dict");
  TUTTI_CHECK(state.contains("type") && state.text("type") == type_name(), ValueError, where,
              ": the state is not that of ", type_name(), " but of ",
              state.contains("type") ? state.text("type") : std::string("an object without a type"));
  TUTTI_CHECK(state.contains("last_epoch"), ValueError, where, ": there is no entry \"last_epoch\"");
  const std::int64_t steps = state.integer("last_epoch");
  TUTTI_CHECK(steps >= 0 && steps <= kMostSteps, ValueError, where, ": last_epoch must be between 0 and ",
              kMostSteps, ", given ", steps);
  const auto rate = [&](const char* list, std::size_t group) {
    const std::string name = concat(list, group);
    const double value = state.real(name);
    check_rate(where.c_str(), name.c_str(), value);
    return value;
  };
  std::vector<double> base_lrs;
  std::vector<double> last_lr;
  for (std::size_t group = 0; state.contains(concat("base_lrs.", group)); ++group) {
    base_lrs.push_back(rate("base_lrs.", group));
    last_lr.push_back(rate("last_lr.", group));
  }
  TUTTI_CHECK(base_lrs.size() == base_lrs_.size(), ValueError, where, ": the optimizer has ",
              base_lrs_.size(), " parameter groups, the state base_lrs of ", base_lrs.size());
  step_count_ = steps;
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
}

// ---- StepLR -----------------------------------------------------------------------------------------------------------

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  TUTTI_CHECK(options.step_size >= 1, ValueError, "StepLR: step_size must be at least 1, given ",
              options.step_size);
  check_rate("StepLR", "gamma", options.gamma);
  start();
}

double StepLR::next_lr(std::size_t group) {
  const double lr = optimizer().lr(group);
  return step_count() == 0 || step_count() % options_.step_size != 0 ? lr : lr * options_.gamma;
}

// ---- CosineAnnealingLR ------------------------------------------------------------------------------------------------

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  TUTTI_CHECK(options.t_max >= 1, ValueError, "CosineAnnealingLR: t_max must be at least 1, given ",
              options.t_max);
  check_rate("CosineAnnealingLR", "eta_min", options.eta_min);
  start();
}

double CosineAnnealingLR::next_lr(std::size_t group) {
  const double lr = optimizer().lr(group);
  const std::int64_t t = step_count();
  if (t == 0) return lr;
  const auto t_max = static_cast<double>(options_.t_max);
  const double eta_min = options_.eta_min;
  // One step after a lowest point, which odd multiples of t_max are, the ratio below would divide by zero.
  if ((t - 1) % options_.t_max == 0 && (t - 1) / options_.t_max % 2 == 1)
    return lr + (base_lr(group) - eta_min) * (1 - std::cos(std::numbers::pi / t_max)) / 2;
  const double now = 1 + std::cos(std::numbers::pi * static_cast<double>(t) / t_max);
  const double before = 1 + std::cos(std::numbers::pi * static_cast<double>(t - 1) / t_max);
  return std::max(0.0, now / before * (lr - eta_min) + eta_min);
}

// ---- OneCycleLR -------------------------------------------------------------------------------------------------------

namespace {

std::int64_t length_of(const OneCycleLROptions& options) {
  if (options.total_steps != 0) {
    TUTTI_CHECK(options.total_steps > 0, ValueError, "OneCycleLR: total_steps must be at least 1, given ",
                options.total_steps);
    return options.total_steps;
  }
  TUTTI_CHECK(options.epochs > 0 && options.steps_per_epoch > 0, ValueError,
              "OneCycleLR: wanted total_steps, or epochs and steps_per_epoch of at least 1, given epochs ",
              options.epochs, " and steps_per_epoch ", options.steps_per_epoch);
  std::int64_t steps = 0;
  TUTTI_CHECK(!__builtin_mul_overflow(options.epochs, options.steps_per_epoch, &steps), ValueError,
              "OneCycleLR: epochs times steps_per_epoch exceeds 63 bits, given ", options.epochs, " and ",
              options.steps_per_epoch);
  return steps;
}

void validate(const OneCycleLROptions& options, std::size_t groups) {
  const char* name = "OneCycleLR";
  if (options.max_lr_by_group.empty()) {
    check_positive(name, "max_lr", options.max_lr);
  } else {
    TUTTI_CHECK(options.max_lr_by_group.size() == groups, ValueError, name, ": max_lr_by_group has ",
                options.max_lr_by_group.size(), " entries, the optimizer ", groups, " parameter groups");
    for (const double lr : options.max_lr_by_group) check_positive(name, "max_lr_by_group", lr);
  }
  TUTTI_CHECK(options.pct_start >= 0 && options.pct_start <= 1, ValueError, name,
              ": pct_start must be between 0 and 1, given ", options.pct_start);
  check_rate(name, "base_momentum", options.base_momentum);
  check_rate(name, "max_momentum", options.max_momentum);
  check_positive(name, "div_factor", options.div_factor);
  check_positive(name, "final_div_factor", options.final_div_factor);
}

double anneal(AnnealStrategy strategy, double start, double end, double part) {
  if (strategy == AnnealStrategy::kLinear) return (end - start) * part + start;
  return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer), options_(options), total_steps_(length_of(options)) {
  validate(options, optimizer.group_count());
  for (std::size_t group = 0; group < optimizer.group_count(); ++group)
    set_base_lr(group, max_lr(group) / options.div_factor);
  start();
}

double OneCycleLR::max_lr(std::size_t group) const {
  return options_.max_lr_by_group.empty() ? options_.max_lr : options_.max_lr_by_group[group];
}

double OneCycleLR::next_lr(std::size_t group) {
  TUTTI_CHECK(step_count() <= total_steps_, ValueError, "OneCycleLR: step ", step_count(), " of a cycle of ",
              total_steps_, " steps");
  struct Phase {
    double end_step;
    double lr[2];
    double momentum[2];
  };
  const auto total = static_cast<double>(total_steps_);
  const double first = base_lr(group);
  const double top = max_lr(group);
  const double last = first / options_.final_div_factor;
  const double low = options_.base_momentum;
  const double high = options_.max_momentum;
  const double up_end = options_.pct_start * total - 1;
  const Phase up{up_end, {first, top}, {high, low}};
  const std::array<Phase, 3> phases =
      options_.three_phase
          ? std::array<Phase, 3>{up,
                                 {2 * options_.pct_start * total - 2, {top, first}, {low, high}},
                                 {total - 1, {first, last}, {high, high}}}
          : std::array<Phase, 3>{
                up, {total - 1, {top, last}, {low, high}}, {total - 1, {last, last}, {high, high}}};
  const std::size_t count = options_.three_phase ? 3 : 2;
  const auto step = static_cast<double>(step_count());
  double start_step = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Phase& phase = phases[i];
    if (step <= phase.end_step || i == count - 1) {
      const double length = phase.end_step - start_step;
      const double part = length > 0 ? (step - start_step) / length : 1;
      if (options_.cycle_momentum) {
        optimizer().set_momentum(
            group, anneal(options_.anneal_strategy, phase.momentum[0], phase.momentum[1], part));
      }
      return anneal(options_.anneal_strategy, phase.lr[0], phase.lr[1], part);
    }
    start_step = phase.end_step;
  }
  return last;
}

}  // namespace tutti::optim
