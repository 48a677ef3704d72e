// SPDX-License-Identifier: Apache-2.0
// What a step's time is counted as, and what memory it takes.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "parallel/nets.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/data/data.hpp"
#include "tutti/device/memory.hpp"
#include "tutti/optim/adam.hpp"

namespace tutti::testing {
namespace {

using namespace std::chrono_literals;
using parallel::DistributedDataParallel;

constexpr int kPerRank = 3;
constexpr auto kDelay = 300ms;
constexpr double kLeastWait_s = 0.1;  // what is left of it if the others are slow themselves

double seconds_of(phase::Kind kind) {
  return static_cast<double>(phase::totals()[static_cast<std::size_t>(kind)]) * 1e-9;
}

// Seconds of `work` in which this thread waited for other ranks, where rank `late` begins it later than the others.
template <class Work>
double exposed_seconds(int late, const Work& work) {
  comm::world()->barrier();
  const double before = seconds_of(phase::Kind::kExposedCommunication);
  if (own_rank() == late) std::this_thread::sleep_for(kDelay);
  work();
  return seconds_of(phase::Kind::kExposedCommunication) - before;
}

TEST(ExposedCommunication, HoldsTheWaitForGradientsOfALateRank) {
  SmallNet net;
  DistributedDataParallel model{net};
  const Tensor loss = loss_of(model, own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank));
  const double exposed = exposed_seconds(1, [&] { loss.backward(); });
  EXPECT_TRUE(own_rank() == 1 || exposed >= kLeastWait_s) << exposed;
}

TEST(ExposedCommunication, HoldsTheWaitForBuffersOfALateRank) {
  nn::BatchNorm1d norm({.num_features = 2});
  DistributedDataParallel model{norm};
  const double exposed = exposed_seconds(0, [&] { model(ones({3, 2})); });
  EXPECT_TRUE(own_rank() == 0 || exposed >= kLeastWait_s) << exposed;
}

TEST(ExposedCommunication, HoldsAProgramsOwnWaits) {
  const double exposed = exposed_seconds(0, [] {
    Tensor value = ones({1});
    comm::world()->broadcast(value, 0).wait();
  });
  EXPECT_TRUE(own_rank() == 0 || exposed >= kLeastWait_s) << exposed;
}

struct NormalizedNet : nn::Module<NormalizedNet> {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", {.in_channels = 1, .out_channels = 4, .kernel_size = 3, .padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", {.num_features = 4}};
  nn::Linear fc{*this, "fc", {.in_features = 4 * 36, .out_features = 5}};
  Tensor forward(const Tensor& x) { return fc(relu(norm(conv(x))).flatten(1)); }
};

TEST(DistributedStep, TakesNoMemoryFromTheSystemOnceWarm) {
  constexpr int kSamples = 64;
  const Samples all = joined_batch(kSamples, DType::kFloat32);
  data::DataLoader loader{data::TensorDataset{all.inputs, all.targets},
                          {.batch_size = 4, .shuffle = true, .num_workers = 1}};
  NormalizedNet net;
  DistributedDataParallel model{net};
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  const auto pass = [&] {
    for (const auto& batch : loader) {
      optimizer.zero_grad();
      cross_entropy(model(batch.inputs), batch.targets).backward();
      optimizer.step();
    }
  };
  for (int i = 0; i < 2; ++i) pass();
  const MemoryStats warm = memory_stats();
  pass();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.system_allocations, warm.system_allocations);
  EXPECT_EQ(after.allocated_bytes, warm.allocated_bytes) << "a step leaves nothing behind";
  EXPECT_GT(after.allocations, warm.allocations);
}

}  // namespace
}  // namespace tutti::testing
