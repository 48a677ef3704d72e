// SPDX-License-Identifier: Apache-2.0
/// \file
/// Devices: "cpu", "cuda:0".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/core/export.hpp"

namespace tutti {

/// Kinds of devices. The numeric values are part of the backend's C interface.
enum class DeviceType : std::uint8_t { kCpu, kCuda };
/// Number of device types.
inline constexpr int kDeviceTypeCount = 2;

/// A place where tensors live and kernels run.
class Device {
 public:
  constexpr Device() noexcept = default;  ///< The CPU.
  /// The `index`-th device of a type. DeviceError if there can be none of that index; whether the machine has it is checked on
  /// first use.
  constexpr Device(DeviceType type, int index = 0) : type_(type), index_(static_cast<std::int16_t>(index)) {
    const int last = type == DeviceType::kCpu ? 0 : type == DeviceType::kCuda ? kLastIndex : -1;
    if (index < 0 || index > last) [[unlikely]]
      throw_impossible(type, index);
  }
  /// "cpu", "cuda" (device 0) or "cuda:N". Throws DeviceError for any other text.
  TUTTI_API Device(std::string_view text);  // NOLINT: implicit, so that to("cuda:1") reads well
  Device(const char* text) : Device(std::string_view(text)) {}  ///< The same. NOLINT: implicit

  constexpr DeviceType type() const noexcept { return type_; }  ///< What kind of device it is.
  constexpr int index() const noexcept { return index_; }       ///< Which of its type; 0 for the CPU.
  constexpr bool is_cpu() const noexcept { return type_ == DeviceType::kCpu; }  ///< True for the CPU.
  constexpr bool is_cuda() const noexcept {
    return type_ == DeviceType::kCuda;
  }  ///< True for any CUDA device.
  /// True for one type and index.
  friend constexpr bool operator==(Device, Device) noexcept = default;

 private:
  static constexpr int kLastIndex = 63;
  [[noreturn]] TUTTI_API static void throw_impossible(DeviceType type, int index);

  DeviceType type_ = DeviceType::kCpu;
  std::int16_t index_ = 0;
};

/// "cpu" or "cuda:N".
TUTTI_API std::string to_text(Device device);

/// Number of usable devices of a type: 1 for the CPU; for CUDA 0 where there is no plugin, driver or device
/// (never throws).
TUTTI_API int device_count(DeviceType type) noexcept;
/// True if at least one device of the type can be used.
TUTTI_API bool is_available(DeviceType type) noexcept;
/// Why is_available(type) is false ("libtutti_cuda.so was not found in ..."); empty if it is true.
TUTTI_API std::string unavailable_reason(DeviceType type);
/// Blocks the host until everything that was enqueued on the device has run. Throws DeviceError if that work
/// failed or there is no such device.
TUTTI_API void synchronize(Device device);

}  // namespace tutti
