// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams and events. On the CPU a stream runs its work inline, at once: every event is done when it is recorded.
#pragma once

#include <memory>

#include "tutti/core/export.hpp"
#include "tutti/device/device.hpp"

struct tutti_stream_handle;
struct tutti_event_handle;

namespace tutti {

enum class StreamPriority { kNormal, kHigh };

/// An ordered queue of work on one device. A cheap handle; the default-constructed one is the CPU's default stream.
class TUTTI_API Stream {
 public:
  Stream() noexcept = default;
  /// The device's default stream.
  static Stream default_of(Device device) noexcept;
  /// A new stream; it is destroyed with its last handle.
  static Stream create(Device device, StreamPriority priority = StreamPriority::kNormal);

  Device device() const noexcept { return device_; }
  tutti_stream_handle* handle() const noexcept { return handle_; }
  /// Blocks the host until all work enqueued so far has run.
  void synchronize() const;
  /// True if all work enqueued so far has run.
  bool query() const;
  friend bool operator==(const Stream& a, const Stream& b) noexcept {
    return a.device_ == b.device_ && a.handle_ == b.handle_;
  }

 private:
  Device device_;
  tutti_stream_handle* handle_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A point in a stream's work.
class TUTTI_API Event {
 public:
  explicit Event(Device device = {}, bool timing = false);
  /// Marks the work enqueued on `stream` so far.
  void record(const Stream& stream);
  /// Makes later work of `stream` wait for the mark. The host does not block.
  void wait(const Stream& stream) const;
  void synchronize() const;
  bool query() const;
  /// Milliseconds between two recorded timing events.
  float elapsed_ms(const Event& end) const;

 private:
  Device device_;
  std::shared_ptr<tutti_event_handle> handle_;
};

/// The calling thread's current stream on a device: kernels go there.
TUTTI_API const Stream& current_stream(Device device) noexcept;

/// Makes a stream current for a scope.
class TUTTI_API StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream previous_;
};

}  // namespace tutti
