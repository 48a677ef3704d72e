// SPDX-License-Identifier: Apache-2.0
// How ranks share the cores of a host, on hosts made up for the purpose.
#include "core/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

// `cores` of `host_cores` in the mask, with two processors each.
Topology host_of(int cores, int host_cores) {
  Topology host;
  host.host_cores = host_cores;
  for (int i = 0; i < cores; ++i) host.cores.push_back({0, 0, {i, i + host_cores}});
  return host;
}

Launch launch_of(int rank, int size, std::optional<bool> bound) { return {"test", rank, size, bound}; }

TEST(Placement, OneRankHasTheWholeMask) {
  const Placement placement = place(host_of(8, 64), Launch{});
  EXPECT_EQ(placement.default_threads, 8);
  EXPECT_EQ(placement.cores.size(), 8U);
  EXPECT_TRUE(placement.owns_cores);
}

TEST(Placement, RanksThatShareAMaskGetSlicesThatDoNotOverlap) {
  int next = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const Placement placement = place(host_of(8, 8), launch_of(rank, 3, false));
    EXPECT_EQ(placement.default_threads, 2) << "the same on every rank";
    EXPECT_TRUE(placement.owns_cores);
    ASSERT_GE(placement.cores.size(), 2U);
    for (const Core& core : placement.cores) EXPECT_EQ(core.processors.front(), next++);
  }
  EXPECT_EQ(next, 8) << "no core is left out";
}

TEST(Placement, MaskThatTheLauncherMadeForEachRankIsNotDividedAgain) {
  for (const std::optional<bool> bound : {std::optional<bool>(true), std::optional<bool>()}) {
    const Placement placement = place(host_of(4, 16), launch_of(1, 4, bound));
    EXPECT_EQ(placement.default_threads, 4);
    EXPECT_EQ(placement.ranks_on_mask, 1);
    EXPECT_TRUE(placement.owns_cores);
  }
}

TEST(Placement, NarrowMaskUnderALauncherThatBoundNothingIsShared) {
  const Placement placement = place(host_of(4, 16), launch_of(1, 2, false));
  EXPECT_EQ(placement.default_threads, 2);
  EXPECT_EQ(placement.cores.front().processors.front(), 2);
}

TEST(Placement, RanksBoundToPackagesDivideTheirPackageButAreNotPinned) {
  const Placement placement = place(host_of(16, 32), launch_of(2, 8, true));
  EXPECT_EQ(placement.ranks_on_mask, 4);
  EXPECT_EQ(placement.default_threads, 4);
  EXPECT_FALSE(placement.owns_cores) << "which rank is on which package is not known";
}

TEST(Placement, MoreRanksThanCoresGetOneUnboundThreadEach) {
  const Placement placement = place(host_of(2, 2), launch_of(2, 3, false));
  EXPECT_EQ(placement.default_threads, 1);
  EXPECT_FALSE(placement.owns_cores);
  EXPECT_EQ(placement.cores.size(), 2U);
  EXPECT_EQ(placement.reason, "3 ranks share 2 cores, so nothing is bound");
}

TEST(Topology, HoldsTheProcessorsOfTheAffinityMask) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  int processors = 0;
  for (const Core& core : topology().cores) {
    for (const int processor : core.processors) {
      EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(processor), &mask));
      ++processors;
    }
  }
  EXPECT_EQ(processors, CPU_COUNT(&mask));
  EXPECT_GE(topology().host_cores, static_cast<int>(topology().cores.size()));
}

TEST(Topology, TextNamesProcessorsAsRanges) {
  Topology host = host_of(3, 8);
  host.host_packages = 2;
  host.host_numa_nodes = 1;
  EXPECT_EQ(topology_text(host),
            "2 packages, 1 NUMA node, 8 cores; 3 cores (processors 0-2,8-10) for this process");
}

class Launchers : public ::testing::Test {
 protected:
  static constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE",
                                               "OMPI_COMM_WORLD_LOCAL_RANK",
                                               "OMPI_MCA_orte_launch",
                                               "OMPI_MCA_orte_bound_at_launch",
                                               "MPI_LOCALNRANKS",
                                               "MPI_LOCALRANKID",
                                               "LOCAL_WORLD_SIZE",
                                               "LOCAL_RANK",
                                               "SLURM_STEP_TASKS_PER_NODE",
                                               "SLURM_LOCALID",
                                               "SLURM_NODEID"};
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* variable : kVariables) unsetenv(variable);
  }
  static void set(const char* variable, const char* value) { setenv(variable, value, 1); }
};

TEST_F(Launchers, WithoutOneThereIsOneRank) {
  const Launch launch = read_launch();
  EXPECT_EQ(launch.launcher, "none");
  EXPECT_EQ(launch.local_size, 1);
}

TEST_F(Launchers, OpenMpiSaysWhetherItBound) {
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "4");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "3");
  EXPECT_EQ(read_launch().bound, std::nullopt) << "Open MPI 5";
  set("OMPI_MCA_orte_launch", "1");
  EXPECT_EQ(read_launch().bound, false);
  set("OMPI_MCA_orte_bound_at_launch", "1");
  const Launch launch = read_launch();
  EXPECT_EQ(launch.bound, true);
  EXPECT_EQ(launch.local_rank, 3);
  EXPECT_EQ(launch.local_size, 4);
}

TEST_F(Launchers, SlurmListGivesTheTasksOfThisNode) {
  set("SLURM_STEP_TASKS_PER_NODE", "4(x2),3");
  set("SLURM_LOCALID", "2");
  set("SLURM_NODEID", "1");
  EXPECT_EQ(read_launch().local_size, 4);
  set("SLURM_NODEID", "2");
  EXPECT_EQ(read_launch().local_size, 3);
  set("SLURM_STEP_TASKS_PER_NODE", "4(y2)");
  testing::expect_error<ValueError>(
      [] { read_launch(); }, "SLURM_STEP_TASKS_PER_NODE must be a list as \"4(x2),3\", but is \"4(y2)\"");
}

TEST_F(Launchers, TorchrunAndMpichVariablesAreRead) {
  set("LOCAL_WORLD_SIZE", "2");
  set("LOCAL_RANK", "1");
  EXPECT_EQ(read_launch().local_rank, 1);
  set("MPI_LOCALNRANKS", "8");
  set("MPI_LOCALRANKID", "5");
  EXPECT_EQ(read_launch().local_size, 8);
}

TEST_F(Launchers, ContradictionIsAnErrorThatNamesTheLauncher) {
  set("LOCAL_WORLD_SIZE", "2");
  set("LOCAL_RANK", "2");
  try {
    read_launch();
    FAIL() << "no exception";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "torchrun's environment says local rank 2 of 2 ranks on this host");
  }
}

}  // namespace
}  // namespace tutti
