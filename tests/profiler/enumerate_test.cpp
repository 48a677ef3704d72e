// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/enumerate.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tutti/data/data_loader.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

TEST(Enumerate, NumbersTheElementsOfARange) {
  std::vector<int> values{5, 6, 7};
  std::vector<std::pair<std::int64_t, int>> seen;
  for (auto&& step : enumerate(values)) seen.emplace_back(step.index, step.value);
  EXPECT_EQ(seen, (std::vector<std::pair<std::int64_t, int>>{{0, 5}, {1, 6}, {2, 7}}));
}

TEST(Enumerate, GivesReferencesAndKeepsTemporaries) {
  std::vector<int> values{1, 2};
  for (auto&& step : enumerate(values)) step.value *= 10;
  EXPECT_EQ(values, (std::vector<int>{10, 20}));
  int sum = 0;
  for (const auto& [index, value] : enumerate(std::vector<int>{3, 4})) sum += static_cast<int>(index) * value;
  EXPECT_EQ(sum, 4);
}

TEST(Enumerate, CountsBatchesOfALoader) {
  data::DataLoader loader{data::TensorDataset{arange(10)}, {.batch_size = 4}};
  std::vector<std::int64_t> sizes;
  for (auto&& step : enumerate(loader)) {
    const data::Batch& batch = step.value;
    EXPECT_EQ(step.index, static_cast<std::int64_t>(sizes.size()));
    sizes.push_back(batch.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 4, 2}));
}

}  // namespace
}  // namespace tutti
