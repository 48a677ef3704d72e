// SPDX-License-Identifier: Apache-2.0
#include "parallel/step_status.hpp"

#include <gtest/gtest.h>

#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::parallel {
namespace {

struct Rank {
  bool failed;
  std::uint64_t skipped;
};

// What all ranks read where `others` more of them are like the first: summed in float64, rounded to the dtype once.
StepStatus read_of(DType dtype, const Rank& one, const Rank& like, int others) {
  const Tensor status = zeros({static_cast<std::int64_t>(kStatusBytes / size_of(dtype))}, dtype);
  write_status(status, one.failed, one.skipped);
  const Tensor alone = status.to(DType::kFloat64).clone();
  write_status(status, like.failed, like.skipped);
  const Tensor mean = (alone + status.to(DType::kFloat64) * others) / (others + 1);
  return read_status(mean.to(dtype));
}

class StepStatusOfADType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, StepStatusOfADType,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kFloat16,
                                           DType::kBFloat16));

TEST_P(StepStatusOfADType, RanksInStepAreGood) {
  for (const int others : {0, 1, 2, 1023}) {
    for (const std::uint64_t count : {0U, 1U, 127U, 128U, 1000U}) {
      EXPECT_TRUE(read_of(GetParam(), {false, count}, {false, count}, others).good()) << count;
    }
  }
}

TEST_P(StepStatusOfADType, OneOfManyRanksIsFound) {
  for (const int others : {1, 2, 1023}) {
    for (const std::uint64_t count : {0U, 1U, 126U, 127U, 1000U}) {
      for (const std::uint64_t ahead : {1U, 2U, 100U}) {
        EXPECT_TRUE(read_of(GetParam(), {false, count}, {false, count + ahead}, others).out_of_step) << count;
        EXPECT_TRUE(read_of(GetParam(), {false, count + ahead}, {false, count}, others).out_of_step) << count;
      }
    }
    EXPECT_TRUE(read_of(GetParam(), {true, 3}, {false, 3}, others).any_failed);
    EXPECT_FALSE(read_of(GetParam(), {true, 3}, {false, 3}, others).out_of_step);
  }
}

}  // namespace
}  // namespace tutti::parallel
