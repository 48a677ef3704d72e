// SPDX-License-Identifier: Apache-2.0
// The CPU's table: no entry is missing, and it says what it is.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "backend/backend.h"
#include "kernels/functors/list.hpp"

namespace tutti {
namespace {

TEST(CpuTable, EveryEntryIsFilled) {
  const tutti_backend& table = *tutti_cpu_backend();
  EXPECT_EQ(table.version, TUTTI_BACKEND_VERSION);
  EXPECT_EQ(table.struct_size, static_cast<std::int32_t>(sizeof(tutti_backend)));
  EXPECT_STREQ(table.name, "cpu");
  // The three groups hold nothing but pointers and one count.
  const auto all_filled = [](const auto& group) {
    constexpr std::size_t kWords = sizeof group / sizeof(void*);
    std::uintptr_t words[kWords];
    std::memcpy(words, &group, sizeof group);
    for (const std::uintptr_t word : words) {
      if (word == 0) return false;
    }
    return true;
  };
  EXPECT_TRUE(all_filled(table.memory));
  EXPECT_TRUE(all_filled(table.streams));
  EXPECT_TRUE(all_filled(table.kernels));
}

TEST(CpuTable, HasOneEntryForEachFunctor) {
  const tutti_kernel_functions& kernels = tutti_cpu_backend()->kernels;
  ASSERT_EQ(kernels.pointwise_count, functors::Pointwise::kSize);
  for (int i = 0; i < kernels.pointwise_count; ++i) EXPECT_NE(kernels.pointwise[i], nullptr) << i;
}

TEST(CpuTable, PointwiseEntriesStandInTheListsOrder) {
  float a = 6;
  float b = 3;
  float out = 0;
  const tutti_view scalar{nullptr, TUTTI_F32, 0, {}, {}};
  const auto run = [&](int index) {
    tutti_pointwise call{};
    call.inputs = 2;
    call.scalar_input = -1;
    call.out = call.in[0] = call.in[1] = scalar;
    call.out.data = &out;
    call.in[0].data = &a;
    call.in[1].data = &b;
    EXPECT_EQ(tutti_cpu_backend()->kernels.pointwise[index](&call), TUTTI_OK);
    return out;
  };
  EXPECT_EQ(run(functors::index_in<functors::Add>(functors::Pointwise{})), 9.0F);
  EXPECT_EQ(run(functors::index_in<functors::Sub>(functors::Pointwise{})), 3.0F);
  EXPECT_EQ(run(functors::index_in<functors::Div>(functors::Pointwise{})), 2.0F);
  EXPECT_EQ(run(functors::index_in<functors::ReluGrad>(functors::Pointwise{})), 6.0F);
}

}  // namespace
}  // namespace tutti
