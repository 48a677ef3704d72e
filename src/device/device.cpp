// SPDX-License-Identifier: Apache-2.0
#include "tutti/device/device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>

#include "device/devices.hpp"
#include "tutti/core/error.hpp"

namespace tutti {

namespace {

constexpr std::string_view kTypeNames[kDeviceTypeCount] = {"cpu", "cuda"};

// The count of a backend's devices; `reason` says why it is 0.
int count_devices(const tutti_backend& backend, std::string* reason) {
  int32_t count = 0;
  if (backend.streams.device_count(&count) != TUTTI_OK) {
    char text[512] = "";
    backend.error_text(text, sizeof text);
    if (reason != nullptr) *reason = concat("the ", backend.name, " backend can't count its devices: ", text);
    return 0;
  }
  if (count <= 0 && reason != nullptr) *reason = concat("the ", backend.name, " backend finds no device");
  return std::clamp(count, 0, kMaxDevices);
}

// Counted once: devices do not come and go while a process runs. -1: not yet.
constinit std::array<std::atomic<int>, kDeviceTypeCount> counts{-1, -1};

}  // namespace

Device::Device(std::string_view text) {
  if (text == "cpu") return;
  if (text.substr(0, 4) == "cuda") {
    type_ = DeviceType::kCuda;
    if (text.size() == 4) return;
    const char* end = text.data() + text.size();
    if (text[4] == ':' && text.size() > 5 && text[5] != '-') {
      const auto result = std::from_chars(text.data() + 5, end, index_);
      if (result.ec == std::errc{} && result.ptr == end && index_ < kMaxDevices) return;
    }
  }
  throw DeviceError(concat("a device is \"cpu\", \"cuda\" or \"cuda:N\" with N below ", kMaxDevices,
                           ", given \"", text, "\""));
}

void Device::throw_impossible(DeviceType type, int index) {
  static_assert(kLastIndex == kMaxDevices - 1);
  const auto number = static_cast<std::size_t>(type);
  throw DeviceError(number < kDeviceTypeCount ? concat("there is no device ", kTypeNames[number], ":", index)
                                              : concat("there is no type of devices numbered ", number));
}

std::string to_text(Device device) {
  std::string text(kTypeNames[static_cast<std::size_t>(device.type())]);
  return device.is_cpu() ? text : concat(text, ":", device.index());
}

int device_count(DeviceType type) noexcept {
  auto& known = counts[static_cast<std::size_t>(type)];
  int count = known.load(std::memory_order_relaxed);
  if (count >= 0) return count;
  const tutti_backend* backend = backend::try_get(static_cast<int>(type), nullptr);
  count = backend != nullptr ? count_devices(*backend, nullptr) : 0;
  known.store(count, std::memory_order_relaxed);
  return count;
}

bool is_available(DeviceType type) noexcept { return device_count(type) > 0; }

std::string unavailable_reason(DeviceType type) {
  std::string reason;
  const tutti_backend* backend = backend::try_get(static_cast<int>(type), &reason);
  if (backend != nullptr) count_devices(*backend, &reason);
  return reason;
}

void check_device(Device device) {
  const int count = device_count(device.type());
  if (device.index() >= 0 && device.index() < count) [[likely]]
    return;
  if (count == 0) throw DeviceError(concat("no device ", device, ": ", unavailable_reason(device.type())));
  throw DeviceError(
      concat("no device ", device, ": there ", count == 1 ? "is " : "are ", count, " of this type"));
}

void synchronize(Device device) {
  check_device(device);
  const tutti_backend& backend = backend_of(device);
  backend::check(backend, backend.streams.device_synchronize(device.index()), "synchronize");
}

}  // namespace tutti
