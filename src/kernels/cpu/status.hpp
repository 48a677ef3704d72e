// SPDX-License-Identifier: Apache-2.0
// Statuses and this thread's error text: how kernels report a failure across the C table.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "backend/backend.h"
#include "tutti/core/dtype.hpp"
#include "tutti/core/error.hpp"

namespace tutti::cpu {

// Thrown inside a kernel where returning a status is awkward; guarded() turns it back into one.
class KernelError : public std::exception {
 public:
  KernelError(tutti_status status, std::string message) : status_(status), message_(std::move(message)) {}
  tutti_status status() const noexcept { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  tutti_status status_;
  std::string message_;
};

namespace detail {
// Keeps the text for error_text() of this thread; returns the status.
tutti_status store_failure(tutti_status status, const char* message) noexcept;
// Called inside a catch block: the status of the exception in flight, its text stored.
tutti_status store_current_exception() noexcept;
}  // namespace detail

// Copies this thread's last text into buffer, cut to size - 1 characters.
void error_text(char* buffer, std::size_t size) noexcept;

// Stores the joined text and returns the status: return fail(TUTTI_UNSUPPORTED, "matmul: wanted ..., given ",
// dtype).
template <class... Parts>
[[gnu::cold, gnu::noinline]] tutti_status fail(tutti_status status, const Parts&... parts) noexcept {
  try {
    return detail::store_failure(status, concat(parts...).c_str());
  } catch (...) {
    return detail::store_failure(TUTTI_OUT_OF_MEMORY, "out of memory while an error text was made");
  }
}

// Runs body, which returns a status or nothing; an exception becomes a status.
template <class Body>
tutti_status guarded(const Body& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return TUTTI_OK;
    } else {
      return body();
    }
  } catch (...) {
    return detail::store_current_exception();
  }
}

// "float32 [2, 3] with strides [3, 1]", for messages.
std::string describe(const tutti_view& view);
// The dtype's name for messages; "dtype 17" for a value that is none.
std::string dtype_text(std::int32_t dtype);

}  // namespace tutti::cpu
