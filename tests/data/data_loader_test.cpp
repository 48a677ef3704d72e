// SPDX-License-Identifier: Apache-2.0
// What a loader gives: order, sizes, epochs, errors, whatever the number of workers.
#include "tutti/data/data_loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>

#include "support/errors.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/device/memory.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::data {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using Indices = std::vector<std::int64_t>;

// Gives its index, its epoch and a random number; takes a moment that differs from sample to sample.
struct Numbers : Dataset<Numbers> {
  std::size_t count = 0;
  bool is_slow = false;

  explicit Numbers(std::size_t samples, bool slow = false) : count(samples), is_slow(slow) {}
  std::size_t size() const { return count; }
  void read(std::size_t index, Row& row) const {
    if (is_slow) std::this_thread::sleep_for(std::chrono::microseconds(index * 7919 % 300));
    std::span<double> input = row.input<double>({3});
    input[0] = static_cast<double>(index);
    input[1] = static_cast<double>(row.epoch());
    input[2] = row.generator().next_double();
    row.target<std::int64_t>() = static_cast<std::int64_t>(index);
  }
};

template <class Loader>
std::vector<double> values_of_pass(Loader& loader) {
  std::vector<double> values;
  for (const auto& [inputs, targets] : loader) {
    const std::vector<double> batch = inputs.template to_vector<double>();
    values.insert(values.end(), batch.begin(), batch.end());
  }
  return values;
}
template <class Loader>
Indices indices_of_pass(Loader& loader) {
  Indices indices;
  for (const auto& batch : loader) {
    const Indices part = batch.indices.template to_vector<std::int64_t>();
    indices.insert(indices.end(), part.begin(), part.end());
  }
  return indices;
}

TEST(DataLoader, WithoutShuffleSamplesComeInOrder) {
  for (const int workers : {0, 1, 3}) {
    DataLoader loader{Numbers(50, true), {.batch_size = 4, .num_workers = workers}};
    const Indices indices = indices_of_pass(loader);
    EXPECT_EQ(indices.size(), 50U);
    EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end())) << workers;
  }
}

TEST(DataLoader, ValuesDontDependOnTheNumberOfWorkers) {
  std::vector<double> expected;
  for (const int workers : {0, 1, 2, 3, 4}) {
    DataLoader loader{Numbers(101, workers % 2 == 1),
                      {.batch_size = 8, .shuffle = true, .num_workers = workers, .seed = 5}};
    std::vector<double> values;
    for (int epoch = 0; epoch < 3; ++epoch) {
      const std::vector<double> pass = values_of_pass(loader);
      values.insert(values.end(), pass.begin(), pass.end());
    }
    if (expected.empty()) expected = values;
    EXPECT_EQ(values, expected) << workers;
  }
}

TEST(DataLoader, RandomNumbersDifferByEpochAndSample) {
  DataLoader loader{Numbers(300), {.batch_size = 64, .num_workers = 2}};
  std::vector<double> numbers;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::vector<double> values = values_of_pass(loader);
    for (std::size_t i = 0; i < values.size(); i += 3) {
      EXPECT_EQ(values[i + 1], epoch);
      numbers.push_back(values[i + 2]);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers.size(), 600U);
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

TEST(DataLoader, TheCallersGeneratorIsLeftAlone) {
  manual_seed(3);
  const std::uint64_t offset = default_generator().state().offset;
  DataLoader loader{Numbers(10), {.batch_size = 3}};
  values_of_pass(loader);
  EXPECT_EQ(default_generator().state().offset, offset);
  EXPECT_EQ(default_generator().seed(), 3U);
}

TEST(DataLoader, EachPassHasItsOwnOrderAndEpochsCanBeSet) {
  DataLoader loader{Numbers(40), {.batch_size = 7, .shuffle = true, .seed = 1}};
  EXPECT_EQ(loader.epoch(), 0U);
  const Indices first = indices_of_pass(loader);
  EXPECT_EQ(loader.epoch(), 0U);
  const Indices second = indices_of_pass(loader);
  EXPECT_EQ(loader.epoch(), 1U);
  EXPECT_NE(first, second);
  loader.set_epoch(0);
  EXPECT_EQ(indices_of_pass(loader), first);
  EXPECT_EQ(indices_of_pass(loader), second);
  Indices sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], static_cast<std::int64_t>(i));
}

TEST(DataLoader, NumberAndSizesOfBatches) {
  for (const int workers : {0, 2}) {
    for (std::size_t samples = 0; samples <= 9; ++samples) {
      for (const bool drop_last : {false, true}) {
        DataLoader loader{Numbers(samples),
                          {.batch_size = 4, .num_workers = workers, .drop_last = drop_last}};
        const auto count = static_cast<std::int64_t>(samples);
        EXPECT_EQ(loader.size(), drop_last ? count / 4 : (count + 3) / 4);
        for (int pass = 0; pass < 2; ++pass) {
          std::int64_t seen = 0;
          std::int64_t batches = 0;
          for (const auto& [inputs, targets] : loader) {
            EXPECT_EQ(inputs.size(0), std::min<std::int64_t>(4, count - seen));
            seen += inputs.size(0);
            ++batches;
            EXPECT_EQ(loader.position(), batches);
          }
          EXPECT_EQ(batches, loader.size());
          EXPECT_EQ(seen, drop_last ? count / 4 * 4 : count);
        }
      }
    }
  }
}

TEST(DataLoader, ABatchLargerThanTheDatasetIsOnePartialBatch) {
  DataLoader loader{Numbers(3), {.batch_size = 1000, .num_workers = 1}};
  EXPECT_EQ(loader.size(), 1);
  EXPECT_EQ(indices_of_pass(loader), (Indices{0, 1, 2}));
}

TEST(DataLoader, LeavingALoopEarlyBeginsANewPass) {
  for (const int workers : {0, 1, 3}) {
    DataLoader loader{Numbers(60, true), {.batch_size = 2, .num_workers = workers}};
    for (int pass = 0; pass < 20; ++pass) {
      int batches = 0;
      for (const auto& [inputs, targets] : loader) {
        EXPECT_EQ(targets.to_vector<std::int64_t>()[0], 2 * batches);
        EXPECT_EQ(inputs.to_vector<double>()[1], pass);
        if (++batches == 3) break;
      }
    }
  }
}

TEST(DataLoader, BatchesThatTheCallerKeepsAreNotOverwritten) {
  DataLoader loader{Numbers(64), {.batch_size = 4, .num_workers = 2}};
  std::vector<Batch> kept;
  for (int pass = 0; pass < 2; ++pass) {
    for (const Batch& batch : loader) kept.push_back(batch);
  }
  ASSERT_EQ(kept.size(), 32U);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::vector<double> values = kept[i].inputs.to_vector<double>();
    for (std::size_t row = 0; row < 4; ++row)
      EXPECT_EQ(values[3 * row], static_cast<double>(i % 16 * 4 + row));
  }
}

TEST(DataLoader, ViewsThatTheCallerKeepsAreNotOverwritten) {
  DataLoader loader{Numbers(64), {.batch_size = 4, .num_workers = 2}};
  std::vector<Tensor> kept;
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& [inputs, targets] : loader) kept.push_back(targets.narrow(0, 1, 1));
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].item<std::int64_t>(), static_cast<std::int64_t>(i % 16 * 4 + 1));
}

TEST(DataLoader, ABatchThatBecameALeafIsNotGivenOutAgain) {
  DataLoader loader{Numbers(8), {.batch_size = 4}};
  for (int pass = 0; pass < 3; ++pass) {
    for (const auto& batch : loader) {
      EXPECT_FALSE(batch.inputs.requires_grad());
      Tensor(batch.inputs).requires_grad_();
    }
  }
}

TEST(DataLoader, AWarmPassAllocatesNothing) {
  for (const int workers : {0, 2}) {
    DataLoader loader{TensorDataset(ones({512, 1, 28, 28}), zeros({512}, DType::kInt64)),
                      {.batch_size = 64, .shuffle = true, .num_workers = workers}};
    for (int pass = 0; pass < 3; ++pass) indices_of_pass(loader);
    const std::int64_t before = memory_stats().allocations;
    for (int pass = 0; pass < 5; ++pass) {
      for (const auto& [inputs, targets] : loader) EXPECT_EQ(inputs.size(0), 64);
    }
    EXPECT_EQ(memory_stats().allocations, before) << workers;
  }
}

TEST(DataLoader, WaitingIsMeasured) {
  struct Slow : Dataset<Slow> {
    std::size_t size() const { return 4; }
    void read(std::size_t, Row& row) const {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      row.input<float>() = 0;
    }
  };
  for (const int workers : {0, 1}) {
    DataLoader loader{Slow{}, {.batch_size = 1, .num_workers = workers}};
    const auto data_wait = static_cast<std::size_t>(phase::Kind::kDataWait);
    const std::int64_t before = phase::totals()[data_wait];
    trace::take();
    trace::enable(true);
    indices_of_pass(loader);
    trace::enable(false);
    EXPECT_GT(loader.wait_seconds(), 0.035);
    const std::int64_t after = phase::totals()[data_wait];
    EXPECT_GE(static_cast<double>(after - before) * 1e-9, loader.wait_seconds() - 1e-9)
        << "each wait lies within the phase";
    EXPECT_EQ(phase::totals()[data_wait], after) << "the phase ends with the wait";
    std::size_t waits = 0;
    for (const trace::ThreadRecords& thread : trace::take()) {
      for (const trace::Record& record : thread.records)
        waits += std::string_view(record.name) == "data_wait" ? 1U : 0U;
    }
    EXPECT_EQ(waits, 6U);  // the start, four batches, the end
  }
}

// One sample that may not be there.
struct OneSample final : Sampler {
  std::int64_t index;
  explicit OneSample(std::int64_t given) : index(given) {}
  std::int64_t size() const noexcept override { return 1; }
  Pass pass(std::uint64_t epoch) const override {
    return {.indices = {index}, .valid_count = 1, .epoch = epoch};
  }
};
// Datasets of ten samples that check no index, in the three forms.
struct Rows : Dataset<Rows> {
  std::size_t size() const { return 10; }
  void read(std::size_t, Row& row) const { row.input<float>({1})[0] = 1; }
};
struct Examples : Dataset<Examples> {
  std::size_t size() const { return 10; }
  Example get(std::size_t) const { return {ones({1}), {}}; }
};
struct Batches : Dataset<Batches> {
  std::size_t size() const { return 10; }
  data::Batch batch(std::span<const std::int64_t>) const { return {}; }
};

template <class D>
void expect_absent_samples_are_named(const std::string& name) {
  for (const int workers : {0, 2}) {
    for (const std::int64_t index : {std::int64_t{10}, std::int64_t{-1}, INT64_MIN}) {
      DataLoader loader{D(), {.num_workers = workers, .sampler = std::make_shared<OneSample>(index)}};
      const std::string message = error_of<IndexError>([&] {
        for (const auto& batch : loader) static_cast<void>(batch);
      });
      EXPECT_TRUE(contains(message, name + ": there is no sample " + std::to_string(index) + " of 10"));
    }
    DataLoader loader{D(), {.num_workers = workers, .sampler = std::make_shared<OneSample>(9)}};
    EXPECT_NO_THROW(for (const auto& batch : loader) static_cast<void>(batch););
  }
}

TEST(DataLoader, SamplesThatTheDatasetDoesNotHaveAreNamedBeforeItIsAsked) {
  expect_absent_samples_are_named<Rows>("Rows");
  expect_absent_samples_are_named<Examples>("Examples");
  expect_absent_samples_are_named<Batches>("Batches");
}

TEST(DataLoader, AGivenSamplerDecidesOnOrderAndEpoch) {
  const auto sampler = std::make_shared<DistributedSampler>(
      10, DistributedSamplerOptions{.world_size = 3, .rank = 1, .shuffle = false});
  DataLoader loader{Numbers(10), {.batch_size = 3, .num_workers = 1, .sampler = sampler}};
  EXPECT_EQ(loader.sample_count(), 4);
  EXPECT_EQ(indices_of_pass(loader), (Indices{1, 4, 7, 0}));
  EXPECT_EQ(sampler->epoch(), 1U);
}

TEST(DataLoader, PaddingIsMaskedAndHasNoWeight) {
  const auto sampler = std::make_shared<DistributedSampler>(
      10, DistributedSamplerOptions{.world_size = 3, .rank = 2, .shuffle = false});
  DataLoader loader{Numbers(10), {.batch_size = 4, .sampler = sampler}};
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.indices.to_vector<std::int64_t>(), (Indices{2, 5, 8, 1}));
    EXPECT_EQ(batch.mask.to_vector<bool>(), (std::vector<bool>{true, true, true, false}));
    EXPECT_EQ(batch.weights.to_vector<float>(), (std::vector<float>{1, 1, 1, 0}));
  }
}

TEST(DataLoader, MovesWithItsWorkers) {
  DataLoader loader{Numbers(20), {.batch_size = 4, .num_workers = 2}};
  loader.start_pass();
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  DataLoader moved = std::move(loader);
  ASSERT_TRUE(moved.next(batch));
  EXPECT_EQ(batch.indices.to_vector<std::int64_t>()[0], 4);
  moved = DataLoader{Numbers(3), {.batch_size = 1, .num_workers = 1}};
  EXPECT_EQ(indices_of_pass(moved), (Indices{0, 1, 2}));
}

TEST(DataLoader, AssignedToItselfItStaysAsItIs) {
  DataLoader loader{Numbers(3), {.num_workers = 1}};
  DataLoader<Numbers>& same = loader;
  loader = std::move(same);
  EXPECT_EQ(indices_of_pass(loader), (Indices{0, 1, 2}));
}

TEST(DataLoader, UseOfAMovedFromLoaderIsAnError) {
  DataLoader loader{Numbers(3), {}};
  const DataLoader moved = std::move(loader);
  Batch batch;
  const std::vector<std::function<void()>> uses = {
      [&] { loader.begin(); },   [&] { loader.start_pass(); },   [&] { loader.next(batch); },
      [&] { loader.size(); },    [&] { loader.sample_count(); }, [&] { loader.position(); },
      [&] { loader.epoch(); },   [&] { loader.set_epoch(1); },   [&] { loader.wait_seconds(); },
      [&] { loader.dataset(); }, [&] { loader.options(); },      [&] { loader.batch_size(); }};
  for (const auto& use : uses) EXPECT_TRUE(contains(error_of<Error>(use), "DataLoader: it was moved from"));
  loader = DataLoader{Numbers(2), {}};
  EXPECT_EQ(indices_of_pass(loader), (Indices{0, 1}));
}

TEST(DataLoader, OptionsOutsideTheirDomainAreRefused) {
  const auto message = [](const DataLoaderOptions& options) {
    return error_of<ValueError>([&] { DataLoader{Numbers(4), options}; });
  };
  EXPECT_TRUE(contains(message({.batch_size = 0}), "DataLoader: batch_size must be at least 1, given 0"));
  EXPECT_TRUE(contains(message({.num_workers = -1}), "num_workers must be at least 0, given -1"));
  EXPECT_TRUE(contains(message({.prefetch_factor = 0}), "prefetch_factor must be at least 1, given 0"));
  EXPECT_TRUE(contains(message({.num_workers = 2, .prefetch_factor = INT_MAX}),
                       "num_workers times prefetch_factor is the number of batches loaded ahead, at most "
                       "1048576, given 2 times 2147483647"));
  EXPECT_TRUE(contains(message({.timeout_s = -2}), "timeout_s must be finite and at least 0, given -2"));
  EXPECT_TRUE(contains(message({.shuffle = true, .sampler = std::make_shared<SequentialSampler>(4)}),
                       "shuffle and a sampler exclude each other"));
}

}  // namespace
}  // namespace tutti::data
