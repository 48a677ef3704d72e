// SPDX-License-Identifier: Apache-2.0
// Copies, fills and ranges.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "strided_array.hpp"

namespace tutti {
namespace {

using test::Layout;
using test::Sizes;
using test::StridedArray;

constexpr std::int32_t kAll[] = {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16, TUTTI_I64,
                                 TUTTI_I32, TUTTI_I16, TUTTI_I8,  TUTTI_U8,   TUTTI_BOOL};

tutti_status copy_array(StridedArray& out, const StridedArray& in) {
  const tutti_copy call{nullptr, out.view(), in.view()};
  return cpu::copy(&call);
}

// Small integers are the same number in every dtype but bool.
void fill_small(StridedArray& array, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> small(0, 100);
  for (std::int64_t i = 0; i < array.numel(); ++i) {
    const int value = small(generator);
    array.set(i, array.view().dtype == TUTTI_BOOL ? value % 2 : value);
  }
}

TEST(Copy, EveryPairOfDtypesAndLayoutsKeepsTheNumbers) {
  const Layout layouts[] = {Layout::kContiguous, Layout::kTransposed, Layout::kSpread, Layout::kPadded};
  for (const std::int32_t from : kAll) {
    for (const std::int32_t to : kAll) {
      for (const Layout in_layout : layouts) {
        for (const Layout out_layout : layouts) {
          StridedArray in(from, {3, 37, 41}, in_layout);
          StridedArray out(to, {3, 37, 41}, out_layout);
          fill_small(in, 5);
          ASSERT_EQ(copy_array(out, in), TUTTI_OK);
          for (std::int64_t i = 0; i < in.numel(); ++i) {
            const double wanted = to == TUTTI_BOOL ? in.get(i) != 0 : in.get(i);
            ASSERT_EQ(out.get(i), wanted) << from << " to " << to << " at " << i;
          }
        }
      }
    }
  }
}

TEST(Copy, ChannelsLastAndBackForAnyNumberOfChannels) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_BF16, TUTTI_U8}) {
    for (const std::int64_t channels : {1, 3, 16, 37, 64}) {
      StridedArray in(dtype, {2, channels, 13, 19});
      StridedArray last(dtype, {2, channels, 13, 19}, Layout::kChannelsLast);
      StridedArray back(dtype, {2, channels, 13, 19});
      fill_small(in, 6);
      ASSERT_EQ(copy_array(last, in), TUTTI_OK);
      ASSERT_EQ(copy_array(back, last), TUTTI_OK);
      EXPECT_EQ(last.values(), in.values());
      EXPECT_EQ(back.values(), in.values());
    }
  }
}

TEST(Copy, LargeTransposesAreExactForAnyNumberOfThreads) {
  StridedArray in(TUTTI_F32, {301, 517}, Layout::kTransposed);
  StridedArray out(TUTTI_F32, {301, 517});
  in.fill_random(3);
  test::expect_same_bits_for_all_teams(out, [&] { ASSERT_EQ(copy_array(out, in), TUTTI_OK); });
  EXPECT_EQ(out.values(), in.values());
}

TEST(Copy, BroadcastsAStrideOfZero) {
  StridedArray in(TUTTI_F32, {4, 5, 6}, Layout::kBroadcastBatch);
  StridedArray out(TUTTI_F64, {4, 5, 6});
  in.fill_random(2);
  ASSERT_EQ(copy_array(out, in), TUTTI_OK);
  EXPECT_EQ(out.values(), in.values());
}

TEST(Copy, FloatingToIntegerTruncatesSaturatesAndTurnsNanToZero) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {1.9,   -1.9,  3e20,  -3e20, inf,    -inf,  std::nan(""),
                                      127.0, 128.0, 255.0, 256.0, -128.5, -129.5};
  struct Row {
    std::int32_t dtype;
    double low, high;
  };
  for (const std::int32_t from : {TUTTI_F64, TUTTI_F32, TUTTI_BF16}) {
    for (const Row& row : {Row{TUTTI_I32, -2147483648.0, 2147483647.0}, Row{TUTTI_I16, -32768, 32767},
                           Row{TUTTI_I8, -128, 127}, Row{TUTTI_U8, 0, 255}}) {
      const auto count = static_cast<std::int64_t>(values.size());
      StridedArray in(from, {7 * count});
      StridedArray out(row.dtype, {7 * count});
      for (std::int64_t i = 0; i < 7 * count; ++i) in.set(i, values[static_cast<std::size_t>(i % count)]);
      ASSERT_EQ(copy_array(out, in), TUTTI_OK);
      for (std::int64_t i = 0; i < 7 * count; ++i) {
        const double x = in.get(i);
        const double wanted = std::isnan(x) ? 0 : std::trunc(std::clamp(x, row.low, row.high));
        EXPECT_EQ(out.get(i), wanted) << from << " to " << row.dtype << ": " << x;
      }
    }
  }
  StridedArray in(TUTTI_F64, {4});
  StridedArray out(TUTTI_I64, {4});
  in.assign({1e30, -1e30, std::nan(""), -7.5});
  ASSERT_EQ(copy_array(out, in), TUTTI_OK);
  const auto* result = static_cast<const std::int64_t*>(out.view().data);
  EXPECT_EQ(result[0], std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(result[1], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(result[2], 0);
  EXPECT_EQ(result[3], -7);
}

TEST(Copy, NanAndFractionsBecomeTrue) {
  StridedArray in(TUTTI_F32, {4});
  StridedArray out(TUTTI_BOOL, {4});
  in.assign({std::nan(""), 0.25, -0.0, 0.0});
  ASSERT_EQ(copy_array(out, in), TUTTI_OK);
  EXPECT_EQ(out.values(), (std::vector<double>{1, 1, 0, 0}));
}

// core/half.hpp, tested on its own over all values, is the reference.
TEST(Copy, EveryHalfConvertsAsASingleValueDoes) {
  for (const bool brain : {false, true}) {
    StridedArray halves(brain ? TUTTI_BF16 : TUTTI_F16, {65536});
    StridedArray floats(TUTTI_F32, {65536});
    auto* bits = static_cast<std::uint16_t*>(halves.view().data);
    for (int i = 0; i < 65536; ++i) bits[i] = static_cast<std::uint16_t>(i);
    ASSERT_EQ(copy_array(floats, halves), TUTTI_OK);
    const auto* result = static_cast<const float*>(floats.view().data);
    for (int i = 0; i < 65536; ++i) {
      const float wanted = brain ? float(BFloat16::from_bits(static_cast<std::uint16_t>(i)))
                                 : float(Half::from_bits(static_cast<std::uint16_t>(i)));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(result[i]));
      } else {
        ASSERT_EQ(std::memcmp(&result[i], &wanted, sizeof wanted), 0) << i;
      }
    }
  }
}

TEST(Copy, FloatsRoundToHalvesAsASingleValueDoes) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32U); bits += 52361) {
    const auto word = static_cast<std::uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof value);
    values.push_back(value);
  }
  for (const float around :
       {65504.0F, 65519.996F, 65520.0F, 0x1p-24F, 0x1p-25F, 0x1.000002p-25F, 0x1p-14F, 0x1.ffep-15F}) {
    values.insert(values.end(), {around, -around});
  }
  const auto count = static_cast<std::int64_t>(values.size());
  StridedArray floats(TUTTI_F32, {count});
  std::copy(values.begin(), values.end(), static_cast<float*>(floats.view().data));
  for (const bool brain : {false, true}) {
    StridedArray halves(brain ? TUTTI_BF16 : TUTTI_F16, {count});
    ASSERT_EQ(copy_array(halves, floats), TUTTI_OK);
    const auto* result = static_cast<const std::uint16_t*>(halves.view().data);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t wanted = brain ? BFloat16(values[i]).bits : Half(values[i]).bits;
      if (std::isnan(values[i])) {
        ASSERT_TRUE(
            std::isnan(brain ? float(BFloat16::from_bits(result[i])) : float(Half::from_bits(result[i]))));
      } else {
        ASSERT_EQ(result[i], wanted) << values[i];
      }
    }
  }
}

// Doubles on, just below and just above all borders between two halves of either sign, and where float ends.
std::vector<double> doubles_around_borders(bool brain) {
  const auto number = [brain](int bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    return static_cast<double>(brain ? float(BFloat16::from_bits(pattern)) : float(Half::from_bits(pattern)));
  };
  std::vector<double> values = {0.0,          1e300,  std::numeric_limits<double>::infinity(),
                                std::nan(""), 1e-300, 0x1p-150};
  for (int bits = 0; std::isfinite(number(bits + 1)); ++bits) {
    const double border = (number(bits) + number(bits + 1)) / 2;
    values.insert(values.end(), {border, std::nextafter(border, 0.0), std::nextafter(border, 1e300)});
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

TEST(Copy, DoublesRoundToHalvesOnce) {
  for (const bool brain : {false, true}) {
    const std::vector<double> values = doubles_around_borders(brain);
    const auto count = static_cast<std::int64_t>(values.size());
    StridedArray doubles(TUTTI_F64, {count});
    std::copy(values.begin(), values.end(), static_cast<double*>(doubles.view().data));
    StridedArray halves(brain ? TUTTI_BF16 : TUTTI_F16, {count});
    ASSERT_EQ(copy_array(halves, doubles), TUTTI_OK);
    const auto* result = static_cast<const std::uint16_t*>(halves.view().data);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        ASSERT_TRUE(
            std::isnan(brain ? float(BFloat16::from_bits(result[i])) : float(Half::from_bits(result[i]))));
      } else {
        ASSERT_EQ(result[i], brain ? BFloat16(values[i]).bits : Half(values[i]).bits) << values[i];
      }
    }
  }
}

// Integers on all borders between two halves, and one less and one more.
template <class Integer>
std::vector<Integer> integers_around_borders(bool brain) {
  using Limits = std::numeric_limits<Integer>;
  std::vector<Integer> values = {0, Limits::min(), Limits::max()};
  for (const double border : doubles_around_borders(brain)) {
    if (border != std::trunc(border) || std::abs(border) > static_cast<double>(Limits::max() / 2)) continue;
    const auto exact = static_cast<Integer>(border);
    values.insert(values.end(), {exact - 1, exact, exact + 1});
  }
  return values;
}

template <class Integer>
void expect_rounded_once(std::int32_t dtype) {
  for (const bool brain : {false, true}) {
    const std::vector<Integer> values = integers_around_borders<Integer>(brain);
    const auto count = static_cast<std::int64_t>(values.size());
    ASSERT_GT(count, 1000);
    StridedArray integers(dtype, {count});
    std::copy(values.begin(), values.end(), static_cast<Integer*>(integers.view().data));
    StridedArray halves(brain ? TUTTI_BF16 : TUTTI_F16, {count});
    ASSERT_EQ(copy_array(halves, integers), TUTTI_OK);
    const auto* result = static_cast<const std::uint16_t*>(halves.view().data);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(result[i], brain ? BFloat16(values[i]).bits : Half(static_cast<float>(values[i])).bits)
          << values[i];
  }
}

TEST(Copy, IntegersRoundToHalvesOnce) {
  expect_rounded_once<std::int64_t>(TUTTI_I64);
  expect_rounded_once<std::int32_t>(TUTTI_I32);
}

TEST(Fill, RoundsADoubleToAHalfOnce) {
  // Just above the border between 1 and the next number of each format.
  for (const auto& [dtype, step] : {std::pair(TUTTI_F16, 0x1p-10), std::pair(TUTTI_BF16, 0x1p-7)}) {
    StridedArray out(dtype, {40});
    const tutti_fill call{nullptr, {1 + step / 2 + 0x1p-40, 1}, out.view()};
    ASSERT_EQ(cpu::fill(&call), TUTTI_OK);
    for (int i = 0; i < 40; ++i) ASSERT_EQ(out.get(i), 1 + step) << i;
  }
}

TEST(Arange, RoundsToHalvesOnce) {
  StridedArray out(TUTTI_F16, {2});
  tutti_arange call{};
  call.out = out.view();
  call.start.f = 0;
  call.step.f = 1 + 0x1p-11 + 0x1p-40;
  ASSERT_EQ(cpu::arange(&call), TUTTI_OK);
  EXPECT_EQ(out.get(1), 1 + 0x1p-10);
}

TEST(Fill, WritesEveryElementAndNothingElse) {
  for (const std::int32_t dtype : kAll) {
    for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kSpread, Layout::kPadded}) {
      StridedArray out(dtype, {3, 50, 70}, layout);
      const tutti_fill call{nullptr, {3.0, 3}, out.view()};
      ASSERT_EQ(cpu::fill(&call), TUTTI_OK);
      for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.get(i), dtype == TUTTI_BOOL ? 1 : 3);
    }
  }
  StridedArray spread(TUTTI_F32, {100}, Layout::kSpread);
  const tutti_fill call{nullptr, {3.0, 3}, spread.view()};
  ASSERT_EQ(cpu::fill(&call), TUTTI_OK);
  const auto* memory = static_cast<const float*>(spread.view().data);
  for (int i = 1; i < 200; i += 2) ASSERT_EQ(memory[i], 0.0F) << "wrote between the elements";
}

TEST(Arange, CountsInTheDtypeAndInLogicalOrder) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_I64, TUTTI_I32, TUTTI_I16}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kTransposed}) {
      StridedArray out(dtype, {30, 40}, layout);
      const tutti_arange call{nullptr, {-5.0, -5}, {2.0, 2}, out.view()};
      ASSERT_EQ(cpu::arange(&call), TUTTI_OK);
      for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.get(i), static_cast<double>(-5 + 2 * i));
    }
  }
  StridedArray tenths(TUTTI_F32, {100000});
  const tutti_arange call{nullptr, {0.0, 0}, {0.1, 0}, tenths.view()};
  ASSERT_EQ(cpu::arange(&call), TUTTI_OK);
  EXPECT_EQ(tenths.get(99999), static_cast<double>(static_cast<float>(99999 * 0.1)));
}

TEST(Copy, EmptyViewsAreLeftAlone) {
  StridedArray in(TUTTI_F32, {0, 3});
  StridedArray out(TUTTI_I8, {0, 3});
  EXPECT_EQ(copy_array(out, in), TUTTI_OK);
  const tutti_fill call{nullptr, {1.0, 1}, out.view()};
  EXPECT_EQ(cpu::fill(&call), TUTTI_OK);
}

}  // namespace
}  // namespace tutti
