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

void* operator new(std::size_t bytes) {
  void* memory = tutti::testing::out_of_memory ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
