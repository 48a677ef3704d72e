// SPDX-License-Identifier: Apache-2.0
// What becomes of a reduction that fails on its way between hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/alone.hpp"
#include "comm/host.hpp"
#include "comm/shm/heap.hpp"
#include "comm/shm/shm_transport.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::testing {
namespace {

constexpr std::int64_t kCount = 100;

// Another host that is late; what it sends arrives after this one has given up.
class LateHost final : public comm::Bridge {
 public:
  explicit LateHost(float*& data) : data_(data) {}
  void all_reduce(const comm::Contract&, DType, comm::ReduceOp, void* data, std::int64_t) override {
    data_ = static_cast<float*>(data);
    std::fill_n(data_, kCount, 7.0F);
    tutti::detail::fail<TimeoutError>("the other host is late");
  }
  void give_up() noexcept override {}

 private:
  float*& data_;
};

TEST(Bridge, MemoryOfAFailedReductionOfHalvesIsKept) {
  const Deadline deadline(10);
  Alone alone;
  const std::shared_ptr<comm::Host> host = comm::Host::create(alone, deadline);
  ASSERT_TRUE(host->shares_memory()) << host->reason();
  auto transport = std::make_unique<comm::ShmTransport>(
      alone, deadline, std::make_shared<comm::Waiter>(host, "halves", std::vector<int>{0}, 10),
      std::make_shared<comm::SharedHeap>());
  float* between_hosts = nullptr;
  transport->set_bridge(std::make_unique<LateHost>(between_hosts), 2);
  comm::Contract contract;
  contract.operation = comm::Operation::kAllReduce;
  contract.dtype = DType::kFloat16;
  contract.count = kCount;
  const Tensor tensor = ones({kCount}, DType::kFloat16);
  expect_error<TimeoutError>([&] { transport->all_reduce(contract, tensor.data<Half>()); }, "is late");
  transport = nullptr;
  // Freed memory would hold something else, or belong to others.
  const std::vector<float> others(kCount, 1.0F);
  const std::span<const float> late(between_hosts, kCount);
  EXPECT_TRUE(std::all_of(late.begin(), late.end(), [](float value) { return value == 7.0F; }));
  EXPECT_NE(others.data(), between_hosts);
}

// The meeting of two ranks that are threads of this process.
class Thread final : public comm::Bootstrap {
 public:
  struct Meeting {
    std::barrier<> barrier{2};
    std::vector<std::string> texts = std::vector<std::string>(2);
  };
  Thread(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return 2; }
  std::vector<std::string> exchange(const std::string& bytes, const Deadline&, const char*) override {
    meeting_.texts[static_cast<std::size_t>(rank_)] = bytes;
    meeting_.barrier.arrive_and_wait();
    std::vector<std::string> all = meeting_.texts;
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  std::unique_ptr<comm::Bootstrap> subset(const std::vector<int>&, const std::string&,
                                          const Deadline&) override {
    return nullptr;
  }

 private:
  Meeting& meeting_;
  int rank_;
};

// Ranks of one host among those of several have numbers of their own; messages have the group's.
TEST(Waiter, NamesRanksAsTheGroupNumbersThem) {
  const Deadline passed(0);
  Alone alone;
  const std::shared_ptr<comm::Host> host = comm::Host::create(alone, Deadline(10));
  const comm::Waiter waiter(host, "world", {4, 5}, 10, {2, 3});
  comm::Contract contract;
  contract.operation = comm::Operation::kAllReduce;
  expect_error<TimeoutError>([&] { waiter.check(contract, {1}, passed); },
                             "in group 'world' has waited 0 s for rank 3 ");
  expect_error<TimeoutError>([&] { waiter.check(contract, {0, 1}, passed); }, "for ranks 2 and 3 ");
}

TEST(SharedMemory, NamesTheRankThatHasFailedAsTheGroupNumbersIt) {
  Thread::Meeting meeting;
  std::string message;
  const auto run_rank = [&](int rank) {
    const Deadline deadline(10);
    Thread bootstrap(meeting, rank);
    const auto host = comm::Host::create(bootstrap, deadline);
    const auto waiter =
        std::make_shared<comm::Waiter>(host, "world", std::vector{0, 1}, 10, std::vector{2, 3});
    comm::ShmTransport transport(bootstrap, deadline, waiter, std::make_shared<comm::SharedHeap>());
    if (rank == 1) {
      transport.give_up();
    } else {
      message = error_of<CommError>([&] { transport.barrier(comm::Contract{}); });
    }
    bootstrap.barrier(deadline, "the end");
  };
  std::thread other(run_rank, 1);
  run_rank(0);
  other.join();
  EXPECT_EQ(message, "barrier #0 in group 'world': rank 3 has failed in an operation of this group");
}

}  // namespace
}  // namespace tutti::testing
