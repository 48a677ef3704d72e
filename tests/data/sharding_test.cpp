// SPDX-License-Identifier: Apache-2.0
// Loaders of several ranks share a dataset. Runs under mpirun.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tutti/comm/process_group.hpp"
#include "tutti/data/data_loader.hpp"

namespace tutti::data {
namespace {

using Indices = std::vector<std::int64_t>;

struct Numbers : Dataset<Numbers> {
  std::size_t count;
  explicit Numbers(std::size_t samples) : count(samples) {}
  std::size_t size() const { return count; }
  void read(std::size_t index, Row& row) const {
    row.input<std::int64_t>() = static_cast<std::int64_t>(index);
  }
};

// What a rank got in a pass: indices of valid samples, and how many there were in all.
struct Part {
  Indices valid;
  std::size_t total = 0;
  std::int64_t batches = 0;
};
Part part_of(DataLoader<Numbers>& loader) {
  Part part;
  for (const Batch& batch : loader) {
    const Indices indices = batch.inputs.to_vector<std::int64_t>();
    const std::vector<bool> mask = batch.mask.to_vector<bool>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (mask[i]) part.valid.push_back(indices[i]);
    }
    part.total += indices.size();
    ++part.batches;
  }
  return part;
}

// The valid samples of all ranks, sorted.
Indices gathered(const Indices& mine) {
  std::ostringstream text;
  for (const std::int64_t index : mine) text << index << ' ';
  Indices all;
  for (const std::string& one : comm::world()->exchange(text.str())) {
    std::istringstream stream(one);
    for (std::int64_t index = 0; stream >> index;) all.push_back(index);
  }
  std::sort(all.begin(), all.end());
  return all;
}

Indices sequence(std::size_t count) {
  return SequentialSampler(static_cast<std::int64_t>(count)).pass(0).indices;
}

TEST(Sharding, TrainingPadsSoThatRanksHaveEquallyMany) {
  const auto ranks = static_cast<std::size_t>(comm::world()->size());
  for (const std::size_t count : {1U, 7U, 30U, 31U}) {
    DataLoader loader{Numbers(count), {.batch_size = 4, .shuffle = true, .num_workers = 2}};
    Indices before;
    for (int epoch = 0; epoch < 2; ++epoch) {
      const Part part = part_of(loader);
      EXPECT_EQ(part.total, (count + ranks - 1) / ranks);
      EXPECT_EQ(part.batches, loader.size());
      EXPECT_EQ(gathered(part.valid), sequence(count));
      if (count >= 30) {
        EXPECT_NE(part.valid, before);
      }
      before = part.valid;
    }
  }
}

TEST(Sharding, EvaluationGivesEachSampleOnce) {
  for (const std::size_t count : {0U, 1U, 7U, 31U}) {
    DataLoader loader{Numbers(count), {.batch_size = 4, .num_workers = 1, .distributed = Sharding::kExact}};
    const Part part = part_of(loader);
    EXPECT_EQ(part.total, part.valid.size());
    EXPECT_EQ(gathered(part.valid), sequence(count));
  }
}

TEST(Sharding, NoneGivesEveryRankAllSamples) {
  DataLoader loader{Numbers(9), {.batch_size = 4, .distributed = Sharding::kNone}};
  EXPECT_EQ(part_of(loader).valid, sequence(9));
}

}  // namespace
}  // namespace tutti::data
