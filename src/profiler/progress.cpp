// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/environment_variables.hpp"
#include "tutti/comm/environment.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::profiler::detail {

namespace {

constexpr double kLiveInterval = 0.1;  // seconds between rewrites of the live line

struct Value {
  std::string name;
  Tensor tensor;  // undefined: number holds the value
  double number = 0;
};

ProgressStyle choose_style(const ProgressOptions& options, int rank) {
  if (rank != 0) return ProgressStyle::kOff;
  if (options.style != ProgressStyle::kAuto) return options.style;
  if (const auto text = environment_text("TUTTI_PROGRESS")) {
    if (*text == "live") return ProgressStyle::kLive;
    if (*text == "plain") return ProgressStyle::kPlain;
    if (*text == "off") return ProgressStyle::kOff;
    tutti::detail::fail<ValueError>("TUTTI_PROGRESS: wanted live, plain or off, given '", *text, "'");
  }
  const Environment* environment = Environment::current();
  const bool launched = environment != nullptr && std::string_view(environment->launcher()) != "none";
  return !launched && ::isatty(::fileno(options.output)) == 1 ? ProgressStyle::kLive : ProgressStyle::kPlain;
}

// 12345 -> "12,345".
std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

// 3725 -> "1:02:05", 65 -> "1:05".
std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

struct ProgressState {
  ProgressOptions options;
  std::string unit;
  ProgressStyle style = ProgressStyle::kOff;
  int world_size = 1;
  StepProfiler steps;
  std::vector<Value> values;

  std::uint64_t epoch = 0;
  std::int64_t passes = 0;      // begun so far
  std::int64_t pass_steps = 0;  // in this pass
  std::int64_t step = 0;        // done of them
  std::int64_t pass_start_ns = 0;
  std::int64_t printed_ns = 0;
  bool line_open = false;  // the live line has no newline yet

  std::int64_t pass_samples = 0;
  std::int64_t samples = 0;  // of passes that ended
  std::int64_t elapsed_ns = 0;

  Value& value(std::string_view name);
  double pass_seconds(std::int64_t now) const { return static_cast<double>(now - pass_start_ns) * 1e-9; }
  double remaining_seconds(std::int64_t now) const;
  std::string line(std::int64_t now) const;
  void print(std::int64_t now, bool last);
  void close_line();
};

Value& ProgressState::value(std::string_view name) {
  for (Value& entry : values) {
    if (entry.name == name) return entry;
  }
  return values.emplace_back(Value{std::string(name), {}, 0});
}

double ProgressState::remaining_seconds(std::int64_t now) const {
  const double per_step = pass_seconds(now) / static_cast<double>(std::max<std::int64_t>(step, 1));
  const std::int64_t passes_left = std::max<std::int64_t>(options.epochs - passes, 0);
  return per_step * static_cast<double>(pass_steps - step + passes_left * pass_steps);
}

std::string ProgressState::line(std::int64_t now) const {
  std::string text = options.epochs > 0 ? fmt::format("epoch {}/{}", epoch + 1, options.epochs)
                                        : fmt::format("epoch {}", epoch + 1);
  const double seconds = std::max(pass_seconds(now), 1e-9);
  text += fmt::format("  step {}/{}  {} {}/s", step, pass_steps,
                      grouped(static_cast<double>(pass_samples) * world_size / seconds), unit);
  for (const Value& value : values) {
    text += fmt::format("  {} {:.4g}", value.name,
                        value.tensor.defined() ? value.tensor.item<double>() : value.number);
  }
  return text + fmt::format("  ETA {}", duration(remaining_seconds(now)));
}

void ProgressState::print(std::int64_t now, bool last) {
  printed_ns = now;
  const bool live = style == ProgressStyle::kLive;
  // Erasing to the end of the line (ESC [K) removes what a longer line left.
  const std::string text =
      fmt::format("{}{}{}{}", live ? "\r" : "", line(now), live ? "\x1b[K" : "", !live || last ? "\n" : "");
  std::fwrite(text.data(), 1, text.size(), options.output);
  std::fflush(options.output);
  line_open = live && !last;
}

void ProgressState::close_line() {
  if (!std::exchange(line_open, false)) return;
  std::fputc('\n', options.output);
  std::fflush(options.output);
}

ProgressMeter::ProgressMeter(const ProgressOptions& options) : state_(new ProgressState) {
  TUTTI_CHECK(options.epochs >= 0, ValueError, "progress: epochs must not be negative, given ",
              options.epochs);
  TUTTI_CHECK(options.interval_s >= 0 && std::isfinite(options.interval_s), ValueError,
              "progress: interval_s must be a number of seconds, given ", options.interval_s);
  TUTTI_CHECK(options.output != nullptr, ValueError, "progress: output is null");
  state_->options = options;
  state_->unit = options.unit;
  const std::shared_ptr<comm::ProcessGroup> world = comm::world();
  state_->world_size = world->size();
  state_->style = choose_style(options, world->rank());
}

ProgressMeter::ProgressMeter(ProgressMeter&&) noexcept = default;
ProgressMeter::~ProgressMeter() {
  if (state_.get() != nullptr) state_->close_line();
}

void ProgressMeter::start_pass() {
  state_->close_line();  // of a pass that was left early
  state_->steps.restart();
  state_->pass_start_ns = trace::now_ns();
  state_->printed_ns = state_->pass_start_ns;
  state_->step = 0;
  state_->pass_samples = 0;
}

void ProgressMeter::pass_started(std::uint64_t epoch, std::int64_t steps) {
  state_->epoch = epoch;
  state_->pass_steps = steps;
  ++state_->passes;
}

void ProgressMeter::end_step(std::int64_t samples) {
  ProgressState& state = *state_;
  state.steps.end_step();
  ++state.step;
  state.pass_samples += samples;
  if (state.style == ProgressStyle::kOff) return;
  const std::int64_t now = trace::now_ns();
  const double interval = state.style == ProgressStyle::kLive ? kLiveInterval : state.options.interval_s;
  if (static_cast<double>(now - state.printed_ns) * 1e-9 < interval || state.step == state.pass_steps) return;
  state.print(now, false);
}

void ProgressMeter::end_pass() {
  ProgressState& state = *state_;
  const std::int64_t now = trace::now_ns();
  state.samples += state.pass_samples;
  state.elapsed_ns += now - state.pass_start_ns;
  if (state.style != ProgressStyle::kOff && state.step > 0) state.print(now, true);
}

void ProgressMeter::set(std::string_view name, const Tensor& value) {
  TUTTI_CHECK(value.numel() == 1, ShapeError, "progress: ", name, " must have one element, given ",
              value.sizes());
  if (state_->style == ProgressStyle::kOff) return;
  // Detached: a graph must not outlive its step for the sake of a printed number.
  state_->value(name).tensor = value.detach();
}

void ProgressMeter::set(std::string_view name, double value) {
  if (state_->style == ProgressStyle::kOff) return;
  Value& entry = state_->value(name);
  entry.tensor = {};
  entry.number = value;
}

const StepProfiler& ProgressMeter::steps() const noexcept { return state_->steps; }

double ProgressMeter::samples_per_second() const noexcept {
  if (state_->elapsed_ns == 0) return 0;
  return static_cast<double>(state_->samples) * state_->world_size /
         (static_cast<double>(state_->elapsed_ns) * 1e-9);
}

}  // namespace tutti::profiler::detail
