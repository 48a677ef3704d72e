// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/error.hpp"

#include <charconv>
#include <utility>

namespace tutti {

// Out of line, so that vtables and typeinfo live in the library and a catch works across shared objects.
Error::~Error() = default;
ShapeError::~ShapeError() = default;
DTypeError::~DTypeError() = default;
DeviceError::~DeviceError() = default;
IndexError::~IndexError() = default;
ValueError::~ValueError() = default;
AutogradError::~AutogradError() = default;
ModuleError::~ModuleError() = default;
CommError::~CommError() = default;
TimeoutError::~TimeoutError() = default;
DataError::~DataError() = default;
MemoryError::~MemoryError() = default;

struct Error::Placed {
  Place place;
  std::string what;
};

const char* Error::what() const noexcept {
  return placed_ != nullptr ? placed_->what.c_str() : std::runtime_error::what();
}
const Error::Place* Error::place() const noexcept { return placed_ != nullptr ? &placed_->place : nullptr; }
void Error::set_place(Place place, std::string_view outermost) {
  std::string what = concat(std::runtime_error::what(), "; in ", outermost);
  if (!place.path.empty()) what += concat('.', place.path, " (", place.type, ')');
  placed_ = std::make_shared<const Placed>(Placed{std::move(place), std::move(what)});
}

namespace detail {

namespace {
// 32 characters hold any 64-bit integer and any shortest round-trip double.
template <class T>
void append_number(std::string& text, T part) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, part);
  text.append(buffer, result.ptr);
}
}  // namespace

void append(std::string& text, std::string_view part) { text.append(part); }
void append(std::string& text, double part) { append_number(text, part); }
void append_signed(std::string& text, long long part) { append_number(text, part); }
void append_unsigned(std::string& text, unsigned long long part) { append_number(text, part); }

}  // namespace detail
}  // namespace tutti
