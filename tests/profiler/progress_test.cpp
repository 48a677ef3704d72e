// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/progress.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <regex>
#include <string>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/profiler/enumerate.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using profiler::ProgressStyle;
using testing::contains;
using testing::expect_error;

class ProgressTest : public ::testing::Test {
 protected:
  std::string written() {
    std::fflush(file.get());
    std::rewind(file.get());
    std::string text;
    for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) text += static_cast<char>(c);
    return text;
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), std::fclose};
  data::DataLoader<data::TensorDataset> loader{data::TensorDataset{zeros({10, 1}), arange(10)},
                                               {.batch_size = 4}};
};

TEST_F(ProgressTest, GivesTheLoadersBatches) {
  std::vector<double> seen;
  for (const auto& [inputs, targets] : progress(loader, {.style = ProgressStyle::kOff})) {
    for (const double target : targets.to(DType::kFloat64).to_vector<double>()) seen.push_back(target);
  }
  EXPECT_EQ(seen, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, WritesAPlainLineAtTheEndOfEachPass) {
  auto batches = progress(loader, {.epochs = 2,
                                   .unit = "images",
                                   .interval_s = 1000,
                                   .style = ProgressStyle::kPlain,
                                   .output = file.get()});
  for (int epoch = 0; epoch < 2; ++epoch) {
    double loss = 2.5 - epoch;
    for (const auto& batch : batches) batches.set("loss", batch.size() == 2 ? loss : 9.0);
  }
  const std::regex lines(
      "epoch 1/2  step 3/3  [0-9,]+ images/s  loss 2\\.5  ETA 0:0[01]\n"
      "epoch 2/2  step 3/3  [0-9,]+ images/s  loss 1\\.5  ETA 0:00\n");
  EXPECT_TRUE(std::regex_match(written(), lines)) << written();
}

TEST_F(ProgressTest, WritesALineForEveryStepIfTheIntervalIsZero) {
  for (const auto& batch :
       progress(loader, {.interval_s = 0, .style = ProgressStyle::kPlain, .output = file.get()}))
    EXPECT_GT(batch.size(), 0);
  const std::regex lines("epoch 1  step 1/3  .*\nepoch 1  step 2/3  .*\nepoch 1  step 3/3  .*\n");
  EXPECT_TRUE(std::regex_match(written(), lines)) << written();
}

TEST_F(ProgressTest, OverwritesTheLiveLineAndEndsItOnce) {
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& batch : progress(loader, {.style = ProgressStyle::kLive, .output = file.get()}))
      EXPECT_GT(batch.size(), 0);
  const std::string text = written();
  EXPECT_EQ(text.front(), '\r');
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_TRUE(contains(text, "\x1b[K\n\repoch 2  step 3/3"));
}

TEST_F(ProgressTest, ReadsATensorOnlyWhenALineIsWritten) {
  auto batches = progress(loader, {.interval_s = 1000, .style = ProgressStyle::kPlain, .output = file.get()});
  Tensor loss = zeros({});
  for (const auto& batch : batches) {
    batches.set("loss", loss);
    loss.fill_(static_cast<double>(batch.size()));  // what is printed is what it holds at that time
  }
  EXPECT_TRUE(contains(written(), "loss 2 "));
}

TEST_F(ProgressTest, KeepsNoGraph) {
  auto batches = progress(loader, {.style = ProgressStyle::kPlain, .output = file.get()});
  const Tensor weight = ones({1}).requires_grad_();
  for (const auto& batch : batches) {
    Tensor loss = (batch.inputs * weight).sum();
    batches.set("loss", loss);
  }
  EXPECT_TRUE(contains(written(), "loss 0 "));
}

TEST_F(ProgressTest, MeasuresStepsWithoutTheTimeBetweenPasses) {
  auto batches = progress(loader, {.style = ProgressStyle::kOff});
  EXPECT_EQ(batches.samples_per_second(), 0);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& batch : batches) EXPECT_GT(batch.size(), 0);
  EXPECT_EQ(batches.steps().total().steps, 5);  // of 6, less the first
  EXPECT_GT(batches.samples_per_second(), 0);
}

TEST_F(ProgressTest, APassThatIsLeftEarlyIsNotCounted) {
  auto batches = progress(loader, {.style = ProgressStyle::kLive, .output = file.get()});
  for (const auto& batch : batches) {
    if (batch.size() == 4) break;
  }
  EXPECT_EQ(batches.samples_per_second(), 0);
  std::int64_t count = 0;
  for (const auto& batch : batches) count += batch.size();
  EXPECT_EQ(count, 10);
  EXPECT_TRUE(contains(written(), "epoch 2  step 3/3"));
}

TEST_F(ProgressTest, CanBeEnumerated) {
  std::int64_t last = -1;
  for (auto&& step : enumerate(progress(loader, {.style = ProgressStyle::kOff}))) last = step.index;
  EXPECT_EQ(last, 2);
}

TEST_F(ProgressTest, FollowsTheEnvironmentVariable) {
  ::setenv("TUTTI_PROGRESS", "off", 1);
  for (const auto& batch : progress(loader, {.output = file.get()})) EXPECT_GT(batch.size(), 0);
  EXPECT_EQ(written(), "");
  ::setenv("TUTTI_PROGRESS", "fast", 1);
  expect_error<ValueError>([&] { progress(loader); },
                           "TUTTI_PROGRESS: wanted live, plain or off, given 'fast'");
  ::unsetenv("TUTTI_PROGRESS");
}

TEST_F(ProgressTest, RefusesWrongOptions) {
  expect_error<ValueError>([&] { progress(loader, {.epochs = -1}); },
                           "epochs must not be negative, given -1");
  expect_error<ValueError>([&] { progress(loader, {.interval_s = -1}); }, "interval_s");
  auto batches = progress(loader, {.style = ProgressStyle::kOff});
  expect_error<ShapeError>([&] { batches.set("loss", ones({2})); }, "loss must have one element, given [2]");
}

}  // namespace
}  // namespace tutti
