// SPDX-License-Identifier: Apache-2.0
// Hooks of one tensor. Any thread may add, remove and run them at the same time: running holds no lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tutti/autograd/hooks.hpp"

namespace tutti::autograd {

template <class Signature>
class HookList final : public detail::HookRegistry {
 public:
  using Hook = std::function<Signature>;

  std::uint64_t add(Hook hook) {
    auto entry = std::make_shared<const Hook>(std::move(hook));
    const std::lock_guard lock(mutex_);
    entries_.push_back({++last_id_, std::move(entry)});
    return last_id_;
  }

  void remove(std::uint64_t id) noexcept override {
    std::shared_ptr<const Hook> removed;  // destroyed after the lock: it may own handles of this list
    const std::lock_guard lock(mutex_);
    const auto entry = first_after(id - 1);
    if (entry == entries_.end() || entry->id != id) return;
    removed = std::move(entry->hook);
    entries_.erase(entry);
  }

  // Calls f(hook) for the hooks that are registered now, in order, leaving out those that are removed meanwhile.
  template <class F>
  void for_each(F&& f) {
    std::uint64_t id = 0;
    std::uint64_t last = 0;
    {
      const std::lock_guard lock(mutex_);
      last = last_id_;
    }
    while (const std::shared_ptr<const Hook> hook = next(id, last)) f(*hook);
  }

  bool empty() {
    const std::lock_guard lock(mutex_);
    return entries_.empty();
  }

 private:
  struct Entry {
    std::uint64_t id;
    std::shared_ptr<const Hook> hook;
  };

  auto first_after(std::uint64_t id) {
    return std::upper_bound(entries_.begin(), entries_.end(), id,
                            [](std::uint64_t value, const Entry& entry) { return value < entry.id; });
  }
  std::shared_ptr<const Hook> next(std::uint64_t& id, std::uint64_t last) {
    const std::lock_guard lock(mutex_);
    const auto entry = first_after(id);
    if (entry == entries_.end() || entry->id > last) return nullptr;
    id = entry->id;
    return entry->hook;
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;  // by id
  std::uint64_t last_id_ = 0;
};

using TensorHooks = HookList<Tensor(const Tensor&)>;
using PostAccumulateHooks = HookList<void(const Tensor&)>;

}  // namespace tutti::autograd
