// SPDX-License-Identifier: Apache-2.0
// binary16 and bfloat16 against a decoder in double and the definition of round to nearest even.
#include "tutti/core/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>

namespace tutti {
namespace {

struct HalfFormat {
  using Type = Half;
  static constexpr int kMantissaBits = 10;
  static constexpr int kExponentBits = 5;
};
struct BFloat16Format {
  using Type = BFloat16;
  static constexpr int kMantissaBits = 7;
  static constexpr int kExponentBits = 8;
};

template <class Format>
class SmallFloat : public ::testing::Test {
 public:
  using Type = typename Format::Type;
  static constexpr std::uint32_t kMantissas = 1U << Format::kMantissaBits;
  static constexpr std::uint32_t kInfinity = ((1U << Format::kExponentBits) - 1U) << Format::kMantissaBits;
  static constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;

  // Value of a pattern without its sign; infinity's pattern stands for the power of two at which rounding
  // reaches it.
  static double magnitude(std::uint32_t pattern) {
    const int exponent = static_cast<int>(pattern >> Format::kMantissaBits);
    const std::uint32_t mantissa = pattern & (kMantissas - 1U);
    if (exponent == 0) return std::ldexp(mantissa, 1 - kBias - Format::kMantissaBits);
    return std::ldexp(mantissa + kMantissas, exponent - kBias - Format::kMantissaBits);
  }

  static std::uint32_t converted(float value) { return Type(value).bits; }
  static std::uint32_t converted(double value) { return Type(value).bits; }
};

using Formats = ::testing::Types<HalfFormat, BFloat16Format>;
TYPED_TEST_SUITE(SmallFloat, Formats);

TYPED_TEST(SmallFloat, EveryPatternDecodesExactlyAndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = TestFixture::Type::from_bits(static_cast<std::uint16_t>(bits));
    const std::uint32_t pattern = bits & 0x7fffU;
    ASSERT_EQ(std::signbit(value), bits >= 0x8000U) << bits;
    if (pattern > TestFixture::kInfinity) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      const std::uint32_t quiet = TestFixture::kMantissas >> 1U;
      ASSERT_EQ(this->converted(value) | quiet, bits | quiet) << "sign and payload of a NaN stay";
      continue;
    }
    if (pattern == TestFixture::kInfinity) {
      ASSERT_TRUE(std::isinf(value)) << bits;
    } else {
      ASSERT_EQ(std::fabs(static_cast<double>(value)), this->magnitude(pattern)) << bits;
    }
    ASSERT_EQ(this->converted(value), bits);
  }
}

// Every border between two neighbours, the one to infinity included: all floats round as their position to it
// says.
TYPED_TEST(SmallFloat, RoundsToNearestAndTiesToEvenAtEveryBorder) {
  for (std::uint32_t pattern = 0; pattern < TestFixture::kInfinity; ++pattern) {
    const double middle = (this->magnitude(pattern) + this->magnitude(pattern + 1)) / 2;
    const auto border = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(border), middle) << "a border is a float";
    const std::uint32_t even = pattern + (pattern & 1U);
    ASSERT_EQ(this->converted(border), even) << pattern;
    ASSERT_EQ(this->converted(std::nextafter(border, 0.0F)), pattern);
    ASSERT_EQ(this->converted(std::nextafter(border, INFINITY)), pattern + 1);
    ASSERT_EQ(this->converted(-border), even | 0x8000U);
    ASSERT_EQ(this->converted(-std::nextafter(border, 0.0F)), pattern | 0x8000U);
    ASSERT_EQ(this->converted(-std::nextafter(border, INFINITY)), (pattern + 1) | 0x8000U);
  }
}

// Doubles beside a border are nearer to it than any float but the border itself.
TYPED_TEST(SmallFloat, DoublesRoundOnceAtEveryBorder) {
  for (std::uint32_t pattern = 0; pattern < TestFixture::kInfinity; ++pattern) {
    const double border = (this->magnitude(pattern) + this->magnitude(pattern + 1)) / 2;
    const std::uint32_t even = pattern + (pattern & 1U);
    ASSERT_EQ(this->converted(border), even) << pattern;
    ASSERT_EQ(this->converted(std::nextafter(border, 0.0)), pattern);
    ASSERT_EQ(this->converted(std::nextafter(border, 1e300)), pattern + 1);
    ASSERT_EQ(this->converted(-border), even | 0x8000U);
    ASSERT_EQ(this->converted(-std::nextafter(border, 0.0)), pattern | 0x8000U);
    ASSERT_EQ(this->converted(-std::nextafter(border, 1e300)), (pattern + 1) | 0x8000U);
  }
  EXPECT_EQ(this->converted(1e300), TestFixture::kInfinity);
  EXPECT_EQ(this->converted(-1e300), TestFixture::kInfinity | 0x8000U);
  EXPECT_EQ(this->converted(static_cast<double>(INFINITY)), TestFixture::kInfinity);
  EXPECT_EQ(this->converted(1e-300), 0U);
  EXPECT_EQ(this->converted(-1e-300), 0x8000U);
  EXPECT_TRUE(std::isnan(static_cast<float>(typename TestFixture::Type(std::nan("")))));
}

// The value of an integer's half by the definition, in integers alone: of its leading bits as many as the format keeps, one more in
// the last place for what was cut off if that is more than half of it, or half and the last bit is 1.
double rounded_integer(std::uint64_t magnitude, int kept_bits) {
  const int shift = static_cast<int>(std::bit_width(magnitude)) - kept_bits;
  if (shift <= 0) return static_cast<double>(magnitude);
  const std::uint64_t kept = magnitude >> shift;
  const std::uint64_t cut_off = magnitude - (kept << shift);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const bool up = cut_off > half || (cut_off == half && kept % 2 == 1);
  return std::ldexp(kept + (up ? 1U : 0U), shift);
}

// Integers beside a border may be as far from the next float, or the next double, as the border is.
TYPED_TEST(SmallFloat, IntegersRoundOnceAtEveryBorder) {
  // Half takes floats: integers that are none exceed its range.
  const auto convert = []<class Integer>(Integer value) {
    if constexpr (std::same_as<typename TestFixture::Type, Half>)
      return Half(static_cast<float>(value));
    else
      return BFloat16(value);
  };
  const auto expect_rounded_once = [this, convert]<class Integer>(Integer value) {
    const bool negative = value < 0;
    const auto bits = static_cast<std::uint64_t>(value);
    const double rounded = rounded_integer(negative ? 0 - bits : bits, TypeParam::kMantissaBits + 1);
    const std::uint32_t got = convert(value).bits;
    ASSERT_EQ(this->magnitude(got & 0x7fffU), std::min(rounded, this->magnitude(TestFixture::kInfinity)))
        << +value;
    ASSERT_EQ(got >= 0x8000U, negative) << +value;
  };
  const auto check = [&](std::int64_t value) {
    for (const std::int64_t each : {value - 1, value, value + 1, 1 - value, -value, -1 - value}) {
      expect_rounded_once(each);
      if (each == static_cast<std::int32_t>(each)) expect_rounded_once(static_cast<std::int32_t>(each));
      if (each == static_cast<std::int16_t>(each)) expect_rounded_once(static_cast<std::int16_t>(each));
      if (each >= 0) expect_rounded_once(static_cast<std::uint64_t>(each) * 2);
    }
  };
  // The numbers of the format that are integers, and the borders between them that are, up to the greatest below 2^63.
  for (int exponent = 0; exponent < 63; ++exponent) {
    const int shift = exponent - (TypeParam::kMantissaBits + 1);
    const std::int64_t least = std::int64_t{1} << exponent;
    const std::int64_t step = shift > 0 ? std::int64_t{1} << shift : 1;
    for (std::int64_t offset = 0; offset < least; offset += step) check(least + offset);
  }
  for (const std::int64_t end :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()})
    expect_rounded_once(end);
  expect_rounded_once(std::numeric_limits<std::int32_t>::min());
  expect_rounded_once(std::numeric_limits<std::uint64_t>::max());
}

TYPED_TEST(SmallFloat, RandomFloatsRoundAsInDouble) {
  std::mt19937 bits(20261130);
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = detail::bits_float(static_cast<std::uint32_t>(bits()));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(typename TestFixture::Type(value))));
      continue;
    }
    if (std::isinf(value)) continue;
    const double exact = std::fabs(static_cast<double>(value));
    const int exponent =
        exact == 0 ? 1 - TestFixture::kBias : std::max(std::ilogb(exact), 1 - TestFixture::kBias);
    const double quantum = std::ldexp(1.0, exponent - TypeParam::kMantissaBits);
    const double rounded = std::nearbyint(exact / quantum) * quantum;  // ties to even by default
    const std::uint32_t got = this->converted(value);
    ASSERT_EQ(this->magnitude(got & 0x7fffU), std::min(rounded, this->magnitude(TestFixture::kInfinity)))
        << value;
    ASSERT_EQ(got >= 0x8000U, std::signbit(value)) << value;
  }
}

TYPED_TEST(SmallFloat, InfinityAndSignalingNaN) {
  EXPECT_EQ(this->converted(INFINITY), TestFixture::kInfinity);
  EXPECT_EQ(this->converted(-INFINITY), TestFixture::kInfinity | 0x8000U);
  EXPECT_EQ(this->converted(std::numeric_limits<float>::max()), TestFixture::kInfinity);
  // The payload of this NaN lies in bits that are cut off: it must not turn into infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(typename TestFixture::Type(detail::bits_float(0x7f800001U)))));
}

}  // namespace
}  // namespace tutti
