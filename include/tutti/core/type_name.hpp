// SPDX-License-Identifier: Apache-2.0
/// \file
/// Names of types for messages. Not for users: here because templates name the type they are made for.
#pragma once

#include <cstddef>
#include <string_view>

namespace tutti::detail {

/// Name of T without what it stands in: "Linear" of tutti::nn::Linear. Namespaces of template arguments stay.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with T = a::b::Name; ...]" or "... [T = a::b::Name]"
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const std::size_t colons = text.substr(0, text.find('<')).rfind("::");
  return colons == std::string_view::npos ? text : text.substr(colons + 2);
}

/// The same, found while compiling: a call of type_name() on a hot path would search the text each time.
template <class T>
inline constexpr std::string_view kTypeName = type_name<T>();

}  // namespace tutti::detail
