// SPDX-License-Identifier: Apache-2.0
#include "tensor/storage.hpp"

#include <new>
#include <utility>

#include "backend/backend.h"
#include "core/small_pool.hpp"
#include "device/allocator.hpp"
#include "tensor/raw.hpp"

namespace tutti {

namespace detail {

void (*destroy_autograd)(autograd::Meta* meta) noexcept = nullptr;

namespace {

void release_to_allocator(Storage& storage) {
  memory::release(storage.device, storage.data, storage.bytes,
                  static_cast<memory::Block*>(storage.release_context));
}

void release_to_owner(Storage& storage) {
  const std::unique_ptr<std::function<void()>> release(
      static_cast<std::function<void()>*>(storage.release_context));
  (*release)();
}

[[gnu::cold, gnu::noinline]] void destroy_packed(Storage& storage) noexcept {
  tutti_packed_slot& slot = *storage.packed;
  if (slot.handle != nullptr) slot.destroy(slot.handle);
  small_release(storage.packed, sizeof(tutti_packed_slot));
}

// Storage and TensorImpl have trivial parts only: their memory is all there is to give back.
static_assert(std::is_trivially_destructible_v<Storage> && std::is_trivially_destructible_v<TensorImpl>);

Storage* new_storage(Device device, void* data, std::size_t bytes) {
  auto* storage = ::new (small_allocate(sizeof(Storage))) Storage;
  storage->device = device;
  storage->data = data;
  storage->bytes = bytes;
  return storage;
}

}  // namespace

Storage* allocate_storage(Device device, std::size_t bytes) {
  Storage* storage = new_storage(device, nullptr, bytes);  // first: nothing can fail behind the allocation
  memory::Allocation allocation;
  try {
    allocation = memory::allocate(device, bytes);
  } catch (...) {
    small_release(storage, sizeof(Storage));
    throw;
  }
  storage->data = allocation.data;
  storage->release = release_to_allocator;
  storage->release_context = allocation.block;
  if (!device.is_cpu()) storage->stream = current_stream(device).handle();
  return storage;
}

Storage* wrap_storage(Device device, void* data, std::size_t bytes, std::function<void()>&& release) {
  Storage* storage = new_storage(device, data, bytes);
  storage->exposed.store(true, std::memory_order_relaxed);
  if (!release) return storage;
  try {
    storage->release_context = new std::function<void()>(std::exchange(release, nullptr));
  } catch (...) {
    small_release(storage, sizeof(Storage));
    throw;
  }
  storage->release = release_to_owner;
  return storage;
}

void destroy(Storage* storage) noexcept {
  if (storage->packed != nullptr) [[unlikely]]
    destroy_packed(*storage);
  if (storage->release != nullptr) storage->release(*storage);
  small_release(storage, sizeof(Storage));
}

namespace {

void drop(Storage* storage) noexcept {
  // A sole owner needs no atomic write: nobody can copy a handle that only we hold.
  if (storage->references.load(std::memory_order_acquire) == 1 ||
      storage->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    destroy(storage);
  }
}

}  // namespace

void destroy(TensorImpl* impl) noexcept {
  if (impl->autograd != nullptr) destroy_autograd(impl->autograd);
  Storage* storage = impl->storage;
  small_release(impl, sizeof(TensorImpl));
  drop(storage);
}

std::int64_t checked_numel(const Dims& sizes, const char* op) {
  std::int64_t numel = 1;
  bool overflow = false;
  for (const std::int64_t size : sizes) {
    TUTTI_CHECK(size >= 0, ShapeError, op, ": sizes can't be negative, given ", sizes);
    overflow |= __builtin_mul_overflow(numel, size, &numel);
  }
  // A zero after an overflow makes an empty tensor all the same.
  if (overflow) [[unlikely]] {
    for (const std::int64_t size : sizes) {
      if (size == 0) return 0;
    }
    detail::fail<ShapeError>(op, ": the number of elements of shape ", sizes, " exceeds 63 bits");
  }
  return numel;
}

std::size_t checked_bytes(std::int64_t numel, DType dtype, const char* op) {
  TUTTI_CHECK(static_cast<int>(dtype) < kDTypeCount, DTypeError, op, ": ", static_cast<int>(dtype),
              " is no dtype");
  std::int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(numel, static_cast<std::int64_t>(size_of(dtype)), &bytes);
  TUTTI_CHECK(!overflow, ShapeError, op, ": ", numel, " elements of ", dtype, " exceed 63 bits of bytes");
  return static_cast<std::size_t>(bytes);
}

bool is_row_major(const Dims& sizes, const Dims& strides) noexcept {
  std::uint64_t expected = 1;  // unsigned: in an empty tensor it may wrap around
  bool row_major = true;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    row_major &= static_cast<std::uint64_t>(strides[d]) == expected;
    expected *= static_cast<std::uint64_t>(sizes[d]);
  }
  return row_major;
}

Tensor make_tensor(Storage* storage, void* data, DType dtype, const Dims& sizes, const Dims& strides,
                   std::int64_t numel, bool is_contiguous) {
  void* memory = nullptr;
  try {
    memory = small_allocate(sizeof(TensorImpl));
  } catch (...) {
    drop(storage);
    throw;
  }
  auto* impl = ::new (memory) TensorImpl;
  impl->dtype = dtype;
  impl->is_contiguous = is_contiguous;
  impl->storage = storage;
  impl->data = static_cast<std::byte*>(data);
  impl->numel = numel;
  impl->sizes = sizes;
  impl->strides = strides;
  return Tensor::adopt(impl);
}

}  // namespace detail

namespace raw {

tutti_packed_slot* packed_slot(const Tensor& tensor) {
  const std::atomic_ref<tutti_packed_slot*> place(tensor.impl()->storage->packed);
  tutti_packed_slot* slot = place.load(std::memory_order_acquire);
  if (slot != nullptr) return slot;
  slot = ::new (small_allocate(sizeof(tutti_packed_slot))) tutti_packed_slot{};
  tutti_packed_slot* other = nullptr;
  if (place.compare_exchange_strong(other, slot, std::memory_order_acq_rel)) return slot;
  small_release(slot, sizeof(tutti_packed_slot));
  return other;
}

void record_stream(const Tensor& tensor, const Stream& stream) {
  const detail::Storage& storage = *tensor.impl()->storage;
  if (storage.release == detail::release_to_allocator) {
    memory::record_stream(static_cast<memory::Block*>(storage.release_context), stream);
  }
}

}  // namespace raw

}  // namespace tutti
