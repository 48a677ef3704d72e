// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/error.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tutti/core/dtype.hpp"
#include "tutti/core/version.hpp"

namespace tutti {
namespace {

TEST(Errors, ConcatJoinsTextNumbersAndDTypes) {
  EXPECT_EQ(concat("a", std::string("b"), std::string_view("c"), 'd', true, false), "abcdtruefalse");
  EXPECT_EQ(concat(std::int8_t{-5}, " ", std::uint8_t{200}, " ", std::numeric_limits<std::int64_t>::min(),
                   " ", std::numeric_limits<std::uint64_t>::max()),
            "-5 200 -9223372036854775808 18446744073709551615");
  EXPECT_EQ(concat(DType::kBFloat16, " and ", DType::kInt8), "bfloat16 and int8");
}

TEST(Errors, ConcatWritesTheShortestTextThatGivesTheSameDouble) {
  EXPECT_EQ(concat(0.1, " ", 1e300, " ", -2.5, " ", 3.0), "0.1 1e+300 -2.5 3");
  EXPECT_EQ(concat(std::numeric_limits<double>::infinity(), " ", std::numeric_limits<double>::quiet_NaN()),
            "inf nan");
}

TEST(Errors, FailingCheckThrowsItsKindWithTheWholeText) {
  const int wanted = 3;
  try {
    TUTTI_CHECK(wanted == 4, ShapeError, "linear wants ", wanted, " features of ", DType::kFloat32);
    FAIL() << "no exception";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "linear wants 3 features of float32");
  }
  EXPECT_NO_THROW(TUTTI_CHECK(wanted == 3, ShapeError, "never"));
}

TEST(Errors, EveryKindIsAnErrorAndARuntimeError) {
  EXPECT_THROW(throw TimeoutError("x"), Error);
  EXPECT_THROW(throw DataError("x"), std::runtime_error);
}

TEST(Version, TextMatchesTheMacros) {
  EXPECT_EQ(std::string(version()),
            concat(TUTTI_VERSION_MAJOR, ".", TUTTI_VERSION_MINOR, ".", TUTTI_VERSION_PATCH));
}

}  // namespace
}  // namespace tutti
