// SPDX-License-Identifier: Apache-2.0
#include "tutti/device/stream.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using testing::error_of;

TEST(Stream, DefaultConstructedIsTheCpusDefault) {
  EXPECT_EQ(Stream(), Stream::default_of({}));
  EXPECT_EQ(current_stream({}), Stream());
}

TEST(Stream, CreatedOnesDiffer) {
  const Stream a = Stream::create({});
  const Stream b = Stream::create({}, StreamPriority::kHigh);
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(a == Stream());
  const Stream copy = a;
  EXPECT_EQ(copy, a);
}

TEST(Stream, CpuWorkIsDoneAtOnce) {
  const Stream stream = Stream::create({});
  Event event;
  event.record(stream);
  EXPECT_TRUE(stream.query());
  EXPECT_TRUE(event.query());
  event.wait(Stream());
  event.synchronize();
  stream.synchronize();
}

TEST(Stream, TimeBetweenEventsIsMeasured) {
  Event begin({}, true);
  Event end({}, true);
  begin.record({});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  end.record({});
  EXPECT_GE(begin.elapsed_ms(end), 4.9F);
  EXPECT_LE(end.elapsed_ms(begin), 0.0F);
}

TEST(StreamGuard, MakesCurrentForItsScopeAndNests) {
  const Stream a = Stream::create({});
  const Stream b = Stream::create({});
  {
    const StreamGuard outer(a);
    EXPECT_EQ(current_stream({}), a);
    {
      const StreamGuard inner(b);
      EXPECT_EQ(current_stream({}), b);
    }
    EXPECT_EQ(current_stream({}), a);
  }
  EXPECT_EQ(current_stream({}), Stream());
}

TEST(StreamGuard, ConcernsItsThreadOnly) {
  const StreamGuard guard(Stream::create({}));
  std::thread([] {
    EXPECT_EQ(current_stream({}), Stream());
    const StreamGuard other(Stream::create({}));
    EXPECT_FALSE(current_stream({}) == Stream());
  }).join();
}

TEST(StreamGuard, RestoresAfterAnException) {
  try {
    const StreamGuard guard(Stream::create({}));
    throw Error("any");
  } catch (const Error&) {
  }
  EXPECT_EQ(current_stream({}), Stream());
}

TEST(Stream, OfAMissingDeviceIsAnError) {
  const std::string why = "no device cuda:0: " + unavailable_reason(DeviceType::kCuda);
  EXPECT_EQ(error_of<DeviceError>([] { Stream::create("cuda:0"); }), why);
  EXPECT_EQ(error_of<DeviceError>([] { Stream::default_of("cuda:0"); }), why);
  EXPECT_EQ(error_of<DeviceError>([] { current_stream("cuda:0"); }), why);
  EXPECT_EQ(error_of<DeviceError>([] { Event("cuda:0"); }), why);
}

}  // namespace
}  // namespace tutti
