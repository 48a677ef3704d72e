// SPDX-License-Identifier: Apache-2.0
// Rounding of requests, so that a block fits many of them and little is wasted.
//
//   bytes                 step                          waste at most
//   1 .. 1 KiB            64 B                          63 B
//   1 KiB .. 16 KiB       4 steps a power of two        20 %     the last that threads cache (CPU)
//   16 KiB .. 1 MiB       8 steps a power of two        12 %
//   1 MiB .. 16 MiB       64 KiB                         6 %
//   above                 2 MiB                         12 %
#pragma once

#include <bit>
#include <cstddef>

namespace tutti::memory {

inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kSmallLimit = std::size_t{16} << 10U;
inline constexpr int kSmallClasses = 16 + 16;

namespace detail {
// floor(log2(bytes))
constexpr unsigned octave(std::size_t bytes) noexcept {
  return static_cast<unsigned>(std::bit_width(bytes)) - 1;
}
constexpr std::size_t round_up(std::size_t bytes, std::size_t step) noexcept {
  return (bytes + step - 1) / step * step;
}
}  // namespace detail

// Of 0 to kSmallLimit bytes.
constexpr int small_class(std::size_t bytes) noexcept {
  if (bytes <= 1024) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kAlignment);
  const unsigned octave = detail::octave(bytes - 1);  // 10 .. 13
  return static_cast<int>(16 + (octave - 10) * 4 + (((bytes - 1) >> (octave - 2)) & 3U));
}
constexpr std::size_t small_class_bytes(int index) noexcept {
  if (index < 16) return static_cast<std::size_t>(index + 1) * kAlignment;
  const unsigned octave = 10 + static_cast<unsigned>(index - 16) / 4;
  const auto quarter = static_cast<std::size_t>((index - 16) % 4 + 1);
  return (std::size_t{1} << octave) + (quarter << (octave - 2));
}

// Greatest request whose rounding doesn't overflow.
inline constexpr std::size_t kGreatestRequest = static_cast<std::size_t>(-1) / 4;

constexpr std::size_t rounded_size(std::size_t bytes) noexcept {
  if (bytes <= kSmallLimit) return small_class_bytes(small_class(bytes));
  if (bytes <= (std::size_t{1} << 20U))
    return detail::round_up(bytes, std::size_t{1} << (detail::octave(bytes - 1) - 3));
  return detail::round_up(bytes,
                          bytes <= (std::size_t{16} << 20U) ? std::size_t{64} << 10U : std::size_t{2} << 20U);
}

// Free blocks are kept by eighths of powers of two of their size: a bin's blocks differ by less than 12.5 %.
inline constexpr int kBins = 64 * 8;
constexpr int bin_of(std::size_t rounded) noexcept {
  const unsigned octave = detail::octave(rounded);
  return static_cast<int>(octave * 8 + ((rounded >> (octave - 3)) & 7U));
}

}  // namespace tutti::memory
