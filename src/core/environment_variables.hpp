// SPDX-License-Identifier: Apache-2.0
// Reads TUTTI_* variables. An unset or empty variable is no value; a malformed one is a ValueError that names
// the variable, what it may hold and what it holds, never a silent default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti {

std::optional<std::string> environment_text(const char* variable);
std::optional<std::int64_t> environment_integer(const char* variable, std::int64_t least,
                                                std::int64_t greatest);
// A finite number in (0, inf).
std::optional<double> environment_positive_real(const char* variable);
// 0, false, off or no; 1, true, on or yes.
std::optional<bool> environment_flag(const char* variable);

}  // namespace tutti
