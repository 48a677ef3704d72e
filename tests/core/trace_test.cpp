// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/trace.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "core/trace_ring.hpp"

namespace tutti::trace {
namespace {

constexpr std::uint64_t kRing = 65536;
constexpr const char* kName = "w";

class Tracing : public ::testing::Test {
 protected:
  void SetUp() override {
    take();
    enable(true);
  }
  void TearDown() override {
    enable(false);
    take();
  }
};

TEST_F(Tracing, RangeRecordsNameArgumentAndTimesOnce) {
  const std::int64_t before = now_ns();
  { const Range range("step", 7); }
  const std::int64_t after = now_ns();
  const auto threads = take();
  ASSERT_EQ(threads.size(), 1U);
  ASSERT_EQ(threads[0].records.size(), 1U);
  const Record& record = threads[0].records[0];
  EXPECT_STREQ(record.name, "step");
  EXPECT_EQ(record.argument, 7);
  EXPECT_LE(before, record.begin_ns);
  EXPECT_LE(record.begin_ns, record.end_ns);
  EXPECT_LE(record.end_ns, after);
  EXPECT_TRUE(take().empty()) << "records are taken once";
}

TEST_F(Tracing, NothingIsRecordedWhileOff) {
  enable(false);
  { const Range range("off"); }
  EXPECT_TRUE(take().empty());
}

TEST_F(Tracing, FullRingKeepsTheNewestAndCountsTheRest) {
  constexpr std::uint64_t kWritten = kRing + 5000;
  for (std::uint64_t i = 0; i < kWritten; ++i) detail::record("fill", 0, static_cast<std::int64_t>(i));
  const auto threads = take();
  ASSERT_EQ(threads.size(), 1U);
  const auto& records = threads[0].records;
  EXPECT_EQ(records.size() + threads[0].dropped, kWritten);
  EXPECT_GE(records.size(), kRing - 1) << "one slot may be under the writer's pen";
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(records[i].argument, static_cast<std::int64_t>(threads[0].dropped + i)) << "oldest first";
  }
}

TEST_F(Tracing, RecordsOfAThreadThatHasEndedAreTakenOnceUnderItsName) {
  std::thread([] {
    set_thread_name("loader 0");
    const Range range("load");
  }).join();
  std::thread([] { const Range range("other"); }).join();
  const auto threads = take();
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_STREQ(threads[0].thread_name, "loader 0");
  EXPECT_STREQ(threads[0].records.at(0).name, "load");
  EXPECT_STREQ(threads[1].thread_name, "thread");
  EXPECT_EQ(threads[1].thread_index, threads[0].thread_index + 1);
  EXPECT_TRUE(take().empty());
}

TEST_F(Tracing, FirstThreadOfTheProcessIsMain) {
  { const Range range("here"); }
  const auto threads = take();
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_STREQ(threads[0].thread_name, "main");
}

// A writer that laps a small ring many times during each take: no record is torn or repeated, and those that are missing
// are counted.
TEST(TraceRing, TakeBesideARunningWriterGivesWholeRecordsInOrder) {
  constexpr std::int64_t kWritten = 20'000'000;
  BasicRing<64> ring(0, "writer");
  std::atomic<bool> done{false};
  std::thread writer([&ring, &done] {
    for (std::int64_t i = 0; i < kWritten; ++i) ring.push({kName, -i, 3 * i, i});
    done = true;
  });
  std::int64_t next = 0;
  std::int64_t wrong = 0;
  for (bool last = false; !last;) {
    last = done;
    const ThreadRecords taken = ring.take();
    next += static_cast<std::int64_t>(taken.dropped);
    for (const Record& record : taken.records) {
      if (record.argument != next || record.begin_ns != -next || record.end_ns != 3 * next) ++wrong;
      ++next;
    }
  }
  writer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(next, kWritten);
}

struct RangeAtThreadEnd {
  ~RangeAtThreadEnd() { const Range range("late"); }
};

TEST_F(Tracing, RangeInALateThreadLocalDestructorIsHarmless) {
  std::thread([] {
    thread_local RangeAtThreadEnd late;  // constructed before the ring, so destroyed after it
    static_cast<void>(&late);
    const Range range("early");
  }).join();
  const auto threads = take();
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].records.size(), 1U);
}

}  // namespace
}  // namespace tutti::trace
