// SPDX-License-Identifier: Apache-2.0
// A call's short arrays: from the heap at most once.
#include "kernels/cpu/call_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/out_of_memory.hpp"

namespace tutti::cpu {
namespace {

// Two arrays of one call, each with numbers of its own.
void call(std::size_t count) {
  CallMemory memory;
  std::pmr::vector<double> ones(count, 1.0, &memory), twos(count + 1, 2.0, &memory);
  for (const double value : ones) ASSERT_EQ(value, 1.0);
  for (const double value : twos) ASSERT_EQ(value, 2.0);
}

TEST(CallMemory, ARepeatedCallTakesNothingFromTheHeap) {
  call(100000);  // more than there is
  call(100000);  // makes the workspace as large
  const testing::OutOfMemory guard;
  EXPECT_NO_THROW(call(100000));
  EXPECT_NO_THROW(call(7));
}

}  // namespace
}  // namespace tutti::cpu
