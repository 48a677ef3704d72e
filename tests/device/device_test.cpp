// SPDX-License-Identifier: Apache-2.0
#include "tutti/device/device.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/device/memory.hpp"

namespace tutti {
namespace {

// What is said of a missing device is the same on machines that have one.
class NoPlugin : public ::testing::Environment {
 public:
  void SetUp() override { setenv("TUTTI_CUDA_PLUGIN", "/nowhere/libtutti_cuda.so", 1); }
};
[[maybe_unused]] ::testing::Environment* const kNoPlugin = ::testing::AddGlobalTestEnvironment(new NoPlugin);

using testing::error_of;

TEST(Device, TextAndDeviceAreInverse) {
  EXPECT_EQ(Device("cpu"), Device());
  EXPECT_EQ(Device("cuda"), Device(DeviceType::kCuda, 0));
  EXPECT_EQ(Device("cuda:13"), Device(DeviceType::kCuda, 13));
  for (const char* text : {"cpu", "cuda:0", "cuda:63"}) EXPECT_EQ(to_text(Device(text)), text);
}

TEST(Device, OtherTextIsAnErrorThatQuotesIt) {
  for (const char* text : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:64",
                           "cuda:99999", "cuda1", "cuda: 1"}) {
    try {
      Device device(text);
      FAIL() << text << " is taken";
    } catch (const DeviceError& error) {
      EXPECT_TRUE(tutti::testing::contains(error.what(), "given \"" + std::string(text) + "\""));
    }
  }
}

TEST(Device, TextInAMessageIsNoDevice) {
  char text[] = "rank 1";
  char* const changeable = text;
  EXPECT_EQ(concat(changeable, " on ", Device("cuda:1")), "rank 1 on cuda:1");
}

TEST(Device, CpuIsThere) {
  EXPECT_EQ(device_count(DeviceType::kCpu), 1);
  EXPECT_TRUE(is_available(DeviceType::kCpu));
  EXPECT_EQ(unavailable_reason(DeviceType::kCpu), "");
  EXPECT_NO_THROW(synchronize({}));
}

TEST(Device, MissingDeviceIsAnErrorThatSaysWhy) {
  EXPECT_EQ(device_count(DeviceType::kCuda), 0);
  const std::string reason = unavailable_reason(DeviceType::kCuda);
  EXPECT_TRUE(tutti::testing::contains(reason, "libtutti_cuda.so"));
  EXPECT_EQ(error_of<DeviceError>([] { synchronize("cuda:0"); }), "no device cuda:0: " + reason);
  EXPECT_EQ(error_of<DeviceError>([] { memory_stats("cuda:0"); }), "no device cuda:0: " + reason);
}

TEST(Device, IndexThatNoMachineHasIsAnError) {
  EXPECT_EQ(error_of<DeviceError>([] { Device(DeviceType::kCpu, 1); }), "there is no device cpu:1");
  EXPECT_EQ(error_of<DeviceError>([] { Device(DeviceType::kCuda, -1); }), "there is no device cuda:-1");
  EXPECT_EQ(error_of<DeviceError>([] { Device(DeviceType::kCuda, 65536); }), "there is no device cuda:65536");
  EXPECT_EQ(error_of<DeviceError>([] { Device(static_cast<DeviceType>(9)); }),
            "there is no type of devices numbered 9");
  EXPECT_EQ(Device(DeviceType::kCuda, 63), Device("cuda:63"));
}

}  // namespace
}  // namespace tutti
