// SPDX-License-Identifier: Apache-2.0
// One rank fails or stays away: what the others get, and that they get it soon.
#include <gtest/gtest.h>

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/ranks.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti::testing {
namespace {

using namespace std::chrono_literals;
using test::element;
using test::filled;
using test::own_rank;
using test::ranks;

int open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  int count = 0;
  while (::readdir(folder.get()) != nullptr) ++count;
  return count;
}

// While it lives this process can't open anything.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{std::min<rlim_t>(before_.rlim_cur, 1000), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken_.push_back(fd);
  }
  ~NoMoreFiles() {
    for (const int fd : taken_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

class SharedMemoryFails : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OnRank, SharedMemoryFails, ::testing::Values(0, 1));

TEST_P(SharedMemoryFails, SplitIsOneErrorOnEveryRank) {
  ASSERT_STREQ(comm::world()->backend(), "shm") << "run over other transports without these";
  std::string message;
  {
    std::unique_ptr<NoMoreFiles> none;
    if (own_rank() == GetParam()) none = std::make_unique<NoMoreFiles>();
    message = error_of<CommError>([] { comm::world()->split(0, 0, {.name = "poor"}); });
  }
  EXPECT_TRUE(contains(message, concat("group 'poor': rank ", GetParam(), ": can't ")));
  EXPECT_TRUE(contains(message, "Too many open files"));
  const auto group = comm::world()->split(0, 0, {.name = "rich"});  // the world goes on
  Tensor tensor = ones({3});
  group->all_reduce(tensor).wait();
  EXPECT_EQ(tensor.to_vector<int>(), std::vector<int>(3, ranks()));
}

TEST(SharedMemoryFails, InAnOperationTheOthersLearnOfIt) {
  ASSERT_STREQ(comm::world()->backend(), "shm") << "run over other transports without these";
  const auto group = comm::world()->split(0, 0, {.name = "poor later"});
  Tensor tensor = group->allocate({100'000});  // others map it in the operation
  tensor.fill_(1);
  std::string message;
  {
    std::unique_ptr<NoMoreFiles> none;
    if (own_rank() == 1) none = std::make_unique<NoMoreFiles>();
    message = error_of<CommError>([&] { group->all_reduce(tensor).wait(); });
  }
  EXPECT_TRUE(contains(
      message, own_rank() == 1
                   ? "Too many open files"
                   : "all_reduce #1 (sum) of 100000 x float32 in group 'poor later': rank 1 has failed"));
  comm::world()->barrier();
}

TEST(Heap, ManySizesLeaveFewDescriptorsBehind) {
  const int before = open_descriptors();
  for (int pages = 1; pages <= 200; ++pages) comm::world()->allocate({pages * 1024});
  EXPECT_LE(open_descriptors() - before, 40);
}

TEST(Split, NamesTheRankThatIsMissing) {
  const auto group = comm::world()->split(0, 0, {.name = "hurried", .timeout_s = 0.4});
  if (own_rank() != 1) {
    expect_error<TimeoutError>([&] { group->split(0); },
                               "split #1 (0 bytes) in group 'hurried' has waited 0.4 s for rank 1 ");
  }
  comm::world()->barrier();
}

// Those that wait for it need not wait until their deadline.
TEST(Failure, OfOneRankIsToldToTheOthers) {
  const auto group = comm::world()->split(0, 0, {.name = "told", .timeout_s = 1});
  const Tensor tensor = zeros({1000});
  if (own_rank() == 1) {
    expect_error<TimeoutError>([&] { group->recv(tensor, 0).wait(); }, "for rank 0 ");
  }
  comm::world()->barrier();
  if (own_rank() != 1) {
    expect_error<CommError>([&] { group->all_reduce(tensor).wait(); },
                            "all_reduce #1 (sum) of 1000 x float32 in group 'told': rank 1 has failed in an "
                            "operation of this group");
  }
  comm::world()->barrier();
}

// What comes late must not be written into memory that has been freed; AddressSanitizer sees it.
TEST(Timeout, LateRankWritesIntoNoFreedMemory) {
  auto group = comm::world()->split(0, 0, {.name = "late", .timeout_s = 0.3});
  if (own_rank() == 1) {
    std::this_thread::sleep_for(600ms);
    try {
      group->all_reduce(full({100}, 77)).wait();
    } catch (const Error&) {  // or not: what the others gave before they gave up may be enough
    }
  } else {
    expect_error<TimeoutError>([&] { group->all_reduce(zeros({100})).wait(); }, "for rank 1 ");
    group = nullptr;
  }
  comm::world()->exchange("");  // what has come is taken
}

TEST(Group, IsLetGoWhileOthersAreBusy) {
  Tensor tensor = ones({1000});
  for (int i = 0; i < 20; ++i) {
    auto group = comm::world()->split(0);
    const comm::Work work = comm::world()->all_reduce(tensor, comm::ReduceOp::kMax);
    group = nullptr;
    work.wait();
  }
  EXPECT_EQ(tensor.to_vector<float>(), std::vector<float>(1000, 1));
}

}  // namespace
}  // namespace tutti::testing
