// SPDX-License-Identifier: Apache-2.0
/// \file
/// Log lines on standard error, prefixed with level and rank. TUTTI_LOG_LEVEL = debug, info, warning
/// (default), error.
#pragma once

#include <string_view>

#include "tutti/core/error.hpp"
#include "tutti/core/export.hpp"

namespace tutti::logging {

/// How much a line matters, least first.
enum class Level {
  kDebug,    ///< What only helps to find an error in the library.
  kInfo,     ///< What the library has decided: transports, thread counts.
  kWarning,  ///< The program goes on, but slower or otherwise than asked.
  kError,    ///< Something has failed.
};

/// True if lines of this level are written: it is at least TUTTI_LOG_LEVEL, which is read once.
TUTTI_API bool enabled(Level level) noexcept;
/// Writes one line "[tutti warning rank 1] text" with one write(2), so that lines of several ranks do not
/// mix.
TUTTI_API void write(Level level, std::string_view text) noexcept;
/// The rank that prefixes each line; -1 (none) until the Environment sets it.
TUTTI_API void set_rank(int rank) noexcept;
/// What set_rank() was given last.
TUTTI_API int rank() noexcept;

/// These write a line of their level, joined from the parts as concat() does, if that level is enabled; else they cost one
/// comparison.
template <class... Parts>
void debug(const Parts&... parts) {
  if (enabled(Level::kDebug)) write(Level::kDebug, concat(parts...));
}
template <class... Parts>
void info(const Parts&... parts) {
  if (enabled(Level::kInfo)) write(Level::kInfo, concat(parts...));
}
template <class... Parts>
void warning(const Parts&... parts) {
  if (enabled(Level::kWarning)) write(Level::kWarning, concat(parts...));
}
template <class... Parts>
void error(const Parts&... parts) {
  if (enabled(Level::kError)) write(Level::kError, concat(parts...));
}

}  // namespace tutti::logging
