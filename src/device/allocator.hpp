// SPDX-License-Identifier: Apache-2.0
// Memory of tensors. Thread-safe; no request that a cache can serve goes to the system. Works during static
// destruction: what it stands on is never destroyed.
#pragma once

#include <cstddef>

#include "tutti/device/device.hpp"
#include "tutti/device/stream.hpp"

namespace tutti::memory {

struct Block;

struct Allocation {
  void* data;    // 64-byte aligned
  Block* block;  // hand it back with the memory; null for small blocks of the CPU
};

// Memory for use on the calling thread's current stream. Of 0 bytes too it is a block of its own. Throws
// MemoryError.
Allocation allocate(Device device, std::size_t bytes);
// bytes: as asked for.
void release(Device device, void* data, std::size_t bytes, Block* block) noexcept;
// Work enqueued on `stream` uses the memory: after its release it is not handed out before that has run.
// Needed where memory is used on another stream than it was allocated on. Nothing to do on the CPU, whose
// streams run work at once.
void record_stream(Block* block, const Stream& stream);
// Before a stream is destroyed: its work is done, its cached memory goes to the default stream.
void forget_stream(Device device, tutti_stream_handle* stream) noexcept;

}  // namespace tutti::memory
