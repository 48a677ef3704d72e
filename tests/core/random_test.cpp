// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "core/parallel_for.hpp"
#include "core/philox.hpp"

namespace tutti {
namespace {

using Block = std::array<std::uint32_t, 4>;

// kat_vectors of Random123 1.14, "philox4x32 10".
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox_block({0, 0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(philox_block({ones, ones, ones}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: the digits of pi
  EXPECT_EQ(
      philox_block({.seed = 0x299f31d0a4093822, .stream = 0x0370734413198a2e, .offset = 0x85a308d3243f6a88}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Generators, DrawsAreTheLanesOfSuccessiveCounters) {
  Generator generator(7, 3);
  EXPECT_EQ(generator.next_u32(), philox_block({7, 3, 0})[0]);
  const Block second = philox_block({7, 3, 1});
  EXPECT_EQ(generator.next_u64(), (std::uint64_t{second[1]} << 32U) | second[0]);
  EXPECT_EQ(generator.state().offset, 2U);
  const double value = generator.next_double();
  const Block third = philox_block({7, 3, 2});
  EXPECT_EQ(value,
            std::ldexp(static_cast<double>(((std::uint64_t{third[1]} << 32U) | third[0]) >> 11U), -53));
}

TEST(Generators, ReserveTakesWholeCounters) {
  Generator generator(1);
  EXPECT_EQ(generator.reserve(5).offset, 0U);
  EXPECT_EQ(generator.reserve(0).offset, 2U);
  EXPECT_EQ(generator.reserve(4).offset, 2U);
  EXPECT_EQ(generator.state().offset, 3U);
}

TEST(Generators, CopyAndStateContinueTheSequence) {
  Generator first(11);
  first.next_u64();
  Generator copy = first;
  Generator restored;
  restored.set_state(first.state());
  const std::uint64_t next = first.next_u64();
  EXPECT_EQ(copy.next_u64(), next);
  EXPECT_EQ(restored.next_u64(), next);
  first.manual_seed(11);
  EXPECT_EQ(first.next_u64(), Generator(11).next_u64());
}

TEST(Generators, StreamsAndSeedsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::uint64_t stream = 0; stream < 4; ++stream) seen.insert(Generator(seed, stream).next_u64());
  }
  EXPECT_EQ(seen.size(), 16U);
}

// Chi-square with 5 degrees of freedom: 20.5 is passed with probability 0.001, and the seed is fixed.
TEST(Generators, BelowABoundIsUniformAndReachesBothEnds) {
  Generator generator(5);
  constexpr int kDraws = 60000;
  std::array<int, 6> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts.at(generator.next_below(6));
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - kDraws / 6.0, 2) / (kDraws / 6.0);
  EXPECT_LT(chi_square, 20.5);
  EXPECT_EQ(generator.next_below(0), 0U);
  EXPECT_EQ(generator.next_below(1), 0U);
}

// Without rejection, 2^64 draws onto 3 * 2^62 cells would give the first third of each group twice the
// weight.
TEST(Generators, BelowALargeBoundIsNotBiased) {
  Generator generator(6);
  const std::uint64_t bound = std::uint64_t{3} << 62U;
  constexpr int kDraws = 30000;
  std::array<int, 3> remainders{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = generator.next_below(bound);
    ASSERT_LT(value, bound);
    ++remainders.at(value % 3);
  }
  for (const int count : remainders) EXPECT_NEAR(count, kDraws / 3, 5 * std::sqrt(kDraws * 2 / 9.0));
}

TEST(DefaultGenerator, ManualSeedReachesThisThreadAndThreadsThatStartLater) {
  manual_seed(99);
  const std::uint64_t expected = Generator(99).next_u64();
  EXPECT_EQ(default_generator().next_u64(), expected);
  std::uint64_t other = 0;
  std::thread([&other] { other = default_generator().next_u64(); }).join();
  EXPECT_EQ(other, expected);
}

TEST(DefaultGenerator, NumbersByCounterDoNotDependOnTheNumberOfThreads) {
  const PhiloxState start = Generator(123).reserve(10007);
  std::vector<std::vector<std::uint32_t>> results;
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    std::vector<std::uint32_t> numbers(10007);
    parallel_for(0, 10007, 100, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto index = static_cast<std::uint64_t>(i);
        numbers[index] = philox_block({start.seed, start.stream, start.offset + index / 4})[index % 4];
      }
    });
    results.push_back(numbers);
  }
  for (const auto& numbers : results) EXPECT_EQ(numbers, results.front());
}

}  // namespace
}  // namespace tutti
