// SPDX-License-Identifier: Apache-2.0
// A program that no launcher has started.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/errors.hpp"
#include "tutti/comm/environment.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

TEST(WorldOfOne, ExistsWithoutAnEnvironment) {
  const auto world = comm::world();
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->rank(), 0);
  EXPECT_STREQ(world->backend(), "self");
  EXPECT_EQ(world, comm::world());
}

TEST(WorldOfOne, CollectivesLeaveOrCopyTheTensor) {
  const auto world = comm::world();
  Tensor tensor = arange(5);
  for (const auto op : {comm::ReduceOp::kSum, comm::ReduceOp::kMax, comm::ReduceOp::kProduct})
    world->all_reduce(tensor, op).wait();
  world->broadcast(tensor, 0).wait();
  EXPECT_EQ(tensor.to_vector<int>(), (std::vector<int>{0, 1, 2, 3, 4}));
  Tensor out = zeros({5}, DType::kInt64);
  world->all_gather(out, tensor).wait();
  EXPECT_EQ(out.to_vector<int>(), tensor.to_vector<int>());
  out.zero_();
  world->reduce_scatter(out, tensor).wait();
  EXPECT_EQ(out.to_vector<int>(), tensor.to_vector<int>());
  world->barrier();
  EXPECT_EQ(world->exchange("x"), std::vector<std::string>{"x"});
  EXPECT_EQ(world->split(1)->size(), 1);
  EXPECT_EQ(world->split(-1), nullptr);
  testing::expect_error<ValueError>([&] { world->send(tensor, 0); },
                                    "send: wanted another rank from 0 to 0, given 0 on rank 0");
}

TEST(WorldOfOne, SplitTakesTheOptions) {
  const auto named = comm::world()->split(0, 0, {.name = "mine", .timeout_s = 3});
  EXPECT_EQ(named->name(), "mine");
  EXPECT_EQ(named->timeout_s(), 3);
  const auto unnamed = named->split(5);
  EXPECT_EQ(unnamed->name(), "mine/0.5");
  EXPECT_EQ(unnamed->timeout_s(), 3);
}

TEST(WorldOfOne, ThenRunsAtOnceAndKeepsItsException) {
  int calls = 0;
  comm::Work().then([&] { ++calls; }).wait();
  EXPECT_EQ(calls, 1);
  const comm::Work failed = comm::Work().then([] { throw ValueError("no"); });
  EXPECT_TRUE(failed.is_completed());
  testing::expect_error<ValueError>([&] { failed.wait(); }, "no");
}

TEST(WorldOfOne, ThenOfAnEmptyFunctionIsRefused) {
  testing::expect_error<ValueError>([] { comm::Work().then(nullptr); }, "then: the function is empty");
}

TEST(Environment, TakesItsOptionOutOfTheArguments) {
  std::string texts[] = {"program", "--device", "cpu", "data", "--epochs=3", "--device=cpu"};
  char* arguments[] = {texts[0].data(), texts[1].data(), texts[2].data(), texts[3].data(),
                       texts[4].data(), texts[5].data(), nullptr};
  int argc = 6;
  char** argv = arguments;
  const Environment environment(argc, argv);
  EXPECT_EQ(argc, 3);
  EXPECT_STREQ(argv[1], "data");
  EXPECT_STREQ(argv[2], "--epochs=3");
  EXPECT_EQ(argv[3], nullptr);
  EXPECT_TRUE(environment.device().is_cpu());
  EXPECT_EQ(environment.size(), 1);
  EXPECT_STREQ(environment.launcher(), "none");
}

TEST(Environment, LeavesConstantArgumentsAlone) {
  std::string texts[] = {"program", "--device", "cpu"};
  char* const arguments[] = {texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  const int argc = 3;
  const Environment environment(argc, arguments);
  EXPECT_TRUE(environment.device().is_cpu());
}

TEST(Environment, RefusesBadDevices) {
  std::string texts[] = {"program", "--device"};
  char* const arguments[] = {texts[0].data(), texts[1].data(), nullptr};
  const int argc = 2;
  testing::expect_error<ValueError>([&] { const Environment environment(argc, arguments); },
                                    "--device wants cpu, cuda or cuda:N after it");
  EXPECT_EQ(Environment::current(), nullptr);
  ::setenv("TUTTI_DEVICE", "toaster", 1);
  testing::expect_error<DeviceError>([] { const Environment environment; }, "toaster");
  ::unsetenv("TUTTI_DEVICE");
}

TEST(Environment, IsOneAtATime) {
  const Environment first;
  EXPECT_EQ(Environment::current(), &first);
  testing::expect_error<Error>([] { const Environment second; },
                               "an Environment lives already: a process has one at a time");
}

}  // namespace
}  // namespace tutti
