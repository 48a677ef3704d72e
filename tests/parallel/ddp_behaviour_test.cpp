// SPDX-License-Identifier: Apache-2.0
// What is equal at the start, when buckets leave, comm hooks, buffers, lifetimes.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "parallel/nets.hpp"
#include "parallel/replicas.hpp"
#include "support/errors.hpp"
#include "tutti/nn/containers.hpp"

namespace tutti::testing {
namespace {

using parallel::DistributedDataParallel;

constexpr int kPerRank = 3;

TEST(DistributedDataParallel, ConstructionMakesRanksEqual) {
  manual_seed(100 + static_cast<std::uint64_t>(own_rank()));
  nn::Sequential net{nn::Linear{{.in_features = 36, .out_features = 5}},
                     nn::BatchNorm1d{{.num_features = 5}}};
  net.buffers()[0].fill_(own_rank());
  EXPECT_TRUE(ranks() == 1 || !same_on_all_ranks(net.parameters()));
  DistributedDataParallel model{net};
  EXPECT_TRUE(same_on_all_ranks(net.parameters()));
  EXPECT_TRUE(same_on_all_ranks(net.buffers()));
  EXPECT_EQ(net.buffers()[0].to_vector<float>(), std::vector<float>(5, 0));
}

TEST(DistributedDataParallel, BuffersFollowRank0InTraining) {
  nn::BatchNorm1d norm({.num_features = 2});
  DistributedDataParallel model{norm};
  norm.running_mean.fill_(own_rank() + 1);
  norm.eval();
  model(ones({3, 2}));
  EXPECT_EQ(norm.running_mean.to_vector<float>()[0], static_cast<float>(own_rank() + 1));
  norm.train();
  model(zeros({3, 2}));
  EXPECT_FLOAT_EQ(norm.running_mean.to_vector<float>()[0], 0.9F);  // rank 0's 1, and a batch of zeros
}

// Small ones, which travel together, of several dtypes and layouts; and one that is sent alone.
struct Buffers : nn::Module<Buffers> {
  nn::Linear layer{*this, "layer", {.in_features = 2, .out_features = 2}};
  nn::Buffer matrix{*this, "matrix", full({4, 3}, own_rank())};
  nn::Buffer nothing{*this, "nothing", full({0, 3}, own_rank())};
  nn::Buffer integers{*this, "integers", full({4}, own_rank(), DType::kInt64)};
  nn::Buffer turned{*this, "turned", full({2, 5}, own_rank()).t()};
  nn::Buffer number{*this, "number", full({}, own_rank(), DType::kInt64)};
  nn::Buffer large{*this, "large", full({50'000}, own_rank())};
  Tensor forward(const Tensor& x) { return layer(x); }
};
TEST(DistributedDataParallel, BuffersOfAllKindsFollowRank0) {
  Buffers net;
  DistributedDataParallel model{net};
  ASSERT_EQ(net.buffers().size(), 6U);
  for (const Tensor& buffer : net.buffers()) {
    for (const int value : buffer.to_vector<int>()) ASSERT_EQ(value, 0);
  }
  int value = 7;
  for (Tensor& buffer : net.buffers()) buffer.fill_(own_rank() == 0 ? value++ : -1);
  model(ones({1, 2}));
  value = 7;
  for (const Tensor& buffer : net.buffers()) {
    EXPECT_EQ(buffer.to_vector<int>(), std::vector<int>(static_cast<std::size_t>(buffer.numel()), value++));
  }
}

TEST(DistributedDataParallel, BroadcastOfABufferCountsAsAWrite) {
  nn::BatchNorm1d norm({.num_features = 2});
  norm.train();
  DistributedDataParallel model{norm};
  const auto version = norm.running_mean.version();
  parallel::broadcast_tensors({norm.running_mean}, *comm::world());
  EXPECT_EQ(norm.running_mean.version() > version, own_rank() != 0);
}

TEST(DistributedDataParallel, ModuleMayReplaceItsBuffer) {
  nn::BatchNorm1d norm({.num_features = 2});
  DistributedDataParallel model{norm};
  norm.running_mean = full({2}, own_rank() + 1.0);
  model(zeros({3, 2}));
  EXPECT_FLOAT_EQ(norm.running_mean.to_vector<float>()[0], 0.9F);
}

TEST(DistributedDataParallel, GradientsAreViewsOfBuckets) {
  SmallNet net;
  DistributedDataParallel model{net};
  loss_of(model, own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)).backward();
  EXPECT_TRUE(net.conv.weight.grad().shares_storage(net.fc2.weight.grad()));
  const void* place = net.conv.weight.grad().raw_data();
  net.zero_grad();
  loss_of(model, own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)).backward();
  EXPECT_EQ(net.conv.weight.grad().raw_data(), place);
  for (const Tensor& grad : gradients_of(net))
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(grad.raw_data()) % 64, 0U);
}

// In the first step already, the first bucket leaves while the first layer has no gradient yet.
TEST(DistributedDataParallel, OverlapsFromTheFirstStep) {
  SmallNet net;
  DistributedDataParallel model{net, {.bucket_cap_mb = 0.0001, .first_bucket_cap_mb = 0.0001}};
  std::vector<std::size_t> order;
  std::vector<bool> first_layer_done;
  model.register_comm_hook([&](parallel::GradBucket& bucket) {
    order.push_back(bucket.index());
    first_layer_done.push_back(net.conv.weight.grad().defined());
    return bucket.group().all_reduce(bucket.buffer());
  });
  loss_of(model, own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)).backward();
  ASSERT_GE(order.size(), 3U);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  EXPECT_FALSE(first_layer_done.front());
  EXPECT_TRUE(first_layer_done.back());
}

TEST(DistributedDataParallel, CommHookSumsAndTheReducerDivides) {
  SmallNet net;
  DistributedDataParallel model{net};
  const Samples joined = joined_batch(kPerRank, DType::kFloat32);
  const std::vector<Tensor> wanted = reference_gradients(net, joined);
  model.register_comm_hook([](parallel::GradBucket& bucket) {
    const Tensor half = bucket.buffer().to(DType::kFloat16);
    const Tensor buffer = bucket.buffer();
    return bucket.group().all_reduce(half).then([buffer, half] { raw::copy(buffer, half); });
  });
  for (int step = 0; step < 3; ++step) {
    net.zero_grad();
    loss_of(model, own_part(joined, kPerRank)).backward();
    EXPECT_LE(largest_difference(gradients_of(net), wanted), 2e-3) << step;
    EXPECT_GT(largest_difference(gradients_of(net), wanted), 0) << "nothing was rounded: was the hook used?";
  }

  model.register_comm_hook(nullptr);  // the all-reduce again
  net.zero_grad();
  loss_of(model, own_part(joined, kPerRank)).backward();
  EXPECT_LE(largest_difference(gradients_of(net), wanted), 1e-6);
}

TEST(DistributedDataParallel, ModelMayOutliveItsWrapper) {
  SmallNet net;
  const Samples part = own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank);
  {
    DistributedDataParallel model{net};
    loss_of(model, part).backward();
  }
  net.zero_grad();
  loss_of(net, part).backward();
  EXPECT_TRUE(ranks() == 1 || !same_on_all_ranks(gradients_of(net)));
  DistributedDataParallel again{net};
  net.zero_grad();
  loss_of(again, part).backward();
  EXPECT_TRUE(same_on_all_ranks(gradients_of(net)));
}

// Its buckets have another dtype: that is said, in place of a gradient of the wrong one.
TEST(DistributedDataParallel, ConversionOfAWrappedModuleIsAnError) {
  for (const bool view : {false, true}) {
    nn::Linear net({.in_features = 4, .out_features = 2});
    DistributedDataParallel model{net, {.gradient_as_bucket_view = view}};
    model(ones({3, 4})).sum().backward();
    net.to(DType::kBFloat16);
    net.zero_grad();
    expect_error<AutogradError>(
        [&] {
          model(ones({3, 4}, DType::kBFloat16)).sum().backward();
        },
        "is bfloat16 on cpu, its bucket float32 on cpu; convert and move the module "
        "before wrapping it");
  }
}

TEST(DistributedDataParallel, FrozenParametersTakeNoPart) {
  SmallNet net;
  net.fc1.requires_grad_(false);
  DistributedDataParallel model{net};
  loss_of(model, own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)).backward();
  EXPECT_FALSE(net.fc1.weight.grad().defined());
  EXPECT_TRUE(same_on_all_ranks({net.conv.weight.grad(), net.fc2.weight.grad()}));
}

TEST(DistributedDataParallel, WithoutTrainableParametersIsRefused) {
  SmallNet net;
  net.requires_grad_(false);
  expect_error<ModuleError>([&] { DistributedDataParallel model{net}; }, "no parameter that requires grad");
}

TEST(DistributedDataParallel, CapsMustBePositive) {
  SmallNet net;
  expect_error<ValueError>([&] { DistributedDataParallel model(net, {.bucket_cap_mb = 0}); },
                           "bucket_cap_mb must be a positive number of MiB, given 0");
  expect_error<ValueError>([&] { DistributedDataParallel model(net, {.bucket_cap_mb = std::nan("")}); },
                           "bucket_cap_mb");
}

}  // namespace
}  // namespace tutti::testing
