// SPDX-License-Identifier: Apache-2.0
// Averaged gradients against those of one process on the joined batch, and their bits under every option.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "parallel/nets.hpp"
#include "tutti/autograd/hooks.hpp"

namespace tutti::testing {
namespace {

using parallel::DistributedDataParallel;
using parallel::DistributedDataParallelOptions;

constexpr int kPerRank = 4;

SmallNet make_net(DType dtype, std::uint64_t seed = 7) {
  manual_seed(seed + static_cast<std::uint64_t>(own_rank()));  // construction must make the ranks equal
  SmallNet net;
  net.to(dtype);
  return net;
}

class Gradients : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BucketView, Gradients, ::testing::Bool());

TEST_P(Gradients, EqualThoseOfTheJoinedBatch) {
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kFloat64, 1e-12), std::pair(DType::kFloat32, 1e-6)}) {
    SmallNet net = make_net(dtype);
    DistributedDataParallel model{
        net, {.bucket_cap_mb = 0.004, .first_bucket_cap_mb = 0.0001, .gradient_as_bucket_view = GetParam()}};
    EXPECT_GT(model.bucket_bytes().size(), 2U);
    for (int step = 0; step < 3; ++step) {
      const Samples joined = joined_batch(kPerRank, dtype, static_cast<std::uint64_t>(step));
      const std::vector<Tensor> wanted = reference_gradients(net, joined);
      net.zero_grad();
      loss_of(model, own_part(joined, kPerRank)).backward();
      EXPECT_LE(largest_difference(gradients_of(net), wanted), tolerance) << name(dtype) << " step " << step;
      EXPECT_TRUE(same_on_all_ranks(gradients_of(net)));
    }
  }
}

std::vector<Tensor> gradients_with(const DistributedDataParallelOptions& options, int delay_ms = 0) {
  SmallNet net = make_net(DType::kFloat32);
  DistributedDataParallel model{net, options};
  std::vector<autograd::HookHandle> handles;
  for (const Tensor& parameter : net.parameters()) {
    handles.push_back(autograd::register_hook(parameter, [delay_ms](const Tensor&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms * own_rank()));
      return Tensor();
    }));
  }
  loss_of(model, own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)).backward();
  return copies(gradients_of(net));
}

TEST(GradientBits, DoNotDependOnBucketSizeViewsOrArrival) {
  const std::vector<Tensor> wanted = gradients_with({});
  EXPECT_TRUE(same_bits(wanted, gradients_with({})));
  EXPECT_TRUE(same_bits(wanted, gradients_with({.bucket_cap_mb = 0.00001, .first_bucket_cap_mb = 0.00001})));
  EXPECT_TRUE(same_bits(wanted, gradients_with({.bucket_cap_mb = 0.005})));
  EXPECT_TRUE(same_bits(wanted, gradients_with({.gradient_as_bucket_view = false})));
  EXPECT_TRUE(same_bits(wanted, gradients_with({.bucket_cap_mb = 0.001}, 3)));
}

TEST_P(Gradients, NoSyncAddsUpAndTheNextBackwardAverages) {
  SmallNet net = make_net(DType::kFloat64);
  DistributedDataParallel model{net, {.gradient_as_bucket_view = GetParam()}};
  const Samples first = joined_batch(kPerRank, DType::kFloat64, 1),
                second = joined_batch(kPerRank, DType::kFloat64, 2);
  std::vector<Tensor> wanted = reference_gradients(net, first);
  const std::vector<Tensor> more = reference_gradients(net, second);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted[i] + more[i];
  {
    const auto guard = model.no_sync();
    loss_of(model, own_part(first, kPerRank)).backward();
    EXPECT_TRUE(ranks() == 1 || !same_on_all_ranks(gradients_of(net)));
  }
  loss_of(model, own_part(second, kPerRank)).backward();
  EXPECT_LE(largest_difference(gradients_of(net), wanted), 1e-12);
}

TEST(Gradients, NoSyncCountsWhereBackwardRuns) {
  SmallNet net = make_net(DType::kFloat64);
  DistributedDataParallel model{net};
  const Samples part = own_part(joined_batch(kPerRank, DType::kFloat64), kPerRank);
  const Tensor loss = loss_of(model, part);
  {
    const auto guard = model.no_sync();
    loss.backward();
  }
  EXPECT_TRUE(ranks() == 1 || !same_on_all_ranks(gradients_of(net)));
  net.zero_grad();
  {
    const auto guard = model.no_sync(/*when=*/false);
    loss_of(model, part).backward();
  }
  EXPECT_TRUE(same_on_all_ranks(gradients_of(net)));
}

TEST_P(Gradients, AccumulateOverStepsWithoutZeroGrad) {
  SmallNet net = make_net(DType::kFloat64);
  DistributedDataParallel model{net, {.gradient_as_bucket_view = GetParam()}};
  const Samples joined = joined_batch(kPerRank, DType::kFloat64);
  std::vector<Tensor> wanted = reference_gradients(net, joined);
  for (Tensor& grad : wanted) grad = grad * 2;
  for (int i = 0; i < 2; ++i) loss_of(model, own_part(joined, kPerRank)).backward();
  EXPECT_LE(largest_difference(gradients_of(net), wanted), 1e-12);
}

TEST_P(Gradients, ZeroedInPlaceGivesTheSame) {
  SmallNet net = make_net(DType::kFloat64);
  DistributedDataParallel model{net, {.gradient_as_bucket_view = GetParam()}};
  const Samples joined = joined_batch(kPerRank, DType::kFloat64);
  const std::vector<Tensor> wanted = reference_gradients(net, joined);
  loss_of(model, own_part(joined, kPerRank)).backward();
  for (Tensor& grad : gradients_of(net)) grad.zero_();
  loss_of(model, own_part(joined, kPerRank)).backward();
  EXPECT_LE(largest_difference(gradients_of(net), wanted), 1e-12);
}

TEST(Gradients, TwoBackwardsOfOneForwardAddUp) {
  SmallNet net = make_net(DType::kFloat64);
  DistributedDataParallel model{net};
  const Samples joined = joined_batch(kPerRank, DType::kFloat64);
  std::vector<Tensor> wanted = reference_gradients(net, joined);
  for (Tensor& grad : wanted) grad = grad * 2;
  const Tensor loss = loss_of(model, own_part(joined, kPerRank));
  loss.backward({}, {.retain_graph = true});
  loss.backward();
  EXPECT_LE(largest_difference(gradients_of(net), wanted), 1e-12);
}

// Three branches, each a bucket or two of its own. A rank records them in its own order, so its gradients arrive in another order
// than those of other ranks, and not in the order of buckets.
struct Star : nn::Module<Star> {
  nn::Linear a{*this, "a", {.in_features = 36, .out_features = 5}};
  nn::Linear b{*this, "b", {.in_features = 36, .out_features = 5}};
  nn::Linear c{*this, "c", {.in_features = 36, .out_features = 5}};
  Tensor forward(const Tensor& x, int first) {
    nn::Linear* const branches[] = {&a, &b, &c};
    Tensor outputs[3];
    for (int i = 0; i < 3; ++i) {
      const int branch = (first + i) % 3;
      outputs[branch] = tanh((*branches[branch])(x.flatten(1)));
    }
    return outputs[0] + outputs[1] + outputs[2];
  }
};
TEST(Gradients, ArriveInAnyOrderOnAnyRank) {
  Star net;
  net.to(DType::kFloat64);
  DistributedDataParallel model{net, {.bucket_cap_mb = 0.00001, .first_bucket_cap_mb = 0.00001}};
  ASSERT_EQ(model.bucket_bytes().size(), 6U);
  for (int step = 0; step < 3; ++step) {
    const Samples joined = joined_batch(kPerRank, DType::kFloat64, static_cast<std::uint64_t>(step));
    const Samples part = own_part(joined, kPerRank);
    Star copy = net.clone();
    cross_entropy(copy(joined.inputs, 0), joined.targets).backward();
    net.zero_grad();
    cross_entropy(model(part.inputs, own_rank() + step), part.targets).backward();
    EXPECT_LE(largest_difference(gradients_of(net), gradients_of(copy)), 1e-12) << step;
  }
}

struct TiedNet : nn::Module<TiedNet> {
  nn::Linear a{*this, "a", {.in_features = 36, .out_features = 36}};
  nn::Linear b{*this, "b", {.in_features = 36, .out_features = 36, .bias = false}};
  TiedNet() { b.weight = a.weight; }
  Tensor forward(const Tensor& x) { return b(tanh(a(x.flatten(1)))).narrow(1, 0, 5); }
};
TEST(Gradients, TiedParameterIsReducedOnce) {
  TiedNet net;
  net.to(DType::kFloat64);
  DistributedDataParallel model{net};
  const Samples joined = joined_batch(kPerRank, DType::kFloat64);
  TiedNet copy = net.clone();
  loss_of(copy, joined).backward();
  loss_of(model, own_part(joined, kPerRank)).backward();
  EXPECT_LE(largest_difference(gradients_of(net), gradients_of(copy)), 1e-12);
}

TEST(Gradients, ChannelsLastParameterKeepsItsLayout) {
  SmallNet net = make_net(DType::kFloat64);
  net.conv.weight = net.conv.weight.detach().contiguous(MemoryFormat::kChannelsLast).requires_grad_();
  DistributedDataParallel model{net};
  const Samples joined = joined_batch(kPerRank, DType::kFloat64);
  const std::vector<Tensor> wanted = reference_gradients(net, joined);
  loss_of(model, own_part(joined, kPerRank)).backward();
  EXPECT_LE(largest_difference(gradients_of(net), wanted), 1e-12);
}

}  // namespace
}  // namespace tutti::testing
