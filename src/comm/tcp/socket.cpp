// SPDX-License-Identifier: Apache-2.0
#include "comm/tcp/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

using namespace std::chrono_literals;
constexpr auto kRetryInterval = 50ms;
// An address that drops what it gets must leave time for the name's others.
constexpr double kLongestAttemptSeconds = 10;
constexpr int kLongestPollMilliseconds = 1000;
constexpr int kBacklog = 1024;

void set_options(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const char* host, const std::string& port, int flags, std::string& failure) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host, port.c_str(), &hints, &found);
  if (code != 0) failure = ::gai_strerror(code);
  return {found, &::freeaddrinfo};
}

}  // namespace

std::string encode_length(std::uint32_t length) {
  std::string text(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i) text[i] = static_cast<char>(length >> (8 * i) & 0xffU);
  return text;
}

std::uint32_t decode_length(const char* bytes) noexcept {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return length;
}

FrameState take_frame(std::string& input, std::uint32_t longest, std::string& frame) {
  if (input.size() < kLengthBytes) return FrameState::kIncomplete;
  const std::uint32_t length = decode_length(input.data());
  if (length > longest) return FrameState::kTooLong;
  if (input.size() - kLengthBytes < length) return FrameState::kIncomplete;
  frame = input.substr(kLengthBytes, length);
  input.erase(0, kLengthBytes + std::size_t{length});
  return FrameState::kWhole;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket Socket::connect(const std::string& host, const std::string& port, const Deadline& deadline) {
  std::string failure;
  do {
    const Addresses addresses = resolve(host.c_str(), port, 0, failure);
    int left = 0;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) ++left;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next, --left) {
      Socket socket(::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                             address->ai_protocol));
      const int error = socket.connect_to(
          *address, Deadline(std::clamp(deadline.remaining_s() / left, 0.0, kLongestAttemptSeconds)));
      if (error == 0) {
        set_options(socket.fd());
        return socket;
      }
      failure = std::strerror(error);
    }
    std::this_thread::sleep_for(kRetryInterval);
  } while (!deadline.passed());
  tutti::detail::fail<TimeoutError>("env://: no connection to rank 0 at MASTER_ADDR ", host, ", MASTER_PORT ",
                                    port, " within ", deadline.seconds(), " s: ", failure);
}

// 0, or why not, as errno has it.
int Socket::connect_to(const addrinfo& address, const Deadline& deadline) const {
  if (fd_ < 0) return errno;
  if (::connect(fd_, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

Socket Socket::listen(const std::string& port) {
  std::string failure;
  const Addresses addresses = resolve(nullptr, port, AI_PASSIVE, failure);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           address->ai_protocol));
    const int on = 1;
    const int off = 0;
    if (socket.fd() >= 0) {
      ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (address->ai_family == AF_INET6)
        ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (::bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 &&
          ::listen(socket.fd(), kBacklog) == 0)
        return socket;
    }
    failure = std::strerror(errno);
  }
  tutti::detail::fail<CommError>("env://: rank 0 can't listen on MASTER_PORT ", port, ": ", failure);
}

bool Socket::wait_for(short events, const Deadline& deadline) const {
  for (;;) {
    pollfd watched{fd_, events, 0};
    const double left =
        std::clamp(deadline.remaining_s() * 1e3, 0.0, static_cast<double>(kLongestPollMilliseconds));
    if (::poll(&watched, 1, static_cast<int>(left)) > 0) return true;
    if (deadline.passed()) return false;
  }
}

void Socket::send_bytes(const char* data, std::size_t count, const Deadline& deadline) const {
  while (count > 0) {
    const ssize_t sent = ::send(fd_, data, count, MSG_NOSIGNAL);
    if (sent > 0) {
      data += sent;
      count -= static_cast<std::size_t>(sent);
    } else if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      TUTTI_CHECK(wait_for(POLLOUT, deadline), TimeoutError, "env://: rank 0 has taken no message for ",
                  deadline.seconds(), " s");
    } else {
      tutti::detail::fail<CommError>("env://: rank 0 is gone: ", std::strerror(errno));
    }
  }
}

void Socket::send_frame(const std::string& frame, const Deadline& deadline) const {
  TUTTI_CHECK(frame.size() <= kLongestFrame, CommError, "env://: a message of ", frame.size(),
              " bytes is longer than ", kLongestFrame);
  const std::string length = encode_length(static_cast<std::uint32_t>(frame.size()));
  send_bytes(length.data(), length.size(), deadline);
  send_bytes(frame.data(), frame.size(), deadline);
}

bool Socket::receive_some(std::string& input, const Deadline& deadline) const {
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t received = ::recv(fd_, buffer, sizeof buffer, 0);
    if (received > 0) {
      input.append(buffer, static_cast<std::size_t>(received));
      return true;
    }
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_for(POLLIN, deadline)) return false;
      continue;
    }
    tutti::detail::fail<CommError>("env://: rank 0 is gone",
                                   received < 0 ? concat(": ", std::strerror(errno)) : "");
  }
}

}  // namespace tutti::comm
