// SPDX-License-Identifier: Apache-2.0
#include "comm/keep.hpp"

#include <mutex>
#include <vector>

namespace tutti::comm {

using Kept = std::vector<std::shared_ptr<const void>>;

void keep_forever(std::shared_ptr<const void> memory) noexcept {
  static std::mutex mutex;
  // Never destroyed; reachable, so no leak to a sanitizer.
  alignas(Kept) static std::byte storage[sizeof(Kept)];
  static auto* const kKept = new (storage) Kept;
  const std::lock_guard lock(mutex);
  try {
    kKept->push_back(memory);
  } catch (const std::bad_alloc&) {
    leak(std::move(memory));
  }
}

}  // namespace tutti::comm
