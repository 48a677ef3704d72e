// SPDX-License-Identifier: Apache-2.0
// The pool over a device whose memory is limited and whose streams run when the test says so.
#include "device/block_pool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tutti/core/error.hpp"

namespace tutti::memory {
namespace {

// What the handles of this device point to.
struct FakeStream {
  bool idle = true;
  tutti_stream handle() { return reinterpret_cast<tutti_stream>(this); }
};
struct FakeEvent {
  FakeStream* stream = nullptr;
};
FakeEvent* fake(tutti_event event) { return reinterpret_cast<FakeEvent*>(event); }

struct FakeDevice {
  std::size_t limit = std::size_t{1} << 30U;
  std::size_t used = 0;
  int allocations = 0;
  int live_events = 0;
  bool events_fail = false;
  int synchronizations = 0;
};
FakeDevice* device = nullptr;

tutti_status allocate(int32_t, std::size_t bytes, void** out) {
  if (device->used + bytes > device->limit) return TUTTI_OUT_OF_MEMORY;
  device->used += bytes;
  ++device->allocations;
  *out = std::aligned_alloc(64, bytes);
  return TUTTI_OK;
}
tutti_status release(int32_t, void* data, std::size_t bytes) {
  device->used -= bytes;
  std::free(data);
  return TUTTI_OK;
}
tutti_status info(int32_t, std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = device->limit - device->used;
  *total_bytes = device->limit;
  return TUTTI_OK;
}
tutti_status event_create(int32_t, int32_t, tutti_event* out) {
  if (device->events_fail) return TUTTI_DEVICE_FAILED;
  ++device->live_events;
  *out = reinterpret_cast<tutti_event>(new FakeEvent);
  return TUTTI_OK;
}
tutti_status event_destroy(tutti_event event) {
  --device->live_events;
  delete fake(event);
  return TUTTI_OK;
}
tutti_status event_record(tutti_event event, tutti_stream stream) {
  fake(event)->stream = reinterpret_cast<FakeStream*>(stream);
  return TUTTI_OK;
}
tutti_status event_query(tutti_event event, int32_t* done) {
  *done = fake(event)->stream->idle ? 1 : 0;
  return TUTTI_OK;
}
tutti_status event_synchronize(tutti_event event) {
  fake(event)->stream->idle = true;
  ++device->synchronizations;
  return TUTTI_OK;
}
tutti_status device_synchronize(int32_t) {
  ++device->synchronizations;
  return TUTTI_OK;
}
void error_text(char* buffer, std::size_t) { buffer[0] = '\0'; }

tutti_backend fake_backend() {
  tutti_backend backend{};
  backend.name = "fake";
  backend.error_text = error_text;
  backend.memory.allocate = allocate;
  backend.memory.release = release;
  backend.memory.info = info;
  backend.streams.event_create = event_create;
  backend.streams.event_destroy = event_destroy;
  backend.streams.event_record = event_record;
  backend.streams.event_query = event_query;
  backend.streams.event_synchronize = event_synchronize;
  backend.streams.device_synchronize = device_synchronize;
  return backend;
}

class BlockPoolTest : public ::testing::Test {
 protected:
  BlockPoolTest() { device = &memory; }
  ~BlockPoolTest() override {
    pool.release_cached();
    EXPECT_EQ(memory.used, 0U);
    EXPECT_EQ(memory.live_events, 0);
  }

  FakeDevice memory;
  const tutti_backend backend = fake_backend();
  Statistics statistics;
  BlockPool pool{backend, 0, "cuda:0", statistics};
  FakeStream a;
  FakeStream b;
  const tutti_stream stream_a = a.handle();
  const tutti_stream stream_b = b.handle();
};

TEST_F(BlockPoolTest, BlocksStayWithTheirStream) {
  Block* block = pool.allocate(5000, stream_a);
  pool.release(block);
  Block* other = pool.allocate(5000, stream_b);
  EXPECT_NE(other, block);
  Block* again = pool.allocate(5000, stream_a);
  EXPECT_EQ(again, block);
  pool.release(other);
  pool.release(again);
}

TEST_F(BlockPoolTest, BestFitIsTakenAndNothingMuchTooLarge) {
  Block* large = pool.allocate(8 << 20, nullptr);
  Block* fitting = pool.allocate((4 << 20) + (128 << 10), nullptr);
  Block* close = pool.allocate((4 << 20) + (256 << 10), nullptr);
  pool.release(fitting);
  pool.release(close);
  pool.release(large);
  Block* block = pool.allocate((4 << 20) + (100 << 10), nullptr);
  EXPECT_EQ(block, fitting);
  Block* next = pool.allocate((4 << 20) + (100 << 10), nullptr);
  EXPECT_EQ(next, close);
  const int before = memory.allocations;
  Block* fresh = pool.allocate(4 << 20, nullptr);
  EXPECT_EQ(memory.allocations, before + 1) << "the 8 MiB block is left alone";
  pool.release(block);
  pool.release(next);
  pool.release(fresh);
}

TEST_F(BlockPoolTest, BlockWaitsForRecordedStreams) {
  Block* block = pool.allocate(5000, stream_a);
  pool.record_stream(block, stream_b);
  pool.record_stream(block, stream_b);
  pool.record_stream(block, stream_a);  // its own: nothing to wait for
  b.idle = false;
  pool.release(block);
  EXPECT_EQ(memory.live_events, 1);
  Block* other = pool.allocate(5000, stream_a);
  EXPECT_NE(other, block) << "handed out while stream b uses it";
  b.idle = true;
  Block* again = pool.allocate(5000, stream_a);
  EXPECT_EQ(again, block);
  EXPECT_EQ(memory.live_events, 0);
  pool.release(other);
  pool.release(again);
}

TEST_F(BlockPoolTest, FailingEventMakesTheDeviceIdleInstead) {
  Block* block = pool.allocate(5000, stream_a);
  pool.record_stream(block, stream_b);
  memory.events_fail = true;
  pool.release(block);
  EXPECT_EQ(memory.synchronizations, 1);
}

TEST_F(BlockPoolTest, ReleaseCachedWaitsForRecordedStreams) {
  Block* block = pool.allocate(5000, stream_a);
  pool.record_stream(block, stream_b);
  b.idle = false;
  pool.release(block);
  pool.release_cached();
  EXPECT_EQ(memory.synchronizations, 1);
  EXPECT_EQ(memory.used, 0U);
}

TEST_F(BlockPoolTest, BlocksOfAForgottenStreamServeAnyStream) {
  Block* cached = pool.allocate(5000, stream_a);
  Block* in_use = pool.allocate(5000, stream_a);
  pool.release(cached);
  pool.forget_stream(stream_a);
  pool.release(in_use);
  const std::set<Block*> all{cached, in_use};
  Block* first = pool.allocate(5000, stream_b);
  Block* second = pool.allocate(5000, stream_b);
  EXPECT_EQ(all, (std::set<Block*>{first, second}));
  pool.release(first);
  EXPECT_EQ(pool.allocate(5000, stream_b), first) << "it belongs to stream b now";
  pool.release(first);
  pool.release(second);
}

TEST_F(BlockPoolTest, FullDeviceGivesBackItsCacheFirst) {
  memory.limit = 1 << 20;
  Block* block = pool.allocate(700 << 10, nullptr);
  pool.release(block);
  EXPECT_GT(memory.used, 0U);
  Block* other = pool.allocate(600 << 10, stream_a);
  EXPECT_EQ(statistics.system_allocations.load(), 2);
  pool.release(other);
}

TEST_F(BlockPoolTest, FullDeviceIsAMemoryErrorWithFigures) {
  memory.limit = 1 << 20;
  Block* block = pool.allocate(512 << 10, nullptr);
  try {
    pool.allocate(768 << 10, nullptr);
    ADD_FAILURE() << "no exception";
  } catch (const MemoryError& error) {
    EXPECT_STREQ(error.what(),
                 "out of memory on cuda:0: wanted 786432 bytes, 524288 bytes are in use by tensors and 0 "
                 "bytes cached; "
                 "the device has 524288 of 1048576 bytes free");
  }
  pool.release(block);
  pool.release(pool.allocate(768 << 10, nullptr));  // fits again
}

}  // namespace
}  // namespace tutti::memory
