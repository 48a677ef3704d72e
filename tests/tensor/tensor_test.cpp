// SPDX-License-Identifier: Apache-2.0
// The handle: ownership, what it tells, elements.
#include "tutti/tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/errors.hpp"
#include "tensor/raw.hpp"
#include "tutti/device/memory.hpp"

namespace tutti {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;
using tutti::testing::expect_error;

TEST(Tensor, UndefinedOneRefusesQuestions) {
  const Tensor x;
  EXPECT_FALSE(x.defined());
  EXPECT_EQ(error_of<Error>([&] { x.sizes(); }), "the tensor is undefined");
  expect_error<Error>([&] { x.dtype(); }, "the tensor is undefined");
  expect_error<Error>([&] { x.item(); }, "the tensor is undefined");
  expect_error<Error>([&] { x.is_contiguous(); }, "the tensor is undefined");
  EXPECT_FALSE(x.shares_storage(x));
}

TEST(Tensor, HandlesShareOneTensor) {
  const Tensor x = zeros({2});
  Tensor y = x;
  EXPECT_TRUE(y.is_same(x));
  y.data<float>()[0] = 5;
  EXPECT_EQ(raw::select(x, 0, 0).item(), 5);
  Tensor z = std::move(y);
  EXPECT_FALSE(y.defined());  // NOLINT: a moved-from handle is undefined by contract
  const Tensor& itself = z;   // an assignment that compilers do not see through
  z = itself;
  EXPECT_TRUE(z.is_same(x));
}

TEST(Tensor, MemoryIsFreedWithTheLastHandle) {
  const MemoryStats before = memory_stats();
  {
    Tensor x = empty({1000});
    const Tensor y = raw::view(x, {10, 100});
    x = Tensor();
    EXPECT_EQ(memory_stats().allocated_bytes - before.allocated_bytes, 4096);
  }
  EXPECT_EQ(memory_stats().allocated_bytes, before.allocated_bytes);
}

TEST(Tensor, HandlesMayBeCopiedAndDroppedByManyThreads) {
  const MemoryStats before = memory_stats();
  {
    const Tensor x = ones({4});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([x] {
        for (int i = 0; i < 20000; ++i) {
          const Tensor copy = x;
          const Tensor view = raw::select(copy, 0, i % 4);
          ASSERT_EQ(view.data<float>()[0], 1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(x.impl()->references.load(), 1);
  }
  EXPECT_EQ(memory_stats().allocated_bytes, before.allocated_bytes);
}

TEST(Tensor, WarmStepMakesNoSystemAllocation) {
  const auto step = [] {
    const Tensor x = randn({64, 784});
    const Tensor y = raw::to_dtype(x, DType::kFloat16);
    const Tensor z = raw::sum_to_size(raw::clone(x), {784});
  };
  step();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(memory_stats().system_allocations, before.system_allocations);
}

TEST(Tensor, SizesAndStridesCountFromTheEnd) {
  const Tensor x = empty({2, 3, 4});
  EXPECT_EQ(x.size(-1), 4);
  EXPECT_EQ(x.size(0), 2);
  EXPECT_EQ(x.stride(-3), 12);
  EXPECT_EQ(error_of<IndexError>([&] { x.size(3); }), "size: dim 3 is not in [-3, 2], the tensor has 3 dims");
  EXPECT_EQ(error_of<IndexError>([] { empty({}).size(0); }), "size: a 0-dim tensor has no dim 0");
  expect_error<IndexError>([] { empty({}).stride(-1); }, "stride: a 0-dim tensor has no dim -1");
}

TEST(Tensor, ContiguousIgnoresDimsOfSizeOne) {
  EXPECT_TRUE(empty_strided({1, 3}, {100, 1}).is_contiguous());
  EXPECT_TRUE(empty_strided({3, 1}, {1, 100}).is_contiguous());
  EXPECT_TRUE(empty_strided({0, 3}, {1, 100}).is_contiguous());
  EXPECT_FALSE(empty_strided({3, 2}, {1, 3}).is_contiguous());
  EXPECT_TRUE(empty({}).is_contiguous());
}

TEST(Tensor, ChannelsLastIsAnOrderOfFourDims) {
  const Tensor last = empty_strided({2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(empty({2, 3, 4, 5}).is_contiguous(MemoryFormat::kChannelsLast));
  // One channel: both orders are the same memory.
  EXPECT_TRUE(empty({2, 1, 4, 5}).is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(empty({2, 3, 4}).is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_TRUE(empty({0, 3, 4, 5}).is_contiguous(MemoryFormat::kChannelsLast));
}

TEST(Tensor, DataChecksTheDtype) {
  const Tensor x = zeros({2});
  EXPECT_EQ(x.data<float>(), x.raw_data());
  EXPECT_EQ(error_of<DTypeError>([&] { x.data<double>(); }),
            "data: the tensor is float32, asked for as float64");
}

TEST(Item, ConvertsEveryDtype) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                            DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8}) {
    const Tensor x = full({1, 1}, 3, dtype);
    EXPECT_EQ(x.item(), 3.0) << name(dtype);
    EXPECT_EQ(x.item<int>(), 3) << name(dtype);
    EXPECT_TRUE(x.item<bool>()) << name(dtype);
    EXPECT_EQ(x.item_scalar().is_floating_point(), is_floating_point(dtype)) << name(dtype);
  }
  EXPECT_TRUE(full({}, true, DType::kBool).item<bool>());
  EXPECT_TRUE(scalar_tensor(0.5).item<bool>());
  EXPECT_EQ(scalar_tensor(INT64_MAX).item<std::int64_t>(), INT64_MAX);
  EXPECT_EQ(scalar_tensor(-1.9).item<int>(), -1);
}

TEST(Item, WantsOneElement) {
  EXPECT_EQ(error_of<ShapeError>([] {
              zeros({2, 3}).item();
            }),
            "item: wanted a tensor of one element, given shape [2, 3]");
  expect_error<ShapeError>([] { zeros({0}).item(); },
                           "item: wanted a tensor of one element, given shape [0]");
}

TEST(ToVector, ReadsStridesAndConverts) {
  const Tensor x = raw::transpose(raw::view(arange(6), {2, 3}), 0, 1);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.to_vector<bool>(), (std::vector<bool>{false, true, true, true, true, true}));
  EXPECT_EQ(empty({0, 2}).to_vector<float>(), std::vector<float>{});
}

TEST(PackedSlot, BelongsToTheStorage) {
  static int destroyed = 0;
  {
    const Tensor weight = zeros({4, 4});
    tutti_packed_slot* slot = raw::packed_slot(weight);
    EXPECT_EQ(slot->handle, nullptr);
    EXPECT_EQ(raw::packed_slot(raw::transpose(weight, 0, 1)), slot);
    static int packed = 0;
    slot->handle = &packed;
    slot->destroy = [](void* handle) { destroyed += handle == &packed ? 1 : 100; };
  }
  EXPECT_EQ(destroyed, 1);
}

TEST(PackedSlot, IsMadeOnceByManyThreads) {
  for (int round = 0; round < 200; ++round) {
    const Tensor weight = zeros({4});
    std::vector<tutti_packed_slot*> slots(3);
    std::vector<std::thread> threads;
    for (tutti_packed_slot*& slot : slots) {
      threads.emplace_back([&slot, &weight] { slot = raw::packed_slot(weight); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(slots[0], slots[1]);
    ASSERT_EQ(slots[0], slots[2]);
  }
}

// Destroyed after main().
struct StaticTensors {
  std::vector<Tensor> tensors;
  ~StaticTensors() {
    tensors.clear();
    const Tensor late = zeros({3});
  }
};
StaticTensors static_tensors;

TEST(Tensor, StaticOnesMayDieLate) {
  for (int i = 0; i < 100; ++i) static_tensors.tensors.push_back(zeros({i * 100}));
}

}  // namespace
}  // namespace tutti
