// SPDX-License-Identifier: Apache-2.0
// Ranks that disagree: an error on all of them, with both sides named, before data moves.
#include <gtest/gtest.h>

#include <limits>

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "comm/ranks.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using comm::ReduceOp;
using test::own_rank;
using testing::expect_error;

// Runs `call` on all ranks; each must fail with a text that holds both parts, and the world must stay usable.
void expect_disagreement(const std::function<comm::Work()>& call, const std::string& first,
                         const std::string& second) {
  try {
    call().wait();
    ADD_FAILURE() << "no error on rank " << own_rank();
  } catch (const CommError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 0 " + first), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 " + second), std::string::npos) << text;
  }
  Tensor tensor = ones({100'000});
  comm::world()->all_reduce(tensor).wait();
  EXPECT_EQ(tensor.data<float>()[99'999], static_cast<float>(test::ranks()));
}

TEST(Mismatch, NumberOfElements) {
  Tensor tensor = zeros({own_rank() == 0 ? 65'536 : 32'768});
  expect_disagreement([&] { return comm::world()->all_reduce(tensor); }, "all_reduce", "all_reduce");
  try {
    comm::world()->all_reduce(tensor).wait();
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("65536 x float32"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("32768 x float32"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("'world'"), std::string::npos) << error.what();
  }
}

TEST(Mismatch, DType) {
  Tensor tensor = zeros({40}, own_rank() == 0 ? DType::kFloat32 : DType::kInt32);
  expect_disagreement([&] { return comm::world()->all_reduce(tensor); }, "all_reduce", "all_reduce");
}

TEST(Mismatch, Reduction) {
  Tensor tensor = zeros({40});
  const ReduceOp op = own_rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax;
  const auto issue = [&] { return comm::world()->all_reduce(tensor, op); };
  try {
    issue().wait();
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("(sum)"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("(max)"), std::string::npos) << error.what();
  }
}

TEST(Mismatch, Operation) {
  Tensor tensor = zeros({100'000});
  expect_disagreement(
      [&] {
        return own_rank() == 0 ? comm::world()->all_reduce(tensor) : comm::world()->broadcast(tensor, 0);
      },
      "all_reduce", "broadcast");
}

TEST(Mismatch, Root) {
  Tensor tensor = zeros({40});
  expect_disagreement([&] { return comm::world()->broadcast(tensor, own_rank() == 0 ? 0 : 1); }, "broadcast",
                      "broadcast");
}

TEST(Mismatch, AllocatedMemoryWithOtherSizes) {
  Tensor tensor = comm::world()->allocate({own_rank() == 0 ? 50'000 : 60'000});
  expect_disagreement([&] { return comm::world()->all_reduce(tensor); }, "all_reduce", "all_reduce");
}

// Sends and receives pair by themselves, so only the receiver can see it. The message is dropped; those behind it, of the same
// tag too, and the group's collectives are none the worse.
class MessageMismatch : public ::testing::TestWithParam<std::tuple<std::int64_t, bool>> {};
INSTANTIATE_TEST_SUITE_P(ElementsAndEarly, MessageMismatch,
                         ::testing::Combine(::testing::Values(0, 10, 300'000), ::testing::Bool()));

TEST_P(MessageMismatch, IsOneErrorOfTheReceiver) {
  const auto [count, is_early] = GetParam();
  const auto pair = comm::new_group({0, 1}, {.name = "pair"});
  if (pair == nullptr) return;
  constexpr int kTag = 3;
  if (own_rank() == 0) {
    if (!is_early) pair->barrier();
    const comm::Work wrong = pair->send(ones({count}), 1, kTag);
    const comm::Work right = pair->send(full({20}, 2), 1, kTag);
    if (is_early) pair->barrier();
    wrong.wait();
    right.wait();
  } else {
    const Tensor tensor = zeros({20});
    if (is_early) pair->barrier();
    const comm::Work wrong = pair->recv(tensor, 0, kTag);
    if (!is_early) pair->barrier();
    expect_error<CommError>(
        [&] { wrong.wait(); },
        concat("recv #1 from rank 0 of 20 x float32 with tag 3 in group 'pair': rank 0 has sent ", count,
               " x float32"));
    EXPECT_EQ(tensor.to_vector<int>(), std::vector<int>(20, 0));
    pair->recv(tensor, 0, kTag).wait();
    EXPECT_EQ(tensor.to_vector<int>(), std::vector<int>(20, 2));
  }
  const Tensor sum = ones({5});
  pair->all_reduce(sum).wait();
  EXPECT_EQ(sum.to_vector<int>(), std::vector<int>(5, 2));
}

TEST(Mismatch, MessageDType) {
  const auto pair = comm::new_group({0, 1}, {.name = "pair"});
  if (pair == nullptr) return;
  if (own_rank() == 0) {
    pair->send(zeros({20}), 1).wait();
  } else {
    expect_error<CommError>([&] { pair->recv(zeros({20}, DType::kInt32), 0).wait(); },
                            "20 x int32 with tag 0 in group 'pair': rank 0 has sent 20 x float32");
  }
  pair->barrier();
}

TEST(BadArguments, AreRefusedAtTheCall) {
  const auto world = comm::world();
  Tensor tensor = zeros({6});
  Tensor integers = zeros({6}, DType::kInt32);
  const int next = (own_rank() + 1) % world->size();
  expect_error<Error>([&] { world->all_reduce(Tensor()); }, "all_reduce: the tensor is undefined");
  expect_error<DTypeError>([&] { world->all_reduce(integers, ReduceOp::kMean); },
                           "all_reduce: the mean wants a floating-point tensor, given int32");
  expect_error<ValueError>([&] { world->all_reduce(tensor, static_cast<ReduceOp>(9)); },
                           "all_reduce: 9 is no ReduceOp");
  expect_error<ShapeError>([&] { world->allocate({-1}); }, "allocate: ");
  expect_error<Error>([&] { world->allocate({std::numeric_limits<std::int64_t>::max(), 2}); }, "allocate: ");
  expect_error<ValueError>(
      [&] { world->broadcast(tensor, world->size()); },
      concat("broadcast: root must be a rank from 0 to ", world->size() - 1, ", given ", world->size()));
  expect_error<ShapeError>([&] { world->all_gather(tensor, tensor); },
                           concat("all_gather: out must have ", world->size(),
                                  " times as many elements as in, given in [6] and out [6]"));
  expect_error<DTypeError>([&] { world->all_gather(tensor, integers); },
                           "all_gather: out is float32, in is int32");
  expect_error<ShapeError>([&] { world->reduce_scatter(tensor, tensor); },
                           concat("reduce_scatter: in must have ", world->size(),
                                  " times as many elements as out, given in [6] and out [6]"));
  expect_error<ValueError>([&] { world->send(tensor, own_rank()); },
                           concat("send: wanted another rank from 0 to ", world->size() - 1, ", given ",
                                  own_rank(), " on rank ", own_rank()));
  expect_error<ValueError>([&] { world->recv(tensor, -1); }, "recv: wanted another rank from 0 to ");
  expect_error<ValueError>([&] { world->send(tensor, next, -1); },
                           "send: the tag must be from 0 to 32000, given -1");
  expect_error<ValueError>([&] { world->split(0, 0, {.timeout_s = -1}); },
                           "split: timeout_s must not be negative, given -1");
  expect_error<ValueError>([&] { comm::new_group({}); }, "new_group: wanted at least one rank");
  expect_error<ValueError>([&] { comm::new_group({0, 0}); }, "new_group: rank 0 is given twice");
  expect_error<ValueError>(
      [&] {
        comm::new_group({0, world->size()});
      },
      concat("new_group: wanted ranks from 0 to ", world->size() - 1, ", given ", world->size()));
}

// At the call, so that the group stays usable; found while results are copied back it would not.
TEST(BadArguments, TensorsToBeWrittenWhoseElementsShareMemory) {
  const auto world = comm::world();
  const int size = world->size();
  const Tensor expanded = full({1, 4}, 3).expand({2 * size, 4});
  const Tensor whole = ones({2 * size, 4});
  const Tensor part = zeros({2, 4});
  const std::string which = "elements of the tensor to be written share memory (shape [";
  expect_error<ShapeError>(
      [&] { world->all_reduce(expanded); },
      concat("all_reduce: ", which, 2 * size, ", 4], strides [0, 1], an expanded view?)"));
  // On its root too, which only reads: it must not send what the others refuse to take.
  expect_error<ShapeError>([&] { world->broadcast(expanded, 0); }, "broadcast: " + which);
  expect_error<ShapeError>([&] { world->all_gather(expanded, part); }, "all_gather: " + which);
  expect_error<ShapeError>(
      [&] {
        world->reduce_scatter(part.select(0, 0).expand({2, 4}), whole);
      },
      "reduce_scatter: " + which);
  expect_error<ShapeError>([&] { world->recv(expanded, (own_rank() + 1) % size); }, "recv: " + which);
  world->all_reduce(whole).wait();
  EXPECT_EQ(whole.to_vector<int>(), std::vector<int>(static_cast<std::size_t>(8 * size), size));
}

// What is only read may be an expanded view.
TEST(Expanded, IsGathered) {
  const auto world = comm::world();
  const Tensor tensor = full({1, 4}, 3).expand({100, 4});
  const Tensor gathered = zeros({world->size() * 100, 4});
  world->all_gather(gathered, tensor).wait();
  EXPECT_EQ(gathered.sum().item<int>(), world->size() * 1200);
}

TEST(BadArguments, ATextThatIsTooLongForAnExchange) {
  const auto world = comm::world();
  const std::size_t longest = (std::size_t{32} << 20U) / static_cast<std::size_t>(world->size());
  expect_error<ValueError>([&] { world->exchange(std::string(longest + 1, 'x')); },
                           concat("exchange: wanted at most ", longest, " bytes of each of ", world->size(),
                                  " ranks, given ", longest + 1, " on rank ", own_rank()));
  for (const std::string& text : world->exchange(std::string(longest, 'x'))) EXPECT_EQ(text.size(), longest);
}

TEST(BadArguments, DifferentNewGroupsAreNamedOnEveryRank) {
  expect_error<CommError>([] { comm::new_group({own_rank() == 0 ? 0 : 1}); },
                          "new_group: rank 0 wants a group of ranks 0, rank 1 one of 1");
}

}  // namespace
}  // namespace tutti
