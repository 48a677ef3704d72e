// SPDX-License-Identifier: Apache-2.0
// Cached blocks of one device: all of a GPU's memory, and the CPU's blocks that are too large for threads'
// caches.
//
// A block belongs to the stream that it was allocated on and is handed out again on that stream only: there
// the next user's work is ordered after the last one's. Work of other streams is announced by
// record_stream(); the block is then handed out once that work has run.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "device/size_classes.hpp"
#include "device/statistics.hpp"

namespace tutti::memory {

class BlockPool;

// The host's record of a piece of memory; lives as long as the memory is held from the system.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;  // rounded
  BlockPool* pool = nullptr;
  tutti_stream stream = nullptr;
  Block* next = nullptr;                    // in a free list
  std::vector<tutti_stream> other_streams;  // that have used it since it was handed out
  std::vector<tutti_event> pending;         // must be done before it is handed out again
};

class BlockPool {
 public:
  // `device_text` names the device in messages. `release_others` gives back what other caches hold of the
  // same memory (may be null): called when the system has none left.
  BlockPool(const tutti_backend& backend, int device, std::string device_text, Statistics& statistics,
            void (*release_others)() = nullptr);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  // Throws MemoryError, with the caches emptied, if there is no memory.
  Block* allocate(std::size_t bytes, tutti_stream stream);
  void release(Block* block) noexcept;
  // Work of `stream` uses the block that has been enqueued before the block is released.
  void record_stream(Block* block, tutti_stream stream);
  // The stream is about to be destroyed, all its work done: its cached blocks may be handed out on any
  // stream.
  void forget_stream(tutti_stream stream) noexcept;
  // Gives all free blocks back to the system; waits for streams that may still use them.
  void release_cached() noexcept;

  // Memory straight from the system. Throws MemoryError.
  void* system_allocate(std::size_t bytes);
  void system_release(void* data, std::size_t bytes) noexcept;

 private:
  using Bins = std::array<Block*, kBins>;
  struct StreamBins {
    tutti_stream stream;
    Bins bins{};
  };

  StreamBins& bins_of(tutti_stream stream);
  static Block* take_best_fit(Bins& bins, std::size_t bytes);
  void put(Block* block) noexcept;
  void collect_pending(bool wait) noexcept;
  bool finished(Block* block, bool wait) noexcept;
  void mark_other_streams(Block* block) noexcept;
  [[noreturn]] void fail_out_of_memory(std::size_t bytes) const;

  const tutti_backend& backend_;
  const int device_;
  const std::string device_text_;
  Statistics& statistics_;
  void (*const release_others_)();
  std::mutex mutex_;
  std::vector<std::unique_ptr<StreamBins>> streams_;  // few: searched from the front
  Bins idle_{};                                       // of streams that are gone
  Block* pending_ = nullptr;                          // released, but other streams may still use them
};

}  // namespace tutti::memory
