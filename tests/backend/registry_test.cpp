// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "support/errors.hpp"

namespace tutti::backend {
namespace {

template <class E>
std::string message_of(const tutti_backend& backend, tutti_status status, const char* where = "conv2d") {
  try {
    check(backend, status, where);
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "status " << status << " did not become the exception of its kind";
  return "";
}

void fixed_text(char* buffer, std::size_t size) { std::strncpy(buffer, "the backend's words", size); }
void named_text(char* buffer, std::size_t size) { std::strncpy(buffer, "conv2d: no such window", size); }
void backward_text(char* buffer, std::size_t size) {
  std::strncpy(buffer, "conv2d backward: no such window", size);
}
void no_text(char* buffer, std::size_t) { buffer[0] = '\0'; }

TEST(Registry, CpuIsLinkedIn) {
  const tutti_backend& cpu = get(0);
  EXPECT_EQ(&cpu, tutti_cpu_backend());
  EXPECT_EQ(cpu.version, TUTTI_BACKEND_VERSION);
  EXPECT_EQ(cpu.struct_size, static_cast<int>(sizeof(tutti_backend)));
  EXPECT_STREQ(cpu.name, "cpu");
}

TEST(Registry, MissingCudaPluginIsADeviceErrorWithTheReason) {
  setenv("TUTTI_CUDA_PLUGIN", "/nowhere/plugin.so", 1);
  std::string reason;
  EXPECT_EQ(try_get(1, &reason), nullptr);
  EXPECT_TRUE(tutti::testing::contains(reason, "/nowhere/plugin.so"));
  EXPECT_EQ(try_get(1, nullptr), nullptr);
  try {
    get(1);
    FAIL() << "no exception";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.what(), reason);
  }
}

TEST(Registry, UnknownTypeIsNamed) {
  std::string reason;
  EXPECT_EQ(try_get(7, &reason), nullptr);
  EXPECT_EQ(reason, "there is no device type 7");
}

TEST(Registry, StatusBecomesTheExceptionOfItsKind) {
  tutti_backend backend = get(0);
  backend.error_text = fixed_text;
  EXPECT_EQ(message_of<IndexError>(backend, TUTTI_INVALID), "conv2d on cpu: the backend's words");
  EXPECT_EQ(message_of<MemoryError>(backend, TUTTI_OUT_OF_MEMORY), "conv2d on cpu: the backend's words");
  EXPECT_EQ(message_of<DeviceError>(backend, TUTTI_DEVICE_FAILED), "conv2d on cpu: the backend's words");
  // A table that is not the CPU's.
  EXPECT_EQ(message_of<DeviceError>(backend, TUTTI_UNSUPPORTED), "conv2d on cpu: the backend's words");
  EXPECT_TRUE(tutti::testing::contains(message_of<DTypeError>(get(0), TUTTI_UNSUPPORTED), "conv2d on cpu: "));
  EXPECT_NO_THROW(check(backend, TUTTI_OK, "conv2d"));
  EXPECT_EQ(message_of<IndexError>(backend, TUTTI_INVALID, "the backend"),
            "the backend on cpu: the backend's words")
      << "a word that begins with the name is not the name";
  backend.error_text = named_text;
  EXPECT_EQ(message_of<IndexError>(backend, TUTTI_INVALID), "conv2d on cpu: no such window");
  EXPECT_EQ(message_of<IndexError>(backend, TUTTI_INVALID, "linear"),
            "linear on cpu: conv2d: no such window");
  backend.error_text = backward_text;
  EXPECT_EQ(message_of<IndexError>(backend, TUTTI_INVALID), "conv2d on cpu: backward: no such window");
  backend.error_text = no_text;
  EXPECT_EQ(message_of<IndexError>(backend, TUTTI_INVALID), "conv2d on cpu: no further text");
}

}  // namespace
}  // namespace tutti::backend
