// SPDX-License-Identifier: Apache-2.0
/// \file
/// Hidden: the owner of what only a source file knows.
#pragma once

namespace tutti::detail {

/// Owns an object of a type that only the source file defines. Does what std::unique_ptr does, whose
/// instantiation costs every file that includes tutti.hpp about ten times as much. As there, whoever destroys or
/// assigns one has to see the type's definition.
template <class T>
class Hidden {
 public:
  Hidden() noexcept = default;
  /// Takes over an object made by new.
  explicit Hidden(T* object) noexcept : object_(object) {}
  Hidden(Hidden&& other) noexcept : object_(other.release()) {}
  Hidden& operator=(Hidden&& other) noexcept {
    T* const taken = other.release();
    destroy();
    object_ = taken;
    return *this;
  }
  ~Hidden() { destroy(); }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  /// Gives the object up to the caller.
  T* release() noexcept {
    T* const object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  void destroy() noexcept {
    static_assert(sizeof(T) > 0, "deleting an incomplete type would skip its destructor");
    delete object_;
  }
  T* object_ = nullptr;
};

}  // namespace tutti::detail
