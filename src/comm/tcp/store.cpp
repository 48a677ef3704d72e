// SPDX-License-Identifier: Apache-2.0
#include "comm/tcp/store.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "comm/bootstrap.hpp"
#include "comm/parse_integer.hpp"
#include "core/start_thread.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

namespace tutti::comm {

namespace {

using namespace std::chrono_literals;
constexpr auto kHelloDeadline = 10s;  // who connects and stays silent is dropped
constexpr std::uint32_t kLongestHello = 4096;
constexpr int kPollMilliseconds = 1000;
constexpr auto kAcceptPause = 100ms;

std::string framed(const std::string& frame) {
  return encode_length(static_cast<std::uint32_t>(frame.size())) + frame;
}

// Cuts the text before the next zero byte off `rest`.
std::string_view take_field(std::string_view& rest) {
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return {};
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return field;
}

}  // namespace

Store::Store(const std::string& port, std::string token)
    : token_(std::move(token)), listener_(Socket::listen(port)) {
  TUTTI_CHECK(::pipe2(wake_, O_CLOEXEC) == 0, CommError, "env://: rank 0 can't make a pipe");
  thread_ = start_thread([this] { serve(); });
}

Store::~Store() {
  ::close(wake_[1]);
  thread_.join();
  ::close(wake_[0]);
}

void Store::serve() noexcept {
  try {
    for (;;) {
      const bool accepts = std::chrono::steady_clock::now() >= accepts_again_;
      std::vector<pollfd> watched{{wake_[0], POLLIN, 0}, {accepts ? listener_.fd() : -1, POLLIN, 0}};
      for (const Connection& connection : connections_) {
        const int events = connection.output.empty() ? POLLIN : POLLIN | POLLOUT;
        watched.push_back({connection.socket.fd(), static_cast<short>(events), 0});
      }
      const auto pause = static_cast<int>(std::chrono::milliseconds(kAcceptPause).count());
      ::poll(watched.data(), watched.size(), accepts ? kPollMilliseconds : pause);
      if (watched[0].revents != 0) return;
      std::size_t at = 2;
      const auto now = std::chrono::steady_clock::now();
      for (Connection& connection : connections_) {
        const short events = watched[at++].revents;
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(connection);
        if (!connection.is_known && now - connection.accepted > kHelloDeadline) connection.is_broken = true;
      }
      for (Connection& connection : connections_) {
        if (connection.output.empty()) continue;
        const ssize_t sent =
            ::send(connection.socket.fd(), connection.output.data(), connection.output.size(), MSG_NOSIGNAL);
        if (sent > 0) connection.output.erase(0, static_cast<std::size_t>(sent));
        if (sent < 0 && errno != EAGAIN && errno != EINTR) connection.is_broken = true;
      }
      for (Connection& connection : connections_) {
        if (connection.is_broken) drop(connection);
      }
      connections_.remove_if([](const Connection& connection) { return connection.is_broken; });
      if (watched[1].revents != 0) accept_all();
    }
  } catch (const std::exception& error) {
    logging::error("env://: the meeting place has failed: ", error.what());
  }
}

void Store::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      connections_.emplace_back();
      connections_.back().socket = Socket(fd);
      connections_.back().accepted = std::chrono::steady_clock::now();
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Too many open files, or no memory: the connection waits, and the listener stays readable.
    if (errno != EAGAIN) accepts_again_ = std::chrono::steady_clock::now() + kAcceptPause;
    return;
  }
}

void Store::read_from(Connection& connection) {
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t received = ::recv(connection.socket.fd(), buffer, sizeof buffer, 0);
    if (received > 0) {
      connection.input.append(buffer, static_cast<std::size_t>(received));
      // Looked at after each piece, so that who has not said hello can't fill the memory.
      std::string frame;
      while (!connection.is_broken) {
        const FrameState state =
            take_frame(connection.input, connection.is_known ? kLongestFrame : kLongestHello, frame);
        if (state == FrameState::kIncomplete) break;
        if (state == FrameState::kTooLong)
          connection.is_broken = true;
        else
          handle(connection, frame);
      }
      if (connection.is_broken) return;
      continue;
    }
    if (received < 0 && errno == EINTR) continue;
    if (received == 0 || errno != EAGAIN) connection.is_broken = true;
    return;
  }
}

void Store::handle(Connection& connection, const std::string& frame) {
  if (!connection.is_known) {
    connection.is_known = frame == hello(token_);
    connection.is_broken = !connection.is_known;
    if (connection.is_broken)
      logging::warning("env://: dropped a connection that does not belong to this job");
    return;
  }
  if (frame.starts_with('X')) {
    handle_part(connection, frame);
  } else if (frame.starts_with('M')) {
    handle_missing(connection, frame);
  } else {
    connection.is_broken = true;
  }
}

void Store::handle_part(Connection& connection, const std::string& frame) {
  std::string_view rest = std::string_view(frame).substr(1);
  const std::string key(take_field(rest));
  const int rank = parse_integer(take_field(rest));
  const int size = parse_integer(take_field(rest));
  Meeting& meeting = meetings_[key];
  if (rank < 0 || size <= rank || size > kGreatestSize || (meeting.size != 0 && meeting.size != size) ||
      !meeting.parts.emplace(rank, rest).second) {
    logging::warning("env://: dropped a connection of rank ", rank, " of ", size, " in ", key,
                     ": that rank was there already, or another size was named");
    connection.is_broken = true;
    return;
  }
  meeting.size = size;
  meeting.waiting.push_back(&connection);
  if (static_cast<int>(meeting.parts.size()) < size) return;
  std::string answer = concat('A', key, '\0');
  for (const auto& [unused_rank, part] : meeting.parts) answer += framed(part);
  for (Connection* waiting : meeting.waiting) waiting->output += framed(answer);
  meetings_.erase(key);
}

void Store::handle_missing(Connection& connection, const std::string& frame) {
  const auto found = meetings_.find(frame.substr(1));
  std::string answer = concat(frame, '\0');
  if (found != meetings_.end()) {
    for (int rank = 0; rank < found->second.size; ++rank) {
      if (!found->second.parts.contains(rank)) answer += concat(rank, ' ');
    }
  }
  connection.output += framed(answer);
}

void Store::drop(Connection& connection) {
  for (auto& [unused_key, meeting] : meetings_) std::erase(meeting.waiting, &connection);
}

}  // namespace tutti::comm
