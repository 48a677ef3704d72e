// SPDX-License-Identifier: Apache-2.0
#include "tutti/device/stream.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "device/allocator.hpp"
#include "device/devices.hpp"
#include "tutti/core/error.hpp"

namespace tutti {

namespace {

constexpr std::size_t kPlaces = 1 + kMaxDevices;  // the CPU, then CUDA's devices
constexpr std::size_t place_of(Device device) {
  return device.is_cpu() ? 0 : 1 + static_cast<std::size_t>(device.index());
}

// The default streams. Never destroyed: static destructors may enqueue work.
constinit std::array<std::atomic<const Stream*>, kPlaces> default_streams{};
constinit std::mutex default_streams_mutex;

// A thread's current streams where they are not the default ones.
constinit thread_local std::array<Stream*, kPlaces> current{};
struct CurrentOwner {
  ~CurrentOwner() {
    for (Stream*& stream : current) delete std::exchange(stream, nullptr);
  }
};

Stream& own_current(std::size_t place, Device device) {
  thread_local const CurrentOwner owner;
  if (current[place] == nullptr) current[place] = new Stream(Stream::default_of(device));
  return *current[place];
}

const tutti_backend& checked_backend(Device device) {
  check_device(device);
  return backend_of(device);
}

}  // namespace

namespace detail {

struct StreamAccess {
  static Stream make(Device device, tutti_stream_handle* handle, std::shared_ptr<void> owner) {
    Stream stream;
    stream.device_ = device;
    stream.handle_ = handle;
    stream.owner_ = std::move(owner);
    return stream;
  }
};

}  // namespace detail

namespace {

// The null handle is the default stream of device 0. A handle must tell a kernel its device, so that the
// other devices' default streams are streams of their own.
const Stream& create_default(Device device) {
  const tutti_backend& backend = checked_backend(device);
  const std::scoped_lock lock(default_streams_mutex);
  auto& slot = default_streams[place_of(device)];
  if (const Stream* stream = slot.load(std::memory_order_relaxed)) return *stream;
  tutti_stream handle = nullptr;
  if (device.index() != 0) {
    backend::check(backend, backend.streams.create(device.index(), 0, &handle), "creating a default stream");
  }
  const auto* stream = new Stream(detail::StreamAccess::make(device, handle, nullptr));
  slot.store(stream, std::memory_order_release);
  return *stream;
}

const Stream& default_stream(Device device) {
  const Stream* stream = default_streams[place_of(device)].load(std::memory_order_acquire);
  return stream != nullptr ? *stream : create_default(device);
}

}  // namespace

Stream Stream::default_of(Device device) { return default_stream(device); }

Stream Stream::create(Device device, StreamPriority priority) {
  const tutti_backend& backend = checked_backend(device);
  tutti_stream handle = nullptr;
  const int32_t wanted = priority == StreamPriority::kHigh ? 1 : 0;
  backend::check(backend, backend.streams.create(device.index(), wanted, &handle), "Stream::create");
  // The memory that was freed on this stream may be handed out on others once its work is done.
  std::shared_ptr<void> owner(handle, [&backend, device](void* stream) {
    auto* dying = static_cast<tutti_stream>(stream);
    (void)backend.streams.synchronize(dying);
    memory::forget_stream(device, dying);
    (void)backend.streams.destroy(dying);
  });
  return detail::StreamAccess::make(device, handle, std::move(owner));
}

void Stream::synchronize() const {
  const tutti_backend& backend = backend_of(device_);
  backend::check(backend, backend.streams.synchronize(handle_), "Stream::synchronize");
}

bool Stream::query() const {
  const tutti_backend& backend = backend_of(device_);
  int32_t done = 0;
  backend::check(backend, backend.streams.query(handle_, &done), "Stream::query");
  return done != 0;
}

Event::Event(Device device, bool timing) : device_(device) {
  const tutti_backend& backend = checked_backend(device);
  tutti_event handle = nullptr;
  backend::check(backend, backend.streams.event_create(device.index(), timing ? 1 : 0, &handle),
                 "creating an Event");
  handle_ = std::shared_ptr<tutti_event_handle>(
      handle, [&backend](tutti_event event) { (void)backend.streams.event_destroy(event); });
}

void Event::record(const Stream& stream) {
  TUTTI_CHECK(stream.device() == device_, DeviceError, "Event::record: the event is on ", device_,
              ", the stream on ", stream.device());
  const tutti_backend& backend = backend_of(device_);
  backend::check(backend, backend.streams.event_record(handle_.get(), stream.handle()), "Event::record");
}

void Event::wait(const Stream& stream) const {
  if (stream.device().type() != device_.type()) {
    // No queue of one backend can wait for another's: the host does. A CPU stream is the host.
    synchronize();
    return;
  }
  const tutti_backend& backend = backend_of(device_);
  backend::check(backend, backend.streams.wait_event(stream.handle(), handle_.get()), "Event::wait");
}

void Event::synchronize() const {
  const tutti_backend& backend = backend_of(device_);
  backend::check(backend, backend.streams.event_synchronize(handle_.get()), "Event::synchronize");
}

bool Event::query() const {
  const tutti_backend& backend = backend_of(device_);
  int32_t done = 0;
  backend::check(backend, backend.streams.event_query(handle_.get(), &done), "Event::query");
  return done != 0;
}

float Event::elapsed_ms(const Event& end) const {
  TUTTI_CHECK(end.device_ == device_, DeviceError, "Event::elapsed_ms: one event is on ", device_,
              ", the other on ", end.device_);
  const tutti_backend& backend = backend_of(device_);
  float milliseconds = 0;
  backend::check(backend, backend.streams.event_elapsed(handle_.get(), end.handle_.get(), &milliseconds),
                 "Event::elapsed_ms");
  return milliseconds;
}

const Stream& current_stream(Device device) {
  const Stream* stream = current[place_of(device)];
  return stream != nullptr ? *stream : default_stream(device);
}

StreamGuard::StreamGuard(const Stream& stream) {
  Stream& slot = own_current(place_of(stream.device()), stream.device());
  previous_ = std::exchange(slot, stream);
}

StreamGuard::~StreamGuard() {
  if (Stream* slot = current[place_of(previous_.device())]) *slot = std::move(previous_);
}

}  // namespace tutti
