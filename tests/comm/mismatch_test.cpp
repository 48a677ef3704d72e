// SPDX-License-Identifier: Apache-2.0
// Ranks that disagree: an error on all of them, with both sides named, before data moves.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "comm/ranks.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using comm::ReduceOp;
using test::own_rank;

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

TEST(Mismatch, MessageLength) {
  // Sends and receives pair by themselves, so only the receiver can see it.
  const auto pair = comm::new_group({0, 1});
  if (pair == nullptr) return;
  if (own_rank() == 0) {
    pair->send(zeros({10}), 1).wait();
  } else {
    Tensor tensor = zeros({20});
    try {
      pair->recv(tensor, 0).wait();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_NE(std::string(error.what()).find("20 x float32"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("has sent 10 x float32"), std::string::npos) << error.what();
    }
  }
}

TEST(BadArguments, AreRefusedAtTheCall) {
  const auto world = comm::world();
  Tensor tensor = zeros({6});
  Tensor integers = zeros({6}, DType::kInt32);
  EXPECT_THROW(world->all_reduce(Tensor()), Error);
  EXPECT_THROW(world->all_reduce(integers, ReduceOp::kMean), DTypeError);
  EXPECT_THROW(world->broadcast(tensor, world->size()), ValueError);
  EXPECT_THROW(world->all_gather(tensor, tensor), ShapeError);
  EXPECT_THROW(world->reduce_scatter(tensor, tensor), ShapeError);
  EXPECT_THROW(world->send(tensor, own_rank()), ValueError);
  EXPECT_THROW(world->recv(tensor, -1), ValueError);
  EXPECT_THROW(world->send(tensor, (own_rank() + 1) % world->size(), -1), ValueError);
  EXPECT_THROW(comm::new_group({}), ValueError);
  EXPECT_THROW(comm::new_group({0, 0}), ValueError);
}

}  // namespace
}  // namespace tutti
