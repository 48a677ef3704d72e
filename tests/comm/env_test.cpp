// SPDX-License-Identifier: Apache-2.0
// The meeting place of env://, seen from two ranks in one process.
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/bootstrap.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/tcp/socket.hpp"
#include "comm/tcp/store.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti::testing {
namespace {

using namespace std::chrono_literals;
using comm::Bootstrap;
using Texts = std::vector<std::string>;

// Ports below those that the system hands out by itself, another one for each test and process.
int next_port() {
  static int port = 20'000 + ::getpid() % 10'000;
  return ++port;
}

std::unique_ptr<Bootstrap> join(int rank, int size, int port) {
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  ::setenv("RANK", std::to_string(rank).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
  return comm::make_tcp_bootstrap(Deadline(5));
}

struct TwoRanks {
  int port = next_port();
  std::unique_ptr<Bootstrap> first = join(0, 2, port);
  std::unique_ptr<Bootstrap> second = join(1, 2, port);
};

TEST(EnvMeeting, HandsAllPartsToAllRanks) {
  const TwoRanks ranks;
  auto other =
      std::async(std::launch::async, [&] { return ranks.second->exchange("", Deadline(5), "test"); });
  const std::string large(1'000'000, 'x');
  const Texts wanted{large, ""};
  EXPECT_EQ(ranks.first->exchange(large, Deadline(5), "test"), wanted);
  EXPECT_EQ(other.get(), wanted);
}

TEST(EnvMeeting, TimeoutNamesTheMissingRank) {
  const TwoRanks ranks;
  EXPECT_EQ(error_of<TimeoutError>([&] { ranks.first->exchange("a", Deadline(0.1), "the test"); }),
            "env://: the test: rank 0 has waited 0.1 s for rank 1 (TUTTI_TIMEOUT_S)");
}

TEST(EnvMeeting, LateAnswerIsNotTakenForTheNextOne) {
  const TwoRanks ranks;
  const auto first = ranks.first->subset({0, 1}, "again", Deadline(5));
  const auto second = ranks.second->subset({0, 1}, "again", Deadline(5));
  error_of<TimeoutError>([&] { ranks.first->exchange("given up", Deadline(0.1), "test"); });
  EXPECT_EQ(ranks.second->exchange("late", Deadline(5), "test"), (Texts{"given up", "late"}));
  auto other = std::async(std::launch::async, [&] { return second->exchange("two", Deadline(5), "test"); });
  EXPECT_EQ(first->exchange("one", Deadline(5), "test"), (Texts{"one", "two"}));
  EXPECT_EQ(other.get(), (Texts{"one", "two"}));
}

TEST(EnvMeeting, HalfAnEnvironmentIsAnError) {
  for (const char* variable : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) ::unsetenv(variable);
  EXPECT_FALSE(comm::tcp_bootstrap_requested());
  ::setenv("WORLD_SIZE", "1", 1);
  ::setenv("RANK", "0", 1);
  EXPECT_FALSE(comm::tcp_bootstrap_requested());
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("MASTER_PORT", "29500", 1);
  expect_error<ValueError>([] { comm::tcp_bootstrap_requested(); },
                           "env://: RANK or WORLD_SIZE asks for several ranks, which takes RANK, WORLD_SIZE, "
                           "MASTER_ADDR and MASTER_PORT; missing: MASTER_ADDR");
  ::unsetenv("RANK");
  expect_error<ValueError>([] { comm::tcp_bootstrap_requested(); }, "; missing: RANK, MASTER_ADDR");
  ::setenv("RANK", "1", 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  EXPECT_TRUE(comm::tcp_bootstrap_requested());
}

TEST(Launcher, OfAnotherMpiIsAnError) {
  ::setenv("PMI_SIZE", "2", 1);
  ::setenv("PMI_RANK", "1", 1);
  expect_error<CommError>([] { comm::check_size_by_launcher(1); },
                          "the launcher has started 2 ranks (PMI_SIZE), but ");
  comm::check_size_by_launcher(2);
  ::unsetenv("PMI_SIZE");
  EXPECT_EQ(comm::rank_by_launcher(), 1);
  ::unsetenv("PMI_RANK");
  EXPECT_EQ(comm::rank_by_launcher(), -1);
  comm::check_size_by_launcher(1);
}

TEST(EnvMeeting, StrangersAreDropped) {
  const int port = next_port();
  const comm::Store store(std::to_string(port), "2 token");
  const auto stranger = comm::Socket::connect("127.0.0.1", std::to_string(port), Deadline(5));
  stranger.send_frame("GET / HTTP/1.1", Deadline(5));
  std::string input;
  expect_error<CommError>([&] { stranger.receive_some(input, Deadline(5)); }, "env://: rank 0 is gone");
}

// What connects to it gets no answer: its queue is full, and the system drops what else comes.
class SilentListener {
 public:
  explicit SilentListener(int port) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    address_.sin_port = ::htons(static_cast<std::uint16_t>(port));
    const auto* address = reinterpret_cast<const sockaddr*>(&address_);
    EXPECT_EQ(::bind(listener_.fd(), address, sizeof address_), 0);
    EXPECT_EQ(::listen(listener_.fd(), 0), 0);
    for (const comm::Socket& caller : callers_) ::connect(caller.fd(), address, sizeof address_);
  }

 private:
  static comm::Socket make() { return comm::Socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)); }
  sockaddr_in address_{};
  comm::Socket listener_ = make();
  comm::Socket callers_[4] = {make(), make(), make(), make()};
};

TEST(EnvMeeting, AnAddressThatNeverAnswersIsGivenUpAtTheDeadline) {
  const int port = next_port();
  const SilentListener silent(port);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of<TimeoutError>(
                [&] { comm::Socket::connect("127.0.0.1", std::to_string(port), Deadline(0.5)); }),
            concat("env://: no connection to rank 0 at MASTER_ADDR 127.0.0.1, MASTER_PORT ", port,
                   " within 0.5 s: Connection timed out"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
}

TEST(EnvMeeting, ConnectionsWaitWhileTheSystemRefusesThem) {
  const int port = next_port();
  const comm::Store store(std::to_string(port), "token");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int lowest = ::dup(0);
  ::close(lowest);
  const rlimit one_more{static_cast<rlim_t>(lowest) + 1, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &one_more);
  const auto socket = comm::Socket::connect("127.0.0.1", std::to_string(port), Deadline(5));
  socket.send_frame(comm::Store::hello("token"), Deadline(5));
  socket.send_frame(std::string("Xkey\0"
                                "0\0"
                                "1\0part",
                                13),
                    Deadline(5));
  const std::clock_t busy_before = std::clock();
  std::this_thread::sleep_for(500ms);
  const double busy_s = static_cast<double>(std::clock() - busy_before) / CLOCKS_PER_SEC;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LT(busy_s, 0.1) << "of processor time in half a second: the store goes round in circles";
  std::string input;
  std::string answer;
  while (comm::take_frame(input, comm::kLongestFrame, answer) != comm::FrameState::kWhole)
    ASSERT_TRUE(socket.receive_some(input, Deadline(5)));
  EXPECT_EQ(answer, std::string("Akey\0\4\0\0\0part", 13));
}

}  // namespace
}  // namespace tutti::testing
