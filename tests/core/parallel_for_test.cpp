// SPDX-License-Identifier: Apache-2.0
#include "core/parallel_for.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/team.hpp"
#include "core/thread_pool.hpp"
#include "core/topology.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using Chunks = std::set<std::pair<std::int64_t, std::int64_t>>;

Chunks chunks_of(std::int64_t begin, std::int64_t end, std::int64_t grain) {
  Chunks chunks;
  std::mutex mutex;
  parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(chunks.emplace(first, last).second) << "chunk given twice";
  });
  return chunks;
}

TEST(ParallelFor, ChunkBordersDependOnRangeAndGrainAlone) {
  const Chunks expected = {{-3, 1}, {1, 5}, {5, 9}, {9, 12}};
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_EQ(chunks_of(-3, 12, 4), expected) << threads;
    EXPECT_EQ(chunks_of(0, 0, 4), Chunks{});
    EXPECT_EQ(chunks_of(5, 2, 4), Chunks{});
    EXPECT_EQ(chunks_of(0, 4, 4), (Chunks{{0, 4}}));
    EXPECT_EQ(chunks_of(0, 2, 0), (Chunks{{0, 1}, {1, 2}})) << "a grain below 1 counts as 1";
  }
}

TEST(ParallelFor, VisitsEveryElementOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    for (const std::int64_t size : {1, 2, 63, 64, 65, 10007}) {
      std::vector<int> visits(static_cast<std::size_t>(size));
      parallel_for(0, size, 64, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << size << " on " << threads;
    }
  }
}

TEST(ParallelFor, UsesAsManyThreadsAsAreSet) {
  set_num_threads(3);
  std::set<std::thread::id> ids;
  std::mutex mutex;
  parallel_for(0, 3, 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 3U);
  EXPECT_TRUE(ids.contains(std::this_thread::get_id())) << "the caller is one of the team";
}

TEST(ParallelFor, RethrowsTheExceptionOfTheLowestFailingChunk) {
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    for (int repeat = 0; repeat < 50; ++repeat) {
      try {
        parallel_for(0, 100, 1, [](std::int64_t begin, std::int64_t) {
          if (begin >= 17) throw IndexError(concat("chunk ", begin));
        });
        FAIL() << "no exception";
      } catch (const IndexError& error) {
        EXPECT_STREQ(error.what(), "chunk 17") << threads;
      }
    }
    EXPECT_EQ(chunks_of(0, 8, 2).size(), 4U) << "works after an exception";
  }
}

TEST(ParallelFor, NestedCallsRunInPlace) {
  set_num_threads(2);
  std::atomic<int> visits{0};
  parallel_for(0, 4, 1, [&](std::int64_t, std::int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(0, 10, 1, [&](std::int64_t, std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      ++visits;
    });
  });
  EXPECT_EQ(visits, 40);
}

TEST(ParallelFor, ThreadsMarkedSerialRunInPlaceInOrder) {
  set_num_threads(2);
  std::vector<std::int64_t> begins;
  std::thread([&begins] {
    mark_thread_serial();
    parallel_for(0, 6, 2, [&](std::int64_t begin, std::int64_t) { begins.push_back(begin); });
  }).join();
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 2, 4}));
}

TEST(ParallelFor, SeveralThreadsMayCallAtOnce) {
  set_num_threads(2);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&sum] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        parallel_for(0, 64, 8, [&sum](std::int64_t begin, std::int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 50 * 64);
}

TEST(ThreadPool, RunsJobsOfChangingSizeAndRefusesASecondCaller) {
  detail::ThreadPool pool;
  for (const int threads : {2, 5, 3, 1, 5}) {
    std::atomic<std::int64_t> sum{0};
    const auto body = [](void* context, std::int64_t begin, std::int64_t end) {
      *static_cast<std::atomic<std::int64_t>*>(context) += end - begin;
    };
    detail::ChunkJob job(0, 1000, 7, body, &sum);
    ASSERT_TRUE(pool.run(job, threads));
    EXPECT_EQ(sum, 1000);
  }
  const auto second_caller = [](void* context, std::int64_t, std::int64_t) {
    bool ran = true;
    std::thread([context, &ran] {
      detail::ChunkJob inner(
          0, 2, 1, [](void*, std::int64_t, std::int64_t) {}, nullptr);
      ran = static_cast<detail::ThreadPool*>(context)->run(inner, 2);
    }).join();
    EXPECT_FALSE(ran);
  };
  detail::ChunkJob outer(0, 1, 1, second_caller, &pool);
  EXPECT_TRUE(pool.run(outer, 1));
}

TEST(Threads, SetNumThreadsRefusesLessThanOne) {
  set_num_threads(3);
  EXPECT_EQ(get_num_threads(), 3);
  try {
    set_num_threads(0);
    FAIL() << "no exception";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "set_num_threads wants 1 to 4096 threads, given 0");
  }
  EXPECT_EQ(get_num_threads(), 3);
}

#if !defined(TUTTI_PARALLEL_STD_THREAD)
// The main thread owns the bound team: these run on it.
TEST(Binding, WorkersSitOnCoresOfTheirOwnWhenTheTeamFillsTheCores) {
  const auto cores = static_cast<int>(topology().cores.size());
  ASSERT_EQ(team_text().find("binding left"), std::string::npos)
      << "as where the environment turns it off: " << team_text();
  if (cores < 2 || read_launch().local_size > 1) GTEST_SKIP() << "needs two cores and no launcher";
  set_num_threads(cores);
  std::vector<cpu_set_t> masks(static_cast<std::size_t>(cores));
  parallel_for(0, cores, 1, [&](std::int64_t begin, std::int64_t) {
    auto& mask = masks[static_cast<std::size_t>(begin)];
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  });
  cpu_set_t together;
  CPU_ZERO(&together);
  for (std::size_t slot = 1; slot < masks.size(); ++slot) {
    const std::size_t processors = topology().cores[slot].processors.size();
    EXPECT_EQ(CPU_COUNT(&masks[slot]), static_cast<int>(processors));
    cpu_set_t common;
    CPU_AND(&common, &together, &masks[slot]);
    EXPECT_EQ(CPU_COUNT(&common), 0) << "two workers on one core";
    CPU_OR(&together, &together, &masks[slot]);
  }
  EXPECT_NE(team_text().find("bound one a core"), std::string::npos) << team_text();

  set_num_threads(cores + 1);
  std::atomic<int> pinned{0};
  parallel_for(0, cores + 1, 1, [&](std::int64_t, std::int64_t) {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) < cores) ++pinned;
  });
  EXPECT_EQ(pinned, 0) << "more threads than cores are not bound";
}
#endif

}  // namespace
}  // namespace tutti
