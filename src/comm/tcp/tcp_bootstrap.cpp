// SPDX-License-Identifier: Apache-2.0
// env://: PyTorch's variables.
#include <algorithm>
#include <memory>
#include <string_view>

#include "comm/bootstrap.hpp"
#include "comm/contract.hpp"
#include "comm/parse_integer.hpp"
#include "comm/tcp/socket.hpp"
#include "comm/tcp/store.hpp"
#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

constexpr double kMissingAnswerSeconds = 2;

// A rank's connection to the store; on rank 0 the store too. All groups of the process share it.
class Line {
 public:
  Line(std::unique_ptr<Store> store, Socket socket) : store_(std::move(store)), socket_(std::move(socket)) {}

  void send(const std::string& frame, const Deadline& deadline) {
    TUTTI_CHECK(!cut_, CommError, "env://: a message to rank 0 was cut short by its deadline");
    cut_ = true;  // unless it is sent
    socket_.send_frame(frame, deadline);
    cut_ = false;
  }
  // The answer that begins with `head`, without that; those to requests that were given up are passed over. False if the
  // deadline has passed.
  bool receive(const std::string& head, std::string& answer, const Deadline& deadline) {
    for (;;) {
      switch (take_frame(input_, kLongestFrame, answer)) {
        case FrameState::kWhole:
          if (!answer.starts_with(head)) continue;
          answer.erase(0, head.size());
          return true;
        case FrameState::kTooLong:
          tutti::detail::fail<CommError>("env://: rank 0 announces a message of more than ", kLongestFrame,
                                         " bytes");
        case FrameState::kIncomplete: break;
      }
      if (!socket_.receive_some(input_, deadline)) return false;
    }
  }

 private:
  std::unique_ptr<Store> store_;
  Socket socket_;
  std::string input_;
  bool cut_ = false;
};

class TcpBootstrap final : public Bootstrap {
 public:
  TcpBootstrap(std::shared_ptr<Line> line, std::string name, int rank, int size)
      : line_(std::move(line)), name_(std::move(name)), rank_(rank), size_(size) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  std::vector<std::string> exchange(const std::string& bytes, const Deadline& deadline,
                                    const char* purpose) override {
    const std::string key = concat(name_, "#", ++exchanges_);
    if (size_ == 1) return {bytes};
    line_->send(concat('X', key, '\0', rank_, '\0', size_, '\0', bytes), deadline);
    std::string answer;
    if (!line_->receive(concat('A', key, '\0'), answer, deadline)) fail_with_missing(key, deadline, purpose);
    return parts_of(answer);
  }

  std::unique_ptr<Bootstrap> subset(const std::vector<int>& ranks, const std::string& name,
                                    const Deadline&) override {
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    return std::make_unique<TcpBootstrap>(line_, concat(name_, "/", name),
                                          static_cast<int>(own - ranks.begin()),
                                          static_cast<int>(ranks.size()));
  }

 private:
  [[noreturn]] void fail_with_missing(const std::string& key, const Deadline& deadline, const char* purpose) {
    const Deadline soon(kMissingAnswerSeconds);
    line_->send("M" + key, soon);
    std::string answer;
    std::vector<int> missing;
    if (line_->receive(concat('M', key, '\0'), answer, soon)) {
      std::string_view rest = answer;
      for (std::size_t space = rest.find(' '); space != std::string_view::npos; space = rest.find(' ')) {
        missing.push_back(parse_integer(rest.substr(0, space)));
        rest.remove_prefix(space + 1);
      }
    }
    tutti::detail::fail<TimeoutError>(
        "env://: ", purpose, ": rank ", rank_, " has waited ", deadline.seconds(), " s for ",
        missing.empty() ? "rank 0's answer" : rank_list(missing), " (TUTTI_TIMEOUT_S)");
  }

  std::vector<std::string> parts_of(const std::string& answer) const {
    std::vector<std::string> parts;
    std::size_t at = 0;
    while (at + kLengthBytes <= answer.size()) {
      const std::uint32_t length = decode_length(answer.data() + at);
      if (length > answer.size() - at - kLengthBytes) break;
      parts.push_back(answer.substr(at + kLengthBytes, length));
      at += kLengthBytes + std::size_t{length};
    }
    TUTTI_CHECK(static_cast<int>(parts.size()) == size_ && at == answer.size(), CommError,
                "env://: rank 0's answer is malformed");
    return parts;
  }

  std::shared_ptr<Line> line_;
  std::string name_;
  int rank_;
  int size_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace

bool tcp_bootstrap_requested() {
  std::string missing;
  for (const char* variable : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (!environment_text(variable)) missing += concat(missing.empty() ? "" : ", ", variable);
  }
  if (missing.empty()) return true;
  const bool wants_ranks = environment_integer("WORLD_SIZE", 1, kGreatestSize).value_or(1) > 1 ||
                           environment_integer("RANK", 0, kGreatestSize).value_or(0) > 0;
  TUTTI_CHECK(!wants_ranks, ValueError,
              "env://: RANK or WORLD_SIZE asks for several ranks, which takes RANK, ",
              "WORLD_SIZE, MASTER_ADDR and MASTER_PORT; missing: ", missing);
  return false;
}

int rank_by_environment() {
  const std::int64_t size = environment_integer("WORLD_SIZE", 1, kGreatestSize).value();
  return static_cast<int>(environment_integer("RANK", 0, size - 1).value());
}

std::unique_ptr<Bootstrap> make_tcp_bootstrap(const Deadline& deadline) {
  constexpr std::int64_t kGreatestPort = 65'535;
  const auto size = static_cast<int>(environment_integer("WORLD_SIZE", 1, kGreatestSize).value());
  const int rank = rank_by_environment();
  const std::int64_t port = environment_integer("MASTER_PORT", 1, kGreatestPort).value();
  const std::string address = environment_text("MASTER_ADDR").value();
  // Keeps jobs apart that were given one port by mistake.
  const std::string token = concat(size, ' ', environment_text("TUTTI_JOB_TOKEN").value_or(""));
  std::shared_ptr<Line> line;  // null in a world of one
  if (size > 1) {
    auto store = rank == 0 ? std::make_unique<Store>(concat(port), token) : nullptr;
    line = std::make_shared<Line>(std::move(store), Socket::connect(address, concat(port), deadline));
    line->send(Store::hello(token), deadline);
  }
  return std::make_unique<TcpBootstrap>(std::move(line), "world", rank, size);
}

}  // namespace tutti::comm
