// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/logging.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace tutti::logging {

namespace {

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};
constexpr int kUnread = -1;
std::atomic<int> level_threshold{kUnread};
std::atomic<int> line_rank{-1};

void write_all(const char* data, std::size_t size) noexcept {
  while (size > 0) {
    const ssize_t written = ::write(STDERR_FILENO, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody is left to tell
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

int read_threshold() noexcept {
  const char* text = std::getenv("TUTTI_LOG_LEVEL");
  if (text == nullptr || *text == '\0') return static_cast<int>(Level::kWarning);
  for (int level = 0; level < 4; ++level) {
    if (std::string_view(text) == kLevelNames[level]) return level;
  }
  return kUnread;
}

int threshold() noexcept {
  int level = level_threshold.load(std::memory_order_relaxed);
  if (level != kUnread) [[likely]]
    return level;
  level = read_threshold();
  const bool malformed = level == kUnread;
  if (malformed) level = static_cast<int>(Level::kWarning);
  int expected = kUnread;  // only the thread that stores the level warns
  if (level_threshold.compare_exchange_strong(expected, level) && malformed) {
    try {
      write(Level::kWarning, concat("TUTTI_LOG_LEVEL must be debug, info, warning or error, but is \"",
                                    std::getenv("TUTTI_LOG_LEVEL"), "\"; using warning"));
    } catch (const std::bad_alloc&) {
      write(Level::kWarning, "TUTTI_LOG_LEVEL must be debug, info, warning or error; using warning");
    }
  }
  return level;
}

}  // namespace

bool enabled(Level level) noexcept { return static_cast<int>(level) >= threshold(); }

void write(Level level, std::string_view text) noexcept {
  try {
    std::string line = concat("[tutti ", kLevelNames[static_cast<int>(level)]);
    if (rank() >= 0) line += concat(" rank ", rank());
    line += concat("] ", text, "\n");
    write_all(line.data(), line.size());
  } catch (const std::bad_alloc&) {
    write_all(text.data(), text.size());
    write_all("\n", 1);
  }
}

void set_rank(int rank) noexcept { line_rank.store(rank, std::memory_order_relaxed); }
int rank() noexcept { return line_rank.load(std::memory_order_relaxed); }

}  // namespace tutti::logging
