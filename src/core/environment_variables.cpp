// SPDX-License-Identifier: Apache-2.0
#include "core/environment_variables.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tutti/core/error.hpp"

namespace tutti {

std::optional<std::string> environment_text(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::string(text);
}

std::optional<std::int64_t> environment_integer(const char* variable, std::int64_t least,
                                                std::int64_t greatest) {
  const std::optional<std::string> text = environment_text(variable);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto result = std::from_chars(text->data(), end, value);
  const bool fits = result.ec == std::errc{} && result.ptr == end && value >= least && value <= greatest;
  TUTTI_CHECK(fits, ValueError, variable, " must be an integer from ", least, " to ", greatest, ", but is \"",
              *text, "\"");
  return value;
}

std::optional<double> environment_positive_real(const char* variable) {
  const std::optional<std::string> text = environment_text(variable);
  if (!text) return std::nullopt;
  double value = 0;
  const char* end = text->data() + text->size();
  const auto result = std::from_chars(text->data(), end, value);
  const bool fits = result.ec == std::errc{} && result.ptr == end && std::isfinite(value) && value > 0;
  TUTTI_CHECK(fits, ValueError, variable, " must be a number greater than 0, but is \"", *text, "\"");
  return value;
}

std::optional<bool> environment_flag(const char* variable) {
  const std::optional<std::string> text = environment_text(variable);
  if (!text) return std::nullopt;
  for (const char* yes : {"1", "true", "on", "yes"}) {
    if (*text == yes) return true;
  }
  for (const char* no : {"0", "false", "off", "no"}) {
    if (*text == no) return false;
  }
  detail::fail<ValueError>(variable, " must be 1, true, on, yes, 0, false, off or no, but is \"", *text,
                           "\"");
}

}  // namespace tutti
