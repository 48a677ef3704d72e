// SPDX-License-Identifier: Apache-2.0
/// \file
/// A vector whose first elements need no allocation. Not for users: graph nodes hold their edges in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace tutti::autograd {

/// Grows only; elements move when it does. At least the first N elements lie inside the object.
template <class T, std::size_t N>
class SmallVector {
 public:
  SmallVector() noexcept = default;
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
    while (size_ > count) std::destroy_at(data() + --size_);
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]]
      grow(2 * std::size_t{size_});
    T* element = std::construct_at(data() + size_, std::forward<Args>(args)...);
    ++size_;
    return *element;
  }
  /// Destroys all elements; keeps the memory.
  void clear() noexcept {
    std::destroy_n(data(), size_);
    size_ = 0;
  }

 private:
  T* inline_data() noexcept { return std::launder(reinterpret_cast<T*>(storage_)); }
  const T* inline_data() const noexcept { return std::launder(reinterpret_cast<const T*>(storage_)); }
  void grow(std::size_t count) {
    T* memory = std::allocator<T>().allocate(count);
    std::uninitialized_move_n(data(), size_, memory);
    std::destroy_n(data(), size_);
    if (heap_ != nullptr) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = memory;
    capacity_ = static_cast<std::uint32_t>(count);
  }
  void reset() noexcept {
    clear();
    if (heap_ != nullptr) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = nullptr;
    capacity_ = N;
  }
  void take(SmallVector& other) noexcept {
    if (other.heap_ != nullptr) {
      heap_ = std::exchange(other.heap_, nullptr);
      capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(N));
      size_ = std::exchange(other.size_, 0U);
    } else {
      std::uninitialized_move_n(other.data(), other.size_, inline_data());
      size_ = other.size_;
      other.clear();
    }
  }

  T* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  alignas(T) std::byte storage_[N * sizeof(T)];
};

}  // namespace tutti::autograd
