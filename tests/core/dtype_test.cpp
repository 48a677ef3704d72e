// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/dtype.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tutti {
namespace {

constexpr DType f8 = DType::kFloat64;
constexpr DType f4 = DType::kFloat32;
constexpr DType f2 = DType::kFloat16;
constexpr DType bf = DType::kBFloat16;
constexpr DType i8 = DType::kInt64;
constexpr DType i4 = DType::kInt32;
constexpr DType i2 = DType::kInt16;
constexpr DType i1 = DType::kInt8;
constexpr DType u1 = DType::kUInt8;
constexpr DType b1 = DType::kBool;

// The table of torch/csrc c10/core/ScalarType (promoteTypes), in the order and with the names used there:
// type and bytes.
constexpr DType kOrder[kDTypeCount] = {u1, i1, i2, i4, i8, f2, f4, f8, b1, bf};
constexpr DType kPromoted[kDTypeCount][kDTypeCount] = {
    /*        u1  i1  i2  i4  i8  f2  f4  f8  b1  bf */
    /* u1 */ {u1, i2, i2, i4, i8, f2, f4, f8, u1, bf},
    /* i1 */ {i2, i1, i2, i4, i8, f2, f4, f8, i1, bf},
    /* i2 */ {i2, i2, i2, i4, i8, f2, f4, f8, i2, bf},
    /* i4 */ {i4, i4, i4, i4, i8, f2, f4, f8, i4, bf},
    /* i8 */ {i8, i8, i8, i8, i8, f2, f4, f8, i8, bf},
    /* f2 */ {f2, f2, f2, f2, f2, f2, f4, f8, f2, f4},
    /* f4 */ {f4, f4, f4, f4, f4, f4, f4, f8, f4, f4},
    /* f8 */ {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8},
    /* b1 */ {u1, i1, i2, i4, i8, f2, f4, f8, b1, bf},
    /* bf */ {bf, bf, bf, bf, bf, f4, f4, f8, bf, bf},
};

TEST(DTypes, PromoteAsPyTorchsTableSays) {
  for (int row = 0; row < kDTypeCount; ++row) {
    for (int column = 0; column < kDTypeCount; ++column) {
      EXPECT_EQ(promote_types(kOrder[row], kOrder[column]), kPromoted[row][column])
          << name(kOrder[row]) << " with " << name(kOrder[column]);
    }
  }
}

TEST(DTypes, NamesSizesAndKindsAreThoseOfPyTorch) {
  const struct {
    DType dtype;
    std::string name;
    std::size_t size;
    bool floating, integral;
  } kRows[kDTypeCount] = {
      {f8, "float64", 8, true, false},  {f4, "float32", 4, true, false}, {f2, "float16", 2, true, false},
      {bf, "bfloat16", 2, true, false}, {i8, "int64", 8, false, true},   {i4, "int32", 4, false, true},
      {i2, "int16", 2, false, true},    {i1, "int8", 1, false, true},    {u1, "uint8", 1, false, true},
      {b1, "bool", 1, false, false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(to_text(row.dtype), row.name);
    EXPECT_EQ(size_of(row.dtype), row.size) << row.name;
    EXPECT_EQ(is_floating_point(row.dtype), row.floating) << row.name;
    EXPECT_EQ(is_integral(row.dtype), row.integral) << row.name;
    EXPECT_EQ(is_integral(row.dtype, true), row.integral || row.dtype == b1) << row.name;
  }
}

TEST(DTypes, ElementTypesMapToDTypesOfTheirSize) {
  EXPECT_EQ(dtype_of<double>, f8);
  EXPECT_EQ(dtype_of<Half>, f2);
  EXPECT_EQ(dtype_of<BFloat16>, bf);
  EXPECT_EQ(dtype_of<std::uint8_t>, u1);
  EXPECT_EQ(dtype_of<bool>, b1);
  static_assert(sizeof(Half) == size_of(dtype_of<Half>) && sizeof(bool) == size_of(dtype_of<bool>));
}

}  // namespace
}  // namespace tutti
