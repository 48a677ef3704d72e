// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/status.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace tutti::cpu {
namespace {

constexpr std::size_t kTextSize = 1024;
thread_local char last_text[kTextSize] = "";

std::string list_text(const std::int64_t* values, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += concat(i == 0 ? "" : ", ", values[i]);
  return text + "]";
}

}  // namespace

namespace detail {

tutti_status store_failure(tutti_status status, const char* message) noexcept {
  const std::size_t length = std::min(std::strlen(message), kTextSize - 1);
  std::memcpy(last_text, message, length);
  last_text[length] = '\0';
  return status;
}

tutti_status store_current_exception() noexcept {
  try {
    throw;
  } catch (const KernelError& error) {
    return store_failure(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return store_failure(TUTTI_OUT_OF_MEMORY, "out of memory in a kernel of the CPU");
  } catch (const MemoryError& error) {
    return store_failure(TUTTI_OUT_OF_MEMORY, error.what());
  } catch (const IndexError& error) {
    return store_failure(TUTTI_INVALID, error.what());
  } catch (const DTypeError& error) {
    return store_failure(TUTTI_UNSUPPORTED, error.what());
  } catch (const std::exception& error) {
    return store_failure(TUTTI_DEVICE_FAILED, error.what());
  } catch (...) {
    return store_failure(TUTTI_DEVICE_FAILED, "an exception of unknown type in a kernel of the CPU");
  }
}

}  // namespace detail

void error_text(char* buffer, std::size_t size) noexcept {
  if (size == 0) return;
  const std::size_t length = std::min(std::strlen(last_text), size - 1);
  std::memcpy(buffer, last_text, length);
  buffer[length] = '\0';
}

std::string dtype_text(std::int32_t dtype) {
  if (dtype < 0 || dtype >= kDTypeCount) return concat("dtype ", dtype);
  return name(static_cast<DType>(dtype));
}

std::string describe(const tutti_view& view) {
  return concat(dtype_text(view.dtype), " ", list_text(view.sizes, view.ndim), " with strides ",
                list_text(view.strides, view.ndim));
}

}  // namespace tutti::cpu
