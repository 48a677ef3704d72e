// SPDX-License-Identifier: Apache-2.0
/// \file
/// A vector whose first elements need no allocation. Not for users: graph nodes hold their edges in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace tutti::autograd {

/// Grows only; elements move when it does. At least the first N elements lie inside the object.
template <class T, std::size_t N>
class SmallVector {
 public:
  SmallVector() noexcept {}  // not `= default`: that can't be, of a member that is a union
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { reset(); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ != nullptr ? heap_ : inline_data(); }
  const T* data() const noexcept { return heap_ != nullptr ? heap_ : inline_data(); }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }

  void reserve(std::size_t count) {
    if (count > capacity_) [[unlikely]]
      grow(count);
  }
  void resize(std::size_t count) {
    reserve(count);
    while (size_ < count) emplace_back();
    while (size_ > count) data()[--size_].~T();
  }
  /// The arguments may be elements of this vector, or refer to them.
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]]
      return emplace_grown(static_cast<Args&&>(args)...);
    T* element = ::new (static_cast<void*>(data() + size_)) T(static_cast<Args&&>(args)...);
    ++size_;
    return *element;
  }
  /// Destroys all elements; keeps the memory.
  void clear() noexcept {
    T* const elements = data();
    for (std::uint32_t i = 0; i < size_; ++i) elements[i].~T();
    size_ = 0;
  }

 private:
  // Loops of our own, not those of <memory>: every user's compiler would instantiate them.
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  struct Memory {
    explicit Memory(std::size_t count) : data(static_cast<T*>(::operator new(count * sizeof(T)))) {}
    ~Memory() { ::operator delete(data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    T* data;
  };
  T* inline_data() noexcept { return inline_; }
  const T* inline_data() const noexcept { return inline_; }
  void move_to(T* memory) noexcept {
    T* const elements = data();
    for (std::uint32_t i = 0; i < size_; ++i)
      ::new (static_cast<void*>(memory + i)) T(static_cast<T&&>(elements[i]));
  }
  void grow(std::size_t count) {
    Memory memory(count);
    move_in(memory, count);
  }
  // The new element comes first: the arguments may lie in what moves.
  template <class... Args>
  T& emplace_grown(Args&&... args) {
    const std::size_t count = 2 * std::size_t{size_};
    Memory memory(count);
    T* element = ::new (static_cast<void*>(memory.data + size_)) T(static_cast<Args&&>(args)...);
    move_in(memory, count);
    ++size_;
    return *element;
  }
  // Makes `memory`, of `count` elements, this vector's.
  void move_in(Memory& memory, std::size_t count) noexcept {
    const std::uint32_t size = size_;
    move_to(memory.data);
    reset();
    heap_ = memory.data;
    memory.data = nullptr;
    size_ = size;
    capacity_ = static_cast<std::uint32_t>(count);
  }
  void reset() noexcept {
    clear();
    if (heap_ != nullptr) ::operator delete(heap_);
    heap_ = nullptr;
    capacity_ = N;
  }
  void take(SmallVector& other) noexcept {
    if (other.heap_ != nullptr) {
      heap_ = other.heap_;
      capacity_ = other.capacity_;
      size_ = other.size_;
      other.heap_ = nullptr;
      other.capacity_ = N;
      other.size_ = 0;
    } else {
      other.move_to(inline_data());
      size_ = other.size_;
      other.clear();
    }
  }

  T* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  union {
    T inline_[N];  // the first size_ of them exist while heap_ is null
  };
};

}  // namespace tutti::autograd
