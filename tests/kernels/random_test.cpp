// SPDX-License-Identifier: Apache-2.0
// Random numbers and dropout: the bits are Random123's, the distributions have the right moments.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/philox.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "strided_array.hpp"

namespace tutti {
namespace {

using test::Layout;
using test::StridedArray;

constexpr tutti_philox kPhilox{0x123456789abcdef0U, 0xfedcba9876543210U,
                               0xfffffffeU};  // the offset's low half overflows

std::uint32_t number(std::int64_t i) {
  const PhiloxState at{kPhilox.seed, kPhilox.stream, kPhilox.offset + static_cast<std::uint64_t>(i / 4)};
  return philox_block(at)[static_cast<std::size_t>(i % 4)];
}
std::uint64_t wide_number(std::int64_t i) {
  return (static_cast<std::uint64_t>(number(2 * i + 1)) << 32U) | number(2 * i);
}

tutti_random call_of(int kind, StridedArray& out, double a, double b, std::int64_t low = 0,
                     std::int64_t high = 0) {
  return {nullptr, kind, kPhilox, a, b, low, high, out.view()};
}

TEST(Random, UniformF32HasTheUpper24BitsOfEachNumber) {
  for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kSpread}) {
    StridedArray out(TUTTI_F32, {37, 53}, layout);
    const tutti_random call = call_of(TUTTI_UNIFORM, out, 0, 1);
    ASSERT_EQ(cpu::random(&call), TUTTI_OK);
    for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.get(i), (number(i) >> 8U) * 0x1p-24);
  }
}

TEST(Random, UniformF64HasTheUpper53BitsOfTwoNumbers) {
  StridedArray out(TUTTI_F64, {1999});
  const tutti_random call = call_of(TUTTI_UNIFORM, out, 0, 1);
  ASSERT_EQ(cpu::random(&call), TUTTI_OK);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    ASSERT_EQ(out.get(i), static_cast<double>(wide_number(i) >> 11U) * 0x1p-53);
  }
}

TEST(Random, UniformNeverReachesTheUpperBound) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
    StridedArray out(dtype, {300000});
    const tutti_random call = call_of(TUTTI_UNIFORM, out, 0, 1);
    ASSERT_EQ(cpu::random(&call), TUTTI_OK);
    double sum = 0;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      ASSERT_GE(out.get(i), 0.0);
      ASSERT_LT(out.get(i), 1.0);
      sum += out.get(i);
    }
    EXPECT_NEAR(sum / 300000, dtype == TUTTI_BF16 ? 0.498 : 0.5, 0.003);
  }
  StridedArray narrow(TUTTI_F32, {300000});
  const double high = 1.0 + 0x1p-22;  // two floats above 1
  const tutti_random call = call_of(TUTTI_UNIFORM, narrow, 1.0, high);
  ASSERT_EQ(cpu::random(&call), TUTTI_OK);
  for (std::int64_t i = 0; i < narrow.numel(); ++i) ASSERT_LT(narrow.get(i), high);
}

TEST(Random, NormalIsBoxAndMullerOnPairs) {
  StridedArray out(TUTTI_F32, {1001});
  const tutti_random call = call_of(TUTTI_NORMAL, out, 3, 2);
  ASSERT_EQ(cpu::random(&call), TUTTI_OK);
  StridedArray wide(TUTTI_F64, {1001});
  const tutti_random wide_call = call_of(TUTTI_NORMAL, wide, 3, 2);
  ASSERT_EQ(cpu::random(&wide_call), TUTTI_OK);
  for (std::int64_t i = 0; i < 1001; ++i) {
    const std::int64_t pair = i / 2 * 2;
    const auto turn = [i](double u, double v) {
      const double angle = 2 * std::numbers::pi * v;
      return 3 + 2 * std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    };
    const double u = ((number(pair) >> 8U) + 1) * 0x1p-24;
    ASSERT_NEAR(out.get(i), turn(u, (number(pair + 1) >> 8U) * 0x1p-24), 2e-6) << i;
    const double wide_u = static_cast<double>((wide_number(pair) >> 11U) + 1) * 0x1p-53;
    ASSERT_NEAR(wide.get(i), turn(wide_u, static_cast<double>(wide_number(pair + 1) >> 11U) * 0x1p-53), 1e-14)
        << i;
  }
}

TEST(Random, NormalHasItsMoments) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
    StridedArray out(dtype, {1000, 1000});
    const tutti_random call = call_of(TUTTI_NORMAL, out, 0, 1);
    ASSERT_EQ(cpu::random(&call), TUTTI_OK);
    double moments[5] = {};
    for (const double x : out.values()) {
      for (int k = 1; k <= 4; ++k) moments[k] += std::pow(x, k) / 1e6;
    }
    EXPECT_NEAR(moments[1], 0, 0.005);
    EXPECT_NEAR(moments[2], 1, 0.01);
    EXPECT_NEAR(moments[3], 0, 0.02);
    EXPECT_NEAR(moments[4], 3, 0.06);
  }
}

TEST(Random, BernoulliComparesEachNumberWithTheProbability) {
  for (const std::int32_t dtype : {TUTTI_F32, TUTTI_BOOL, TUTTI_I64, TUTTI_F16}) {
    for (const double p : {0.0, 0.3, 1.0}) {
      StridedArray out(dtype, {3001});
      const tutti_random call = call_of(TUTTI_BERNOULLI, out, p, 0);
      ASSERT_EQ(cpu::random(&call), TUTTI_OK);
      for (std::int64_t i = 0; i < out.numel(); ++i)
        ASSERT_EQ(out.get(i), number(i) < std::floor(p * 0x1p32) ? 1 : 0);
    }
  }
}

TEST(Random, IntegersScaleEachNumberToTheRange) {
  for (const std::int32_t dtype : {TUTTI_I32, TUTTI_U8, TUTTI_F32, TUTTI_I64}) {
    StridedArray out(dtype, {5000});
    const tutti_random call = call_of(TUTTI_RANDINT, out, 0, 0, 3, 13);
    ASSERT_EQ(cpu::random(&call), TUTTI_OK);
    int counts[10] = {};
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const double fraction =
          dtype == TUTTI_I64 ? static_cast<double>(wide_number(i) >> 11U) * 0x1p-53 : number(i) * 0x1p-32;
      ASSERT_EQ(out.get(i), 3 + std::floor(fraction * 10));
      ++counts[static_cast<int>(out.get(i)) - 3];
    }
    for (const int count : counts) EXPECT_NEAR(count, 500, 110);
  }
}

TEST(Random, AnElementDependsOnItsIndexAloneForAnyNumberOfThreads) {
  for (const int kind : {TUTTI_UNIFORM, TUTTI_NORMAL, TUTTI_BERNOULLI, TUTTI_RANDINT}) {
    StridedArray out(TUTTI_F32, {100003});
    const tutti_random call = call_of(kind, out, 0, 1, 0, 100);
    test::expect_same_bits_for_all_teams(out, [&] { ASSERT_EQ(cpu::random(&call), TUTTI_OK); });
    StridedArray prefix(TUTTI_F32, {777});
    const tutti_random shorter = call_of(kind, prefix, 0, 1, 0, 100);
    ASSERT_EQ(cpu::random(&shorter), TUTTI_OK);
    for (std::int64_t i = 0; i < 777; ++i) ASSERT_EQ(prefix.get(i), out.get(i)) << kind << " " << i;
  }
}

TEST(Random, BadArgumentsAreNamed) {
  StridedArray integers(TUTTI_I32, {3});
  char text[256];
  const tutti_random uniform = call_of(TUTTI_UNIFORM, integers, 0, 1);
  EXPECT_EQ(cpu::random(&uniform), TUTTI_UNSUPPORTED);
  cpu::error_text(text, sizeof text);
  EXPECT_STREQ(text, "random: uniform and normal numbers need a floating dtype, given int32");
  const tutti_random empty_range = call_of(TUTTI_RANDINT, integers, 0, 0, 5, 5);
  EXPECT_EQ(cpu::random(&empty_range), TUTTI_INVALID);
  const tutti_random probability = call_of(TUTTI_BERNOULLI, integers, 1.5, 0);
  EXPECT_EQ(cpu::random(&probability), TUTTI_INVALID);
  cpu::error_text(text, sizeof text);
  EXPECT_STREQ(text, "bernoulli: wanted a probability in [0, 1], given 1.5");
}

TEST(Dropout, ZeroesWhereTheNumberIsBelowTheProbabilityAndScalesTheRest) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kSpread}) {
      StridedArray in(dtype, {41, 67}, layout);
      StridedArray out(dtype, {41, 67});
      in.fill_random(9);
      const double p = 0.25;
      const tutti_dropout call{nullptr, kPhilox, p, out.view(), in.view()};
      ASSERT_EQ(cpu::dropout(&call), TUTTI_OK);
      for (std::int64_t i = 0; i < out.numel(); ++i) {
        const double wanted = number(i) < p * 0x1p32 ? 0.0 : in.get(i) / (1 - p);
        ASSERT_NEAR(out.get(i), wanted, std::abs(wanted) * 3 * test::unit_roundoff(dtype)) << i;
      }
    }
  }
}

TEST(Dropout, ProbabilityOneGivesZerosAndZeroTheInput) {
  StridedArray in(TUTTI_F32, {1000});
  StridedArray out(TUTTI_F32, {1000});
  in.fill_random(9);
  in.set(5, std::nan(""));
  const tutti_dropout all{nullptr, kPhilox, 1.0, out.view(), in.view()};
  ASSERT_EQ(cpu::dropout(&all), TUTTI_OK);
  EXPECT_EQ(out.values(), std::vector<double>(1000, 0.0));
  in.set(5, 1.0);
  const tutti_dropout none{nullptr, kPhilox, 0.0, out.view(), in.view()};
  ASSERT_EQ(cpu::dropout(&none), TUTTI_OK);
  EXPECT_EQ(out.values(), in.values());
}

TEST(Dropout, MaskIsTheSameInPlaceAndForAnyNumberOfThreads) {
  StridedArray in(TUTTI_F32, {70001});
  StridedArray out(TUTTI_F32, {70001});
  in.fill_random(9);
  const tutti_dropout call{nullptr, kPhilox, 0.5, out.view(), in.view()};
  test::expect_same_bits_for_all_teams(out, [&] { ASSERT_EQ(cpu::dropout(&call), TUTTI_OK); });
  const tutti_dropout in_place{nullptr, kPhilox, 0.5, in.view(), in.view()};
  ASSERT_EQ(cpu::dropout(&in_place), TUTTI_OK);
  EXPECT_EQ(in.values(), out.values());
}

}  // namespace
}  // namespace tutti
