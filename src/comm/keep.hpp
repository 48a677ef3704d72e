// SPDX-License-Identifier: Apache-2.0
// Memory that a failed operation may still read or write: MPI can't take every request back, and a peer that is late may write
// into memory that it shares. It is kept until the process ends, since what is freed would be corrupted later. A group takes
// no operation after one that has failed, so there is little of it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tutti::comm {

void keep_forever(std::shared_ptr<const void> memory) noexcept;

// Moves the value to where nobody destroys it, for clean-up that finds no memory to do better.
template <class T>
void leak(T&& value) noexcept {
  static_assert(!std::is_lvalue_reference_v<T>, "it is moved from");
  alignas(T) std::byte storage[sizeof(T)];
  new (storage) T(std::move(value));
}

}  // namespace tutti::comm
