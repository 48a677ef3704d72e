// SPDX-License-Identifier: Apache-2.0
// TCP sockets that carry frames: four bytes of length, least first, then so many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/deadline.hpp"

struct addrinfo;

namespace tutti::comm {

// A longer frame is garbage: nothing that ranks agree on is as large.
inline constexpr std::uint32_t kLongestFrame = 64U << 20U;
inline constexpr std::size_t kLengthBytes = 4;

class Socket {
 public:
  Socket() noexcept = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const noexcept { return fd_; }

  // Tries again until the deadline. TimeoutError naming address and the system's last word.
  static Socket connect(const std::string& host, const std::string& port, const Deadline& deadline);
  // CommError if the port is taken.
  static Socket listen(const std::string& port);

  // Blocking. CommError if the other side is gone. After a TimeoutError part of the frame may be on its way.
  void send_frame(const std::string& frame, const Deadline& deadline) const;
  // Waits for bytes and appends them. False if the deadline has passed. CommError if the other side is gone.
  bool receive_some(std::string& input, const Deadline& deadline) const;

 private:
  int connect_to(const addrinfo& address, const Deadline& deadline) const;
  bool wait_for(short events, const Deadline& deadline) const;
  void send_bytes(const char* data, std::size_t count, const Deadline& deadline) const;
  int fd_ = -1;
};

enum class FrameState { kIncomplete, kWhole, kTooLong };
// Cuts the frame with which `input` begins off it, if it is whole.
FrameState take_frame(std::string& input, std::uint32_t longest, std::string& frame);

std::string encode_length(std::uint32_t length);
std::uint32_t decode_length(const char* bytes) noexcept;

}  // namespace tutti::comm
