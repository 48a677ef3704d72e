// SPDX-License-Identifier: Apache-2.0
// Numbers in what ranks tell one another.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace tutti::comm {

// -1 if the text is anything else than one int.
inline int parse_integer(std::string_view text) noexcept {
  int value = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() ? value : -1;
}

}  // namespace tutti::comm
