// SPDX-License-Identifier: Apache-2.0
#include "tutti/data/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/errors.hpp"
#include "support/golden.hpp"

namespace tutti::data {
namespace {

namespace golden = tutti::testing::golden;
using tutti::testing::contains;
using tutti::testing::error_of;
using Indices = std::vector<std::int64_t>;

Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

TEST(SamplerGolden, RandpermEqualsPyTorchs) {
  const golden::File file = golden::load("samplers");
  ASSERT_FALSE(file.json.at("randperm").empty());
  for (const auto& one : file.json.at("randperm")) {
    EXPECT_EQ(torch_randperm(one.at("n").get<std::int64_t>(), one.at("seed").get<std::uint64_t>()),
              one.at("order").get<Indices>());
  }
}

TEST(SamplerGolden, DistributedOrdersEqualPyTorchs) {
  const golden::File file = golden::load("samplers");
  ASSERT_FALSE(file.json.at("distributed").empty());
  for (const auto& one : file.json.at("distributed")) {
    const int world_size = one.at("world_size").get<int>();
    for (int rank = 0; rank < world_size; ++rank) {
      const DistributedSampler sampler(one.at("size").get<std::int64_t>(),
                                       {.world_size = world_size,
                                        .rank = rank,
                                        .shuffle = one.at("shuffle").get<bool>(),
                                        .seed = one.at("seed").get<std::uint64_t>(),
                                        .drop_last = one.at("drop_last").get<bool>(),
                                        .order = PermutationOrder::kTorch});
      const Pass pass = sampler.pass(one.at("epoch").get<std::uint64_t>());
      EXPECT_EQ(pass.indices, one.at("indices").at(static_cast<std::size_t>(rank)).get<Indices>())
          << one << rank;
      EXPECT_EQ(sampler.size(), static_cast<std::int64_t>(pass.indices.size()));
    }
  }
}

TEST(SamplerGolden, RandomOrdersEqualPyTorchs) {
  const golden::File file = golden::load("samplers");
  ASSERT_FALSE(file.json.at("random_sampler").empty());
  for (const auto& one : file.json.at("random_sampler")) {
    RandomSampler sampler(
        one.at("n").get<std::int64_t>(),
        {.seed = one.at("generator_seed").get<std::uint64_t>(), .order = PermutationOrder::kTorch});
    EXPECT_EQ(sampler.next().indices, one.at("order").get<Indices>());
  }
}

TEST(DistributedSampler, WithoutShufflePositionsAreStridedAndPaddedFromTheBeginning) {
  const auto indices = [](std::int64_t count, int world_size, int rank, bool drop_last) {
    return DistributedSampler(
               count, {.world_size = world_size, .rank = rank, .shuffle = false, .drop_last = drop_last})
        .pass(0)
        .indices;
  };
  EXPECT_EQ(indices(10, 3, 0, false), (Indices{0, 3, 6, 9}));
  EXPECT_EQ(indices(10, 3, 1, false), (Indices{1, 4, 7, 0}));
  EXPECT_EQ(indices(10, 3, 2, false), (Indices{2, 5, 8, 1}));
  EXPECT_EQ(indices(10, 3, 2, true), (Indices{2, 5, 8}));
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(indices(2, 5, rank, false), (Indices{rank % 2}));
    EXPECT_EQ(indices(2, 5, rank, true), Indices{});
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(indices(9, 3, rank, true), indices(9, 3, rank, false));
  EXPECT_EQ(indices(0, 3, 1, false), Indices{});
}

TEST(DistributedSampler, RanksHaveEquallyManyAndTogetherAllSamples) {
  for (const int world_size : {1, 2, 3, 5}) {
    for (const std::int64_t count : {0, 1, 2, 7, 30, 31}) {
      std::set<std::int64_t> seen;
      std::size_t valid = 0;
      for (int rank = 0; rank < world_size; ++rank) {
        const Pass pass =
            DistributedSampler(count, {.world_size = world_size, .rank = rank, .seed = 3}).pass(2);
        EXPECT_EQ(static_cast<std::int64_t>(pass.indices.size()), (count + world_size - 1) / world_size);
        valid += pass.valid_count;
        for (std::size_t i = 0; i < pass.valid_count; ++i) EXPECT_TRUE(seen.insert(pass.indices[i]).second);
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count);
      EXPECT_EQ(static_cast<std::int64_t>(valid), count);
    }
  }
}

TEST(DistributedSampler, ExactGivesEachSampleOnce) {
  for (const int world_size : {1, 2, 3, 4}) {
    for (const std::int64_t count : {0, 1, 3, 10}) {
      Indices all;
      for (int rank = 0; rank < world_size; ++rank) {
        const DistributedSampler sampler(count, {.world_size = world_size, .rank = rank, .exact = true});
        const Pass pass = sampler.pass(0);
        EXPECT_EQ(static_cast<std::int64_t>(pass.indices.size()), sampler.size());
        EXPECT_EQ(pass.valid_count, pass.indices.size());
        all.insert(all.end(), pass.indices.begin(), pass.indices.end());
      }
      EXPECT_EQ(sorted(all), SequentialSampler(count).pass(0).indices);
    }
  }
}

TEST(DistributedSampler, DroppedSamplesComeInOtherEpochs) {
  std::set<std::int64_t> seen;
  DistributedSampler first(11, {.world_size = 2, .rank = 0, .drop_last = true});
  DistributedSampler second(11, {.world_size = 2, .rank = 1, .drop_last = true});
  for (int epoch = 0; epoch < 50; ++epoch) {
    for (const std::int64_t index : first.next().indices) seen.insert(index);
    for (const std::int64_t index : second.next().indices) seen.insert(index);
  }
  EXPECT_EQ(seen.size(), 11U);
}

TEST(RandomSampler, SeedAndEpochAreMixedSoThatNoTwoPairsAgree) {
  std::set<Indices> orders;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
      orders.insert(RandomSampler(20, {.seed = seed}).pass(epoch).indices);
  }
  EXPECT_EQ(orders.size(), 25U);
}

TEST(RandomSampler, TheEpochAdvancesByItselfAndCanBeSet) {
  RandomSampler sampler(50, {.seed = 9});
  const Indices first = sampler.next().indices;
  const Indices second = sampler.next().indices;
  EXPECT_EQ(sampler.epoch(), 2U);
  EXPECT_NE(first, second);
  EXPECT_EQ(sorted(first), SequentialSampler(50).pass(0).indices);
  sampler.set_epoch(0);
  EXPECT_EQ(sampler.next().indices, first);
  EXPECT_EQ(RandomSampler(50, {.seed = 9}).pass(1).indices, second);
}

// Each of the 24 orders of 4 elements: chi-square with 23 degrees of freedom, 0.1 % quantile 49.7.
TEST(RandomSampler, AllOrdersAreEquallyLikely) {
  std::map<Indices, int> counts;
  constexpr int kPasses = 24000;
  for (std::uint64_t epoch = 0; epoch < kPasses; ++epoch) ++counts[permutation(4, 1, epoch)];
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_EQ(counts.size(), 24U);
  EXPECT_LT(chi_square, 49.7);
}

TEST(Sampler, AnOrderThatDoesNotFitIntoMemoryIsNamed) {
  const std::int64_t count = std::int64_t{1} << 60;
  const std::string wanted = "there is no memory for the order of 1152921504606846976 samples";
  EXPECT_EQ(error_of<MemoryError>([&] { RandomSampler(count).pass(0); }), wanted);
  EXPECT_EQ(error_of<MemoryError>([&] { SequentialSampler(count).pass(0); }), wanted);
  EXPECT_EQ(error_of<MemoryError>([&] { DistributedSampler(count, {.shuffle = false}).pass(0); }), wanted);
  EXPECT_EQ(error_of<MemoryError>([&] { permutation(count, 0, 0); }), wanted);
}

TEST(Sampler, ArgumentsOutsideTheirDomainAreRefused) {
  const auto message = [](std::int64_t count, const DistributedSamplerOptions& options) {
    return error_of<ValueError>([&] { DistributedSampler(count, options); });
  };
  EXPECT_TRUE(contains(message(-1, {}), "the number of samples is negative: -1"));
  EXPECT_TRUE(contains(message(1, {.world_size = 0}), "world_size must be at least 1, given 0"));
  EXPECT_TRUE(contains(message(1, {.world_size = 2, .rank = 2}), "rank must be in [0, 2), given 2"));
  EXPECT_TRUE(
      contains(message(1, {.drop_last = true, .exact = true}), "drop_last and exact exclude each other"));
  EXPECT_TRUE(contains(error_of<ValueError>([] { torch_randperm(std::int64_t{1} << 30, 0); }),
                       "PyTorch's order is reproduced for fewer than 214748364 samples"));
}

}  // namespace
}  // namespace tutti::data
