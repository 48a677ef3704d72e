// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams and events. On the CPU a stream runs its work inline, at once: every event is done when it is
/// recorded.
#pragma once

#include <memory>

#include "tutti/core/export.hpp"
#include "tutti/device/device.hpp"

struct tutti_stream_handle;
struct tutti_event_handle;

namespace tutti {

namespace detail {
struct StreamAccess;
}

/// Among streams of one device, work of a kHigh one is started first. The CPU ignores it.
enum class StreamPriority { kNormal, kHigh };

/// An ordered queue of work on one device. A cheap handle; the default-constructed one is the CPU's default
/// stream. Handles may be used from several threads; the order of their work is then the order of the calls.
class TUTTI_API Stream {
 public:
  /// The CPU's default stream.
  Stream() noexcept = default;
  /// The device's default stream; it lives as long as the process. Throws DeviceError if there is no such
  /// device.
  static Stream default_of(Device device);
  /// A new stream; it is destroyed with its last handle, after its work. Throws DeviceError if there is no
  /// such device.
  static Stream create(Device device, StreamPriority priority = StreamPriority::kNormal);

  /// Where its work runs.
  Device device() const noexcept { return device_; }
  /// What the backend knows it by; null for the default stream of a type's first device.
  tutti_stream_handle* handle() const noexcept { return handle_; }
  /// Blocks the host until all work enqueued so far has run. Throws DeviceError if that work failed.
  void synchronize() const;
  /// True if all work enqueued so far has run; does not block. Throws DeviceError if that work failed.
  bool query() const;
  /// True for handles of one stream.
  friend bool operator==(const Stream& a, const Stream& b) noexcept {
    return a.device_ == b.device_ && a.handle_ == b.handle_;
  }

 private:
  friend struct detail::StreamAccess;

  Device device_;
  tutti_stream_handle* handle_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A point in a stream's work. A cheap handle; copies share the point. An event that was never recorded is
/// done.
class TUTTI_API Event {
 public:
  /// An event for streams of `device`; with `timing`, elapsed_ms() may be asked. Throws DeviceError if there
  /// is no such device.
  explicit Event(Device device = {}, bool timing = false);
  /// Marks the work enqueued on `stream` so far; recording again moves the mark. Throws DeviceError for a
  /// stream of another device.
  void record(const Stream& stream);
  /// Makes later work of `stream` wait for the mark. The host blocks only where the two belong to different
  /// backends (a CPU stream waits for a CUDA event).
  void wait(const Stream& stream) const;
  /// Blocks the host until the mark is reached.
  void synchronize() const;
  /// True if the mark is reached; does not block.
  bool query() const;
  /// Milliseconds from this mark to `end`'s; both must be reached and made with timing. Throws DeviceError
  /// otherwise.
  float elapsed_ms(const Event& end) const;

 private:
  Device device_;
  std::shared_ptr<tutti_event_handle> handle_;
};

/// The calling thread's current stream on a device: kernels go there, memory is allocated for it. The
/// reference is valid until the thread changes its current stream. Throws DeviceError if there is no such
/// device.
TUTTI_API const Stream& current_stream(Device device);

/// Makes a stream the calling thread's current one on its device, for a scope. Guards nest; each is destroyed
/// on the thread that made it.
class TUTTI_API StreamGuard {
 public:
  /// Makes `stream` current and keeps what was current before.
  explicit StreamGuard(const Stream& stream);
  /// Restores what was current before.
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream previous_;
};

}  // namespace tutti
