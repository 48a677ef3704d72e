// SPDX-License-Identifier: Apache-2.0
// The CPU's memory, streams and events, and its error texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <thread>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti {
namespace {

std::string last_text() {
  char text[512];
  cpu::error_text(text, sizeof text);
  return text;
}

TEST(CpuMemory, PiecesStartOnCacheLinesAndLargeOnesOnHugePages) {
  const tutti_memory_functions& memory = cpu::memory_functions();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{3900000}, std::size_t{9} << 20U}) {
    void* data = nullptr;
    ASSERT_EQ(memory.allocate(0, bytes, &data), TUTTI_OK);
    ASSERT_NE(data, nullptr);
    const std::uintptr_t alignment = bytes > (std::size_t{2} << 20U) ? std::uintptr_t{2} << 20U : 64;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0U);
    std::memset(data, 1, bytes);
    EXPECT_EQ(memory.release(0, data, bytes), TUTTI_OK);
  }
}

TEST(CpuMemory, ARefusalIsOutOfMemoryAndSaysHowMuchWasWanted) {
  void* data = nullptr;
  ASSERT_EQ(cpu::memory_functions().allocate(0, std::size_t{1} << 60U, &data), TUTTI_OUT_OF_MEMORY);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(last_text(), "cpu: wanted 1152921504606846976 bytes of memory, which the system refused");
}

TEST(CpuMemory, TellsFreeAndTotal) {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  ASSERT_EQ(cpu::memory_functions().info(0, &free_bytes, &total), TUTTI_OK);
  EXPECT_GT(free_bytes, 0U);
  EXPECT_LE(free_bytes, total);
}

TEST(CpuStream, IsAlwaysDoneAndEventsMeasureTime) {
  const tutti_stream_functions& streams = cpu::stream_functions();
  tutti_stream stream = nullptr;
  tutti_event begin = nullptr;
  tutti_event end = nullptr;
  ASSERT_EQ(streams.create(0, 0, &stream), TUTTI_OK);
  ASSERT_EQ(streams.event_create(0, 1, &begin), TUTTI_OK);
  ASSERT_EQ(streams.event_create(0, 1, &end), TUTTI_OK);
  float milliseconds = -1;
  EXPECT_EQ(streams.event_elapsed(begin, end, &milliseconds), TUTTI_DEVICE_FAILED)
      << "nothing was recorded yet";
  ASSERT_EQ(streams.event_record(begin, stream), TUTTI_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(streams.event_record(end, stream), TUTTI_OK);
  ASSERT_EQ(streams.event_elapsed(begin, end, &milliseconds), TUTTI_OK);
  EXPECT_GE(milliseconds, 5.0F);
  std::int32_t done = 0;
  EXPECT_EQ(streams.query(stream, &done), TUTTI_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(streams.wait_event(stream, end), TUTTI_OK);
  EXPECT_EQ(streams.event_destroy(begin), TUTTI_OK);
  EXPECT_EQ(streams.event_destroy(end), TUTTI_OK);
  EXPECT_EQ(streams.destroy(stream), TUTTI_OK);
}

TEST(Status, TextsBelongToTheirThreadAndAreCutToTheBuffer) {
  EXPECT_EQ(cpu::fail(TUTTI_INVALID, "index: wanted less than ", 10, ", given ", 12), TUTTI_INVALID);
  std::thread([] { cpu::fail(TUTTI_UNSUPPORTED, "another thread's"); }).join();
  EXPECT_EQ(last_text(), "index: wanted less than 10, given 12");
  char small[6];
  cpu::error_text(small, sizeof small);
  EXPECT_STREQ(small, "index");
}

TEST(Status, ExceptionsBecomeStatuses) {
  EXPECT_EQ(cpu::guarded([] { throw std::bad_alloc(); }), TUTTI_OUT_OF_MEMORY);
  EXPECT_EQ(cpu::guarded([] { throw cpu::KernelError(TUTTI_INVALID, "why"); }), TUTTI_INVALID);
  EXPECT_EQ(last_text(), "why");
  EXPECT_EQ(cpu::guarded([] { throw IndexError("index 3"); }), TUTTI_INVALID);
  EXPECT_EQ(cpu::guarded([] { throw 1; }), TUTTI_DEVICE_FAILED);
  EXPECT_EQ(cpu::guarded([] {}), TUTTI_OK);
}

tutti_view make_view(std::initializer_list<std::int64_t> sizes, std::initializer_list<std::int64_t> strides) {
  tutti_view view{};
  view.dtype = TUTTI_F32;
  view.ndim = static_cast<std::int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), view.sizes);
  std::copy(strides.begin(), strides.end(), view.strides);
  return view;
}

TEST(View, ContiguousViewsOfAnyShapeBecomeOneLoop) {
  const tutti_view a = make_view({2, 1, 3, 4}, {12, 99, 4, 1});
  EXPECT_TRUE(cpu::is_contiguous(a));
  const auto loop = cpu::coalesce<2>({&a, &a});
  EXPECT_EQ(loop.ndim, 1);
  EXPECT_EQ(loop.inner(), 24);
}

TEST(View, ChannelsLastViewsBecomeOneLoopAndBroadcastDimsStay) {
  const tutti_view a = make_view({2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_TRUE(cpu::is_channels_last(a));
  EXPECT_FALSE(cpu::is_contiguous(a));
  EXPECT_EQ((cpu::coalesce<2>({&a, &a})).ndim, 1);
  const tutti_view bias = make_view({2, 3, 4, 5}, {0, 1, 0, 0});
  const auto loop = cpu::coalesce<2>({&a, &bias});
  EXPECT_EQ(loop.ndim, 2);
  EXPECT_EQ(loop.inner(), 3);
  EXPECT_EQ(loop.sizes[0], 40);
}

TEST(View, LogicalOrderIsKeptWhereItMatters) {
  const tutti_view transposed = make_view({3, 5}, {1, 3});
  EXPECT_EQ((cpu::coalesce<1>({&transposed})).ndim, 1);
  const auto loop = cpu::coalesce<1>({&transposed}, cpu::LoopOrder::kLogical);
  EXPECT_EQ(loop.ndim, 2);
  EXPECT_EQ(loop.inner(), 5);
}

TEST(View, DescribesItselfInMessages) {
  EXPECT_EQ(cpu::describe(make_view({2, 3}, {3, 1})), "float32 [2, 3] with strides [3, 1]");
  EXPECT_EQ(cpu::dtype_text(17), "dtype 17");
}

}  // namespace
}  // namespace tutti
