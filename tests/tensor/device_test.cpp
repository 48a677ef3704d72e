// SPDX-License-Identifier: Apache-2.0
// Tensors on the two devices of the tests' plugin: memory, copies and errors that need a second device.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/backend.h"
#include "support/errors.hpp"
#include "tensor/raw.hpp"
#include "tensor/values.hpp"
#include "tutti/device/memory.hpp"

namespace tutti {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::sequence;

class OnDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("TUTTI_CUDA_PLUGIN", TUTTI_TEST_PLUGIN, 1);
    setenv("TUTTI_TEST_BUILD_ID", tutti_cpu_backend()->build_id, 1);
    const std::string count = std::to_string(tutti_cpu_backend()->kernels.pointwise_count);
    setenv("TUTTI_TEST_POINTWISE_COUNT", count.c_str(), 1);
    ASSERT_EQ(unavailable_reason(DeviceType::kCuda), "");
  }

  static Tensor on(Device device, const Tensor& source) {
    Tensor result = empty_strided(source.sizes(), source.strides(), source.dtype(), device);
    raw::copy(result, source);
    return result;
  }
  static Tensor numbered(const Dims& sizes) {
    return raw::view(arange(0.0, static_cast<double>(sizes.product())), sizes);
  }
};

TEST_F(OnDevice, PluginsDevicesAreThere) {
  EXPECT_EQ(device_count(DeviceType::kCuda), 2);
  EXPECT_TRUE(is_available(DeviceType::kCuda));
  EXPECT_EQ(error_of<DeviceError>([] { empty({1}, DType::kFloat32, "cuda:2"); }),
            "no device cuda:2: there are 2 of this type");
}

TEST_F(OnDevice, BytesGoThereAndBack) {
  const Tensor x = numbered({4, 6});
  const Tensor there = on("cuda:0", x);
  EXPECT_EQ(there.device(), Device("cuda:0"));
  EXPECT_EQ(there.to_vector<float>(), sequence<float>(0, 1, 24));
  const Tensor other = on("cuda:1", there);
  EXPECT_EQ(other.to_vector<float>(), sequence<float>(0, 1, 24));
}

TEST_F(OnDevice, ConversionAndBroadcastingHappenOnTheHostsSide) {
  const Tensor there = on("cuda:0", numbered({3, 1}));
  const Tensor out = empty({3, 2}, DType::kInt32);
  raw::copy(out, there);
  EXPECT_EQ(out.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
}

TEST_F(OnDevice, StridedSourcesArePackedFirst) {
  const Tensor x = raw::slice(numbered({4, 6}), 1, 1, 6, 2);
  const Tensor there = empty({4, 3}, DType::kFloat32, "cuda:0");
  raw::copy(there, x);
  EXPECT_EQ(there.to_vector<float>(), x.to_vector<float>());
}

TEST_F(OnDevice, DenseLayoutIsKept) {
  const Tensor x = raw::transpose(numbered({4, 6}), 0, 1);
  const Tensor there = on("cuda:0", x);
  EXPECT_EQ(there.strides(), x.strides());
  EXPECT_EQ(on({}, there).to_vector<float>(), x.to_vector<float>());
}

TEST_F(OnDevice, ItemAndPrintingReadTheDevice) {
  const Tensor there = on("cuda:1", numbered({3}));
  EXPECT_EQ(raw::select(there, 0, 2).item(), 2);
  EXPECT_EQ(there.to_string(), "tensor([0., 1., 2.], device=cuda:1)");
}

TEST_F(OnDevice, MissingKernelNamesOperationAndDevice) {
  EXPECT_EQ(error_of<DeviceError>([] { zeros({3}, DType::kFloat32, "cuda:0"); }),
            "fill on test plugin: the test device has no such kernel");
}

TEST_F(OnDevice, MemoryIsCachedForEachStream) {
  const Tensor on_default = empty({5000}, DType::kFloat32, "cuda:0");
  void* data = on_default.raw_data();
  const Stream stream = Stream::create("cuda:0");
  void* data_on_stream = nullptr;
  {
    const StreamGuard guard(stream);
    const Tensor x = empty({5000}, DType::kFloat32, "cuda:0");
    data_on_stream = x.raw_data();
    EXPECT_EQ(x.impl()->storage->stream, stream.handle());
    raw::record_stream(x, Stream::default_of("cuda:0"));
  }
  EXPECT_NE(data, data_on_stream);
  const StreamGuard guard(stream);
  EXPECT_EQ(empty({5000}, DType::kFloat32, "cuda:0").raw_data(), data_on_stream);
}

TEST_F(OnDevice, DefaultStreamsOfDevicesDiffer) {
  const Stream second = Stream::default_of("cuda:1");
  EXPECT_NE(second.handle(), nullptr);
  EXPECT_EQ(second, Stream::default_of("cuda:1"));
  EXPECT_FALSE(second == Stream::default_of("cuda:0"));
  Event event("cuda:0");
  EXPECT_TRUE(contains(error_of<DeviceError>([&] { event.record(second); }),
                       "the event is on cuda:0, the stream on cuda:1"));
}

TEST_F(OnDevice, FullDeviceEmptiesItsCacheThenFails) {
  const Device device("cuda:1");
  empty_cache(device);
  { const Tensor x = empty({700 << 10}, DType::kUInt8, device); }
  const Tensor y = empty({500 << 10}, DType::kUInt8, device);  // only without the cached 700 KiB
  EXPECT_TRUE(contains(error_of<MemoryError>([&] { empty({700 << 10}, DType::kUInt8, device); }),
                       "out of memory on cuda:1: wanted 720896 bytes"));
  EXPECT_GE(memory_stats(device).allocated_bytes, 500 << 10);
}

}  // namespace
}  // namespace tutti
