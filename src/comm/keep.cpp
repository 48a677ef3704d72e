// SPDX-License-Identifier: Apache-2.0
#include "comm/keep.hpp"

#include <mutex>
#include <vector>

namespace tutti::comm {

void keep_forever(std::shared_ptr<const void> memory) noexcept {
  static std::mutex mutex;
  static auto* const kKept =
      new std::vector<std::shared_ptr<const void>>;  // reachable, so no leak to a sanitizer
  const std::lock_guard lock(mutex);
  kKept->push_back(std::move(memory));
}

}  // namespace tutti::comm
