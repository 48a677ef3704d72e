// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host share. It has no name: it is a memfd of the process that made it, which peers open
// through /proc. So it isn't limited by the size of /dev/shm, and nothing is left behind however a process ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tutti::comm {

class Segment {
 public:
  Segment() noexcept = default;
  // A new one, all zero. MemoryError if the system refuses.
  static Segment create(std::size_t bytes);
  // Maps the segment that process `pid` holds as file descriptor `fd`. CommError if the system refuses.
  static Segment open(pid_t pid, int fd, std::size_t bytes);
  Segment(Segment&& other) noexcept { swap(other); }
  Segment& operator=(Segment&& other) noexcept {
    Segment(std::move(other)).swap(*this);
    return *this;
  }
  ~Segment();

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  // For open(); -1 in a segment that was itself opened.
  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  // Gives the pages back to the system; the segment stays mapped and reads as zero.
  void discard_pages() const noexcept;

 private:
  void swap(Segment& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(fd_, other.fd_);
  }
  void map(int fd, std::size_t bytes);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace tutti::comm
