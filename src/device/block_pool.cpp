// SPDX-License-Identifier: Apache-2.0
#include "device/block_pool.hpp"

#include <algorithm>
#include <utility>

#include "backend/registry.hpp"
#include "tutti/core/error.hpp"

namespace tutti::memory {

BlockPool::BlockPool(const tutti_backend& backend, int device, std::string device_text,
                     Statistics& statistics, void (*release_others)())
    : backend_(backend),
      device_(device),
      device_text_(std::move(device_text)),
      statistics_(statistics),
      release_others_(release_others) {}

BlockPool::~BlockPool() { release_cached(); }

BlockPool::StreamBins& BlockPool::bins_of(tutti_stream stream) {
  for (const auto& bins : streams_) {
    if (bins->stream == stream) return *bins;
  }
  streams_.push_back(std::make_unique<StreamBins>(StreamBins{.stream = stream}));
  return *streams_.back();
}

// The smallest block of the request's bin that holds it, else of the next bin: at most a quarter too large.
Block* BlockPool::take_best_fit(Bins& bins, std::size_t bytes) {
  const int first = bin_of(bytes);
  for (int bin = first; bin < std::min(first + 2, kBins); ++bin) {
    Block** best = nullptr;
    for (Block** link = &bins[static_cast<std::size_t>(bin)]; *link != nullptr; link = &(*link)->next) {
      if ((*link)->bytes < bytes || (best != nullptr && (*link)->bytes >= (*best)->bytes)) continue;
      best = link;
      if ((*link)->bytes == bytes) break;
    }
    if (best != nullptr) {
      Block* block = *best;
      *best = block->next;
      return block;
    }
  }
  return nullptr;
}

Block* BlockPool::allocate(std::size_t bytes, tutti_stream stream) {
  if (bytes > kGreatestRequest) fail_out_of_memory(bytes);
  const std::size_t rounded = rounded_size(bytes);
  Block* block = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (pending_ != nullptr) collect_pending(false);
    block = take_best_fit(bins_of(stream).bins, rounded);
    if (block == nullptr && (block = take_best_fit(idle_, rounded)) != nullptr) block->stream = stream;
  }
  if (block == nullptr) {
    auto fresh = std::make_unique<Block>();
    fresh->data = system_allocate(rounded);
    fresh->bytes = rounded;
    fresh->pool = this;
    fresh->stream = stream;
    block = fresh.release();
  }
  statistics_.requests.fetch_add(1, std::memory_order_relaxed);
  statistics_.take(block->bytes);
  return block;
}

void BlockPool::put(Block* block) noexcept {
  Bins* home = &idle_;
  for (const auto& stream : streams_) {
    if (stream->stream == block->stream) home = &stream->bins;
  }
  Block*& head = (*home)[static_cast<std::size_t>(bin_of(block->bytes))];
  block->next = head;
  head = block;
}

void BlockPool::release(Block* block) noexcept {
  statistics_.give_back(block->bytes);
  if (!block->other_streams.empty()) mark_other_streams(block);
  const std::scoped_lock lock(mutex_);
  if (block->pending.empty()) {
    put(block);
  } else {
    block->next = pending_;
    pending_ = block;
  }
}

void BlockPool::record_stream(Block* block, tutti_stream stream) {
  if (stream == block->stream) return;
  const std::scoped_lock lock(mutex_);
  auto& streams = block->other_streams;
  if (std::find(streams.begin(), streams.end(), stream) != streams.end()) return;
  block->pending.reserve(streams.size() + 1);  // so that release() needs no memory
  streams.push_back(stream);
}

// Leaves an event behind the work of each other stream. Where that fails the device is made idle instead; if
// it can't even do that it is lost, and the next use reports it.
void BlockPool::mark_other_streams(Block* block) noexcept {
  for (const tutti_stream stream : block->other_streams) {
    tutti_event event = nullptr;
    if (backend_.streams.event_create(device_, 0, &event) != TUTTI_OK) {
      (void)backend_.streams.device_synchronize(device_);
      continue;
    }
    if (backend_.streams.event_record(event, stream) != TUTTI_OK) {
      (void)backend_.streams.device_synchronize(device_);
      (void)backend_.streams.event_destroy(event);
      continue;
    }
    block->pending.push_back(event);
  }
  block->other_streams.clear();
}

bool BlockPool::finished(Block* block, bool wait) noexcept {
  for (const tutti_event event : block->pending) {
    int32_t done = 0;
    const tutti_status status =
        wait ? backend_.streams.event_synchronize(event) : backend_.streams.event_query(event, &done);
    if (status != TUTTI_OK || (!wait && done == 0)) return false;
  }
  for (const tutti_event event : block->pending) (void)backend_.streams.event_destroy(event);
  block->pending.clear();
  return true;
}

void BlockPool::collect_pending(bool wait) noexcept {
  for (Block** link = &pending_; *link != nullptr;) {
    Block* block = *link;
    if (!finished(block, wait)) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    put(block);
  }
}

void BlockPool::forget_stream(tutti_stream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const auto& bins) { return bins->stream == stream; });
  if (found == streams_.end()) return;
  const std::unique_ptr<StreamBins> gone = std::move(*found);
  streams_.erase(found);
  for (Block* block : gone->bins) {
    while (block != nullptr) put(std::exchange(block, block->next));
  }
}

void BlockPool::release_cached() noexcept {
  Block* released = nullptr;
  const auto take_all = [&](Bins& bins) {
    for (Block*& head : bins) {
      while (head != nullptr) {
        Block* block = std::exchange(head, head->next);
        block->next = std::exchange(released, block);
      }
    }
  };
  {
    const std::scoped_lock lock(mutex_);
    collect_pending(true);
    for (const auto& stream : streams_) take_all(stream->bins);
    take_all(idle_);
  }
  while (released != nullptr) {
    const std::unique_ptr<Block> block(released);
    released = block->next;
    system_release(block->data, block->bytes);
  }
}

void* BlockPool::system_allocate(std::size_t bytes) {
  void* data = nullptr;
  tutti_status status = backend_.memory.allocate(device_, bytes, &data);
  if (status == TUTTI_OUT_OF_MEMORY) {
    if (release_others_ != nullptr) release_others_();
    release_cached();
    status = backend_.memory.allocate(device_, bytes, &data);
  }
  if (status == TUTTI_OUT_OF_MEMORY) fail_out_of_memory(bytes);
  backend::check(backend_, status, "allocating memory");
  statistics_.reserve(bytes);
  return data;
}

void BlockPool::system_release(void* data, std::size_t bytes) noexcept {
  (void)backend_.memory.release(device_, data, bytes);  // a device that is lost has lost its memory too
  statistics_.unreserve(bytes);
}

void BlockPool::fail_out_of_memory(std::size_t bytes) const {
  const std::int64_t in_use = statistics_.allocated.load(std::memory_order_relaxed);
  const std::int64_t cached = statistics_.reserved.load(std::memory_order_relaxed) - in_use;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  std::string system;
  if (backend_.memory.info(device_, &free_bytes, &total_bytes) == TUTTI_OK) {
    system = concat("; the device has ", free_bytes, " of ", total_bytes, " bytes free");
  }
  throw MemoryError(concat("out of memory on ", device_text_, ": wanted ", bytes, " bytes, ", in_use,
                           " bytes are in use by tensors and ", cached, " bytes cached", system));
}

}  // namespace tutti::memory
