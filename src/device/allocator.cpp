// SPDX-License-Identifier: Apache-2.0
#include "device/allocator.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "backend/registry.hpp"
#include "device/block_pool.hpp"
#include "device/devices.hpp"
#include "device/small_blocks.hpp"
#include "tutti/core/error.hpp"
#include "tutti/device/memory.hpp"

namespace tutti::memory {

namespace {

void release_small_blocks();

struct CpuMemory {
  Statistics statistics;
  BlockPool pool{backend::get(0), 0, "cpu", statistics, release_small_blocks};
  SmallBlocks small{pool, statistics};
};

struct CudaMemory {
  Statistics statistics;
  BlockPool pool;
  explicit CudaMemory(Device device) : pool(backend::get(1), device.index(), to_text(device), statistics) {}
};

// Both are never destroyed: tensors with static storage duration free their memory late. Constant-initialised
// pointers rather than function-local statics, whose guard costs on every request.
constinit std::atomic<CpuMemory*> cpu_memory_pointer{nullptr};
constinit std::array<std::atomic<CudaMemory*>, kMaxDevices> cuda_memory_pointers{};
constinit std::mutex creation_mutex;

[[gnu::cold, gnu::noinline]] CpuMemory& create_cpu_memory() {
  const std::scoped_lock lock(creation_mutex);
  CpuMemory* memory = cpu_memory_pointer.load(std::memory_order_relaxed);
  if (memory == nullptr) {
    memory = new CpuMemory;
    cpu_memory_pointer.store(memory, std::memory_order_release);
  }
  return *memory;
}

CpuMemory& cpu_memory() {
  CpuMemory* memory = cpu_memory_pointer.load(std::memory_order_acquire);
  return memory != nullptr ? *memory : create_cpu_memory();
}

void release_small_blocks() { cpu_memory().small.release_cached(); }

CudaMemory& cuda_memory(Device device) {
  check_device(device);
  auto& pointer = cuda_memory_pointers[static_cast<std::size_t>(device.index())];
  CudaMemory* memory = pointer.load(std::memory_order_acquire);
  if (memory != nullptr) return *memory;
  const std::scoped_lock lock(creation_mutex);
  memory = pointer.load(std::memory_order_relaxed);
  if (memory == nullptr) {
    memory = new CudaMemory(device);
    pointer.store(memory, std::memory_order_release);
  }
  return *memory;
}

}  // namespace

Allocation allocate(Device device, std::size_t bytes) {
  Block* block = nullptr;
  if (device.is_cpu()) [[likely]] {
    CpuMemory& memory = cpu_memory();
    if (bytes <= kSmallLimit) return {memory.small.allocate(bytes), nullptr};
    memory.small.report();
    block = memory.pool.allocate(bytes, nullptr);
  } else {
    block = cuda_memory(device).pool.allocate(bytes, current_stream(device).handle());
  }
  return {block->data, block};
}

void release(Device, void* data, std::size_t bytes, Block* block) noexcept {
  if (block != nullptr) {
    block->pool->release(block);
  } else {
    cpu_memory_pointer.load(std::memory_order_relaxed)->small.release(data, bytes);
  }
}

void record_stream(Block* block, const Stream& stream) {
  if (block != nullptr && !stream.device().is_cpu()) block->pool->record_stream(block, stream.handle());
}

void forget_stream(Device device, tutti_stream_handle* stream) noexcept {
  if (device.is_cpu()) return;
  CudaMemory* memory =
      cuda_memory_pointers[static_cast<std::size_t>(device.index())].load(std::memory_order_acquire);
  if (memory != nullptr) memory->pool.forget_stream(stream);
}

}  // namespace tutti::memory

namespace tutti {

MemoryStats memory_stats(Device device) {
  if (device.is_cpu()) return memory::cpu_memory().small.figures();
  const memory::Statistics& figures = memory::cuda_memory(device).statistics;
  return {.allocated_bytes = figures.allocated.load(std::memory_order_relaxed),
          .peak_allocated_bytes = figures.peak.load(std::memory_order_relaxed),
          .reserved_bytes = figures.reserved.load(std::memory_order_relaxed),
          .allocations = figures.requests.load(std::memory_order_relaxed),
          .system_allocations = figures.system_allocations.load(std::memory_order_relaxed)};
}

void reset_peak_memory_stats(Device device) {
  if (device.is_cpu()) {
    memory::cpu_memory().small.reset_peak();
    return;
  }
  memory::Statistics& figures = memory::cuda_memory(device).statistics;
  figures.peak.store(figures.allocated.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void empty_cache(Device device) {
  if (device.is_cpu()) {
    memory::cpu_memory().small.release_cached();
    memory::cpu_memory().pool.release_cached();
  } else {
    memory::cuda_memory(device).pool.release_cached();
  }
}

}  // namespace tutti
