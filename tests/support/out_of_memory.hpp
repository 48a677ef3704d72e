// SPDX-License-Identifier: Apache-2.0
// An operator new that fails on demand. It is the whole program's: include it in one source of a program of its own.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace tutti::testing {

inline thread_local bool out_of_memory = false;

// While it lives, operator new throws std::bad_alloc on this thread.
class OutOfMemory {
 public:
  OutOfMemory() noexcept { out_of_memory = true; }
  ~OutOfMemory() { out_of_memory = false; }
  OutOfMemory(const OutOfMemory&) = delete;
  OutOfMemory& operator=(const OutOfMemory&) = delete;
};

}  // namespace tutti::testing

// None is inlined: GCC takes an inlined half of a pair for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const std::size_t step = static_cast<std::size_t>(alignment);
  void* memory = tutti::testing::out_of_memory
                     ? nullptr
                     : std::aligned_alloc(step, (bytes > 0 ? bytes + step - 1 : step) / step * step);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return operator new(bytes, std::align_val_t(alignof(std::max_align_t)));
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
