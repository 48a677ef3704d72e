// SPDX-License-Identifier: Apache-2.0
// What becomes of a reduction that fails on its way between hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
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

}  // namespace
}  // namespace tutti::testing
