// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "comm/job.hpp"
#include "comm/ranks.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using comm::ReduceOp;
using comm::Work;
using test::element;
using test::filled;
using test::own_rank;
using test::ranks;
using testing::expect_error;

// 65,537 float32 are a chunk of two ranks' stages and one element more, 70,001 float64 more than two chunks;
// 2 KiB is where tensors begin to be used in place.
const std::int64_t kCounts[] = {0, 1, 3, 17, 1000, 4096, 4097, 65'537, 70'001};

template <class T>
void expect_reduced(const Tensor& tensor, ReduceOp op, const std::string& what) {
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const T wanted = test::reduced<T>(op, i);
    const T given = tensor.data<T>()[i];
    ASSERT_EQ(std::memcmp(&wanted, &given, sizeof(T)), 0)
        << what << " of " << name(tensor.dtype()) << ", element " << i << " of " << tensor.numel()
        << ": wanted " << static_cast<double>(wanted) << ", given " << static_cast<double>(given);
  }
}

template <class T>
class Collectives : public ::testing::Test {};
using AllDTypes = ::testing::Types<double, float, Half, BFloat16, std::int64_t, std::int32_t, std::int16_t,
                                   std::int8_t, std::uint8_t, bool>;
TYPED_TEST_SUITE(Collectives, AllDTypes);

TYPED_TEST(Collectives, AllReduceEqualsTheReductionInRankOrder) {
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct}) {
    if (op == ReduceOp::kMean && !is_floating_point(dtype_of<TypeParam>)) continue;
    for (const std::int64_t count : kCounts) {
      Tensor tensor = filled<TypeParam>(own_rank(), count);
      comm::world()->all_reduce(tensor, op).wait();
      expect_reduced<TypeParam>(tensor, op, comm::name(op));
    }
  }
}

TYPED_TEST(Collectives, AllReduceInAllocatedMemoryGivesTheSameBits) {
  for (const std::int64_t count : kCounts) {
    Tensor tensor = comm::world()->allocate({count}, dtype_of<TypeParam>);
    tensor.copy_(filled<TypeParam>(own_rank(), count));
    comm::world()->all_reduce(tensor).wait();
    expect_reduced<TypeParam>(tensor, ReduceOp::kSum, "sum in place");
  }
}

TYPED_TEST(Collectives, BroadcastCopiesTheRootsTensor) {
  for (int root = 0; root < ranks(); ++root) {
    for (const std::int64_t count : kCounts) {
      Tensor tensor = filled<TypeParam>(own_rank(), count);
      comm::world()->broadcast(tensor, root).wait();
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(tensor.data<TypeParam>()[i], element<TypeParam>(root, i));
    }
  }
}

TYPED_TEST(Collectives, AllGatherLinesUpAllParts) {
  for (const std::int64_t count : kCounts) {
    const Tensor part = filled<TypeParam>(own_rank(), count);
    Tensor all = empty({ranks(), count}, dtype_of<TypeParam>);
    comm::world()->all_gather(all, part).wait();
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(all.data<TypeParam>()[rank * count + i], element<TypeParam>(rank, i)) << "part " << rank;
      }
    }
  }
}

TYPED_TEST(Collectives, ReduceScatterGivesEachRankItsPartOfTheSum) {
  for (const std::int64_t count : kCounts) {
    const Tensor all = filled<TypeParam>(own_rank(), count * ranks());
    Tensor part = empty({count}, dtype_of<TypeParam>);
    comm::world()->reduce_scatter(part, all).wait();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto wanted = test::reduced<TypeParam>(ReduceOp::kSum, own_rank() * count + i, ranks());
      ASSERT_EQ(std::memcmp(&wanted, part.data<TypeParam>() + i, sizeof wanted), 0) << "element " << i;
    }
  }
}

TYPED_TEST(Collectives, MessagesArriveWhole) {
  for (const std::int64_t count : kCounts) {
    const int next = (own_rank() + 1) % ranks();
    const int previous = (own_rank() + ranks() - 1) % ranks();
    Tensor received = empty({count}, dtype_of<TypeParam>);
    const Work send = comm::world()->send(filled<TypeParam>(own_rank(), count), next);
    comm::world()->recv(received, previous).wait();
    send.wait();
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(received.data<TypeParam>()[i], element<TypeParam>(previous, i));
  }
}

TEST(AllReduce, BitsDoNotDependOnWhereAnElementLies) {
  constexpr std::int64_t kCount = 300'000;
  Tensor whole = filled<float>(own_rank(), kCount);
  Tensor parts = filled<float>(own_rank(), kCount);
  comm::world()->all_reduce(whole).wait();
  for (std::int64_t begin = 0; begin < kCount; begin += 77'777) {
    Tensor part = parts.narrow(0, begin, std::min<std::int64_t>(77'777, kCount - begin));
    comm::world()->all_reduce(part).wait();
  }
  EXPECT_EQ(std::memcmp(whole.raw_data(), parts.raw_data(), kCount * sizeof(float)), 0);
}

TEST(AllReduce, SomeRanksInAllocatedMemoryAndSomeNot) {
  constexpr std::int64_t kCount = 100'000;
  Tensor tensor = own_rank() == 0 ? comm::world()->allocate({kCount}) : empty({kCount});
  tensor.copy_(filled<float>(own_rank(), kCount));
  comm::world()->all_reduce(tensor).wait();
  expect_reduced<float>(tensor, ReduceOp::kSum, "mixed memory");
}

TEST(AllReduce, ViewInsideAllocatedMemoryIsReducedAlone) {
  constexpr std::int64_t kCount = 50'000;
  Tensor bucket = comm::world()->allocate({3 * kCount});
  bucket.fill_(7);
  Tensor middle = bucket.narrow(0, kCount, kCount);
  middle.copy_(filled<float>(own_rank(), kCount));
  comm::world()->all_reduce(middle).wait();
  expect_reduced<float>(middle, ReduceOp::kSum, "view");
  EXPECT_EQ(bucket.data<float>()[kCount - 1], 7);
  EXPECT_EQ(bucket.data<float>()[2 * kCount], 7);
}

TEST(AllReduce, NonContiguousTensorIsReducedInItsOwnLayout) {
  Tensor base = filled<float>(own_rank(), 600).view({20, 30});
  Tensor transposed = base.t();
  comm::world()->all_reduce(transposed).wait();
  expect_reduced<float>(base.flatten(), ReduceOp::kSum, "transposed");
}

TEST(AllReduce, NaNOfAnyRankSurvivesMaximumAndMinimum) {
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    Tensor tensor = full({ranks()}, 1.0);
    tensor.data<float>()[own_rank()] = std::numeric_limits<float>::quiet_NaN();
    comm::world()->all_reduce(tensor, op).wait();
    for (int i = 0; i < ranks(); ++i) EXPECT_TRUE(std::isnan(tensor.data<float>()[i]));
  }
}

TEST(AllReduce, HalfSumIsRoundedOnce) {
  // 2048 + 1 + 1 (+ ...) rounds to 2048 after each step in binary16, but once at the end in float32.
  Tensor tensor = full({5}, own_rank() == 0 ? 2048.0 : 1.0, DType::kFloat16);
  comm::world()->all_reduce(tensor).wait();
  EXPECT_EQ(static_cast<float>(tensor.data<Half>()[4]),
            static_cast<float>(Half(2048.0F + static_cast<float>(ranks() - 1))));
}

// When it is issued, since it may write from then on; and when it is done, since its values are other ones then.
TEST(AllReduce, CountsAsAWriteAtBothEnds) {
  Tensor tensor = zeros({4});
  const auto before = tensor.version();
  const Work work = comm::world()->all_reduce(tensor);
  EXPECT_GT(tensor.version(), before);
  work.wait();
  EXPECT_EQ(tensor.version(), before + 2);
}

TEST(Queue, ManyOperationsInFlightEndInOrder) {
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < 100; ++i) {
    tensors.push_back(full({1 + i * 37}, own_rank() + i));
    works.push_back(comm::world()->all_reduce(tensors.back()));
  }
  works.back().wait();
  for (int i = 0; i < 100; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    EXPECT_TRUE(works[at].is_completed());
    EXPECT_EQ(tensors[at].data<float>()[0], static_cast<float>(ranks() * (ranks() - 1) / 2 + i * ranks()));
  }
}

// The communication thread does it, also where it shares its core with this one and has just been at rest.
TEST(Queue, OperationsThatNobodyWaitsForEndSoon) {
  Tensor waited_for = ones({10});
  comm::world()->all_reduce(waited_for).wait();
  Tensor tensor = ones({10});
  const Work work = comm::world()->all_reduce(tensor);
  const auto start = std::chrono::steady_clock::now();
  while (!work.is_completed() && std::chrono::steady_clock::now() - start < std::chrono::seconds(5))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(work.is_completed());
  EXPECT_EQ(tensor.data<float>()[9], static_cast<float>(ranks()));
}

TEST(Queue, ThenRunsAfterItsWorkAndMayCommunicate) {
  Tensor first = full({1000}, 1.0);
  Tensor second = full({10}, 1.0);
  float seen = 0;
  const Work work = comm::world()->all_reduce(first).then([&] {
    seen = first.data<float>()[999];
    comm::world()->all_reduce(second).wait();
  });
  work.wait();
  EXPECT_EQ(seen, static_cast<float>(ranks()));
  EXPECT_EQ(second.data<float>()[0], static_cast<float>(ranks()));
}

// Whether the function runs before or after this thread issues more differs between ranks; that they agree must not depend on it.
TEST(Queue, ThenCommunicatesWhileMoreIsIssued) {
  for (int i = 0; i < 30; ++i) {
    Tensor first = ones({10});
    Tensor inner = ones({20});
    Tensor later = ones({30});
    const Work work = comm::world()->all_reduce(first).then([&] { comm::world()->all_reduce(inner).wait(); });
    if (own_rank() == 1) std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    const Work last = comm::world()->all_reduce(later);
    work.wait();
    last.wait();
    EXPECT_EQ(inner.data<float>()[19], static_cast<float>(ranks()));
    EXPECT_EQ(later.data<float>()[29], static_cast<float>(ranks()));
  }
}

TEST(Queue, ThenAfterAReceiveSeesItsMessage) {
  if (own_rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    comm::world()->send(full({100'000}, 7.0), 1).wait();
  } else if (own_rank() == 1) {
    Tensor received = zeros({100'000});
    float seen = 0;
    comm::world()->recv(received, 0).then([&] { seen = received.data<float>()[99'999]; }).wait();
    EXPECT_EQ(seen, 7.0F);
  }
  comm::world()->barrier();
}

TEST(Queue, ThenHandsItsExceptionOn) {
  Tensor tensor = ones({8});
  const Work work = comm::world()->all_reduce(tensor).then([] { throw ValueError("from the hook"); });
  expect_error<ValueError>([&] { work.wait(); }, "from the hook");
  const Work next = work.then([] { FAIL() << "ran after a failure"; });
  expect_error<ValueError>([&] { next.wait(); }, "from the hook");
  comm::world()->all_reduce(tensor).wait();  // the group goes on
}

TEST(Queue, ThreadsMayWaitAtOnce) {
  Tensor tensor = full({200'000}, 1.0);
  const Work work = comm::world()->all_reduce(tensor);
  std::thread other([&] { work.wait(); });
  work.wait();
  other.join();
  EXPECT_EQ(tensor.data<float>()[0], static_cast<float>(ranks()));
}

TEST(Messages, BothDirectionsAtOnceDoNotBlockOneAnother) {
  constexpr std::int64_t kCount = 500'000;  // far more than a mailbox holds
  const int peer = own_rank() == 0 ? 1 : 0;
  if (own_rank() < 2) {
    Tensor received = empty({kCount});
    const Tensor sent = filled<float>(own_rank(), kCount);
    const Work send = comm::world()->send(sent, peer);
    comm::world()->recv(received, peer).wait();
    send.wait();
    for (std::int64_t i = 0; i < kCount; i += 99)
      ASSERT_EQ(received.data<float>()[i], element<float>(peer, i));
  }
  comm::world()->barrier();
}

TEST(Messages, CollectivesOvertakeWaitingReceives) {
  Tensor received = zeros({100'000});
  Work receive;
  if (own_rank() == 0) receive = comm::world()->recv(received, 1);
  Tensor tensor = ones({10});
  comm::world()->all_reduce(tensor).wait();
  if (own_rank() == 1) comm::world()->send(full({100'000}, 5.0), 0).wait();
  receive.wait();
  if (own_rank() == 0) {
    EXPECT_EQ(received.data<float>()[99'999], 5.0F);
  }
}

TEST(Messages, TagsTellMessagesApart) {
  if (own_rank() == 0) {
    const Work first = comm::world()->send(full({50'000}, 1.0), 1, /*tag=*/1);
    const Work second = comm::world()->send(full({50'000}, 2.0), 1, /*tag=*/2);
    const Work third = comm::world()->send(full({50'000}, 3.0), 1, /*tag=*/1);
    first.wait();
    second.wait();
    third.wait();
  } else if (own_rank() == 1) {
    Tensor two = zeros({50'000});
    Tensor one = zeros({50'000});
    Tensor three = zeros({50'000});
    comm::world()->recv(two, 0, 2).wait();
    comm::world()->recv(one, 0, 1).wait();
    comm::world()->recv(three, 0, 1).wait();
    EXPECT_EQ(two.data<float>()[49'999], 2.0F);
    EXPECT_EQ(one.data<float>()[49'999], 1.0F);
    EXPECT_EQ(three.data<float>()[49'999], 3.0F);
  }
  comm::world()->barrier();
}

TEST(Exchange, GathersTextsOfAnyLength) {
  const std::string own(static_cast<std::size_t>(own_rank()) * 10'000, static_cast<char>('a' + own_rank()));
  const std::vector<std::string> all = comm::world()->exchange(own);
  ASSERT_EQ(static_cast<int>(all.size()), ranks());
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_EQ(all[static_cast<std::size_t>(rank)],
              std::string(static_cast<std::size_t>(rank) * 10'000, static_cast<char>('a' + rank)));
  }
}

TEST(Split, GroupsByColorInTheOrderOfKeys) {
  const auto reversed = comm::world()->split(0, -own_rank());
  EXPECT_EQ(reversed->size(), ranks());
  EXPECT_EQ(reversed->rank(), ranks() - 1 - own_rank());
  Tensor tensor = full({3}, own_rank());
  reversed->broadcast(tensor, 0).wait();
  EXPECT_EQ(tensor.data<float>()[0], static_cast<float>(ranks() - 1));

  const auto parity = comm::world()->split(own_rank() % 2, 0, {.name = "parity"});
  EXPECT_EQ(parity->name(), "parity");
  Tensor sum = ones({3});
  parity->all_reduce(sum).wait();
  EXPECT_EQ(sum.data<float>()[0], static_cast<float>(parity->size()));
  EXPECT_EQ(parity->size(), own_rank() % 2 == 0 ? (ranks() + 1) / 2 : ranks() / 2);
}

TEST(Split, NegativeColorGivesNoGroup) {
  const auto group = comm::world()->split(own_rank() == 0 ? -1 : 3);
  EXPECT_EQ(group == nullptr, own_rank() == 0);
  if (group != nullptr) {
    EXPECT_EQ(group->size(), ranks() - 1);
  }
}

TEST(Split, GroupsThatAreGoneAreForgotten) {
  for (int i = 0; i < 20; ++i) comm::world()->split(0);
  comm::world()->barrier();  // the queue lets go of each
  const auto last = comm::world()->split(0);
  EXPECT_LE(comm::Job::current()->groups.size(), 5U);
}

TEST(NewGroup, HoldsTheGivenRanksInTheirOrder) {
  const auto group = comm::new_group({1, 0});
  EXPECT_EQ(group != nullptr, own_rank() < 2);
  if (group != nullptr) {
    EXPECT_EQ(group->rank(), 1 - own_rank());
    Tensor tensor = full({2}, own_rank());
    group->broadcast(tensor, 0).wait();
    EXPECT_EQ(tensor.data<float>()[0], 1.0F);
  }
}

TEST(Environment, IsSharedByTheWholeJob) {
  Environment* environment = Environment::current();
  ASSERT_NE(environment, nullptr);
  EXPECT_EQ(environment->rank(), own_rank());
  EXPECT_EQ(environment->size(), ranks());
  EXPECT_EQ(ranks() % environment->local_size(), 0);
  EXPECT_EQ(environment->local_rank(), own_rank() % environment->local_size());
  expect_error<Error>([] { const tutti::Environment second; }, "an Environment lives already");
}

}  // namespace
}  // namespace tutti
