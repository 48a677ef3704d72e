// SPDX-License-Identifier: Apache-2.0
/// \file
/// Exceptions and checks. Every message says what was wanted, what was given and where.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "tutti/core/export.hpp"

namespace tutti {

/// Base of all exceptions that the library throws. what() is one complete message.
class TUTTI_API Error : public std::runtime_error {
 public:
  /// Which of a program's modules the error has left, so far; nn::Module keeps it.
  struct Place {
    const void* module;  ///< the outermost one
    std::string path;    ///< from there to the innermost: "features.0", empty if they are the same
    std::string type;    ///< of the innermost: "Conv2d"
  };

  explicit Error(const std::string& message) : std::runtime_error(message) {}
  ~Error() override;
  /// The message, and behind it the place: "...; in Net.features.0 (Conv2d)".
  const char* what() const noexcept override;
  /// Null for an error that no module has let pass.
  const Place* place() const noexcept;
  /// `outermost` is the type of place.module.
  void set_place(Place place, std::string_view outermost);

 private:
  struct Placed;
  std::shared_ptr<const Placed> placed_;
};

#define TUTTI_DECLARE_ERROR(Name)                     \
  class TUTTI_API Name : public Error {               \
   public:                                            \
    explicit Name(const std::string& m) : Error(m) {} \
    ~Name() override;                                 \
  };

TUTTI_DECLARE_ERROR(ShapeError)     ///< Sizes, strides or dimensions that do not fit.
TUTTI_DECLARE_ERROR(DTypeError)     ///< A dtype that an operation does not take.
TUTTI_DECLARE_ERROR(DeviceError)    ///< A device that is missing, or tensors on different devices.
TUTTI_DECLARE_ERROR(IndexError)     ///< An index or a label out of range.
TUTTI_DECLARE_ERROR(ValueError)     ///< An argument outside its domain (a NaN learning rate).
TUTTI_DECLARE_ERROR(AutogradError)  ///< Misuse of backward, saved tensors or in-place operations.
TUTTI_DECLARE_ERROR(
    ModuleError)  ///< Misuse of a module: two children of one name, a state_dict that does not fit.
TUTTI_DECLARE_ERROR(CommError)  ///< A collective or a peer failed.
TUTTI_DECLARE_ERROR(
    TimeoutError)               ///< A wait passed its deadline; the message names the ranks that are missing.
TUTTI_DECLARE_ERROR(DataError)  ///< A data file or sample is missing, truncated or malformed.
TUTTI_DECLARE_ERROR(MemoryError)  ///< Out of memory.
#undef TUTTI_DECLARE_ERROR

namespace detail {

TUTTI_API void append(std::string& text, std::string_view part);
TUTTI_API void append(std::string& text, double part);
TUTTI_API void append_signed(std::string& text, long long part);
TUTTI_API void append_unsigned(std::string& text, unsigned long long part);

inline void append(std::string& text, bool part) { append(text, std::string_view(part ? "true" : "false")); }
inline void append(std::string& text, char part) { text.push_back(part); }
inline void append(std::string& text, const char* part) { append(text, std::string_view(part)); }
inline void append(std::string& text, const std::string& part) { append(text, std::string_view(part)); }
template <std::integral T>
void append(std::string& text, T part) {
  if constexpr (std::is_signed_v<T>) {
    append_signed(text, static_cast<long long>(part));
  } else {
    append_unsigned(text, static_cast<unsigned long long>(part));
  }
}
template <std::floating_point T>
void append(std::string& text, T part) {
  append(text, static_cast<double>(part));
}

/// Any class or enumeration with a to_text(x) found by argument-dependent lookup (DType, Dims, Device) can
/// stand in a message. Others not: a char* would become a Device.
template <class T>
concept HasToText = (std::is_class_v<T> || std::is_enum_v<T>)&&requires(const T& part) {
  { to_text(part) } -> std::convertible_to<std::string>;
};
template <HasToText T>
void append(std::string& text, const T& part) {
  append(text, std::string_view(std::string(to_text(part))));
}

}  // namespace detail

/// Joins text, numbers, dtypes, shapes and devices into one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (detail::append(text, parts), ...);
  return text;
}

namespace detail {
/// Throws E with the joined text; out of line of the caller's hot path.
template <class E, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  throw E(concat(parts...));
}
}  // namespace detail

}  // namespace tutti

/// Throws tutti::ErrorKind with the text joined from the remaining arguments unless the condition holds.
#define TUTTI_CHECK(condition, ErrorKind, ...)                \
  do {                                                        \
    if (!(condition)) [[unlikely]] {                          \
      ::tutti::detail::fail<::tutti::ErrorKind>(__VA_ARGS__); \
    }                                                         \
  } while (false)
