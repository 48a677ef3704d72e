// SPDX-License-Identifier: Apache-2.0
// The cores this process may use, how many ranks share them, and which of them are this rank's.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti {

// One core and those of its processors (hardware threads) that this process may use, by the system's numbers.
struct Core {
  int package = 0;
  int numa_node = 0;
  std::vector<int> processors;
};

struct Topology {
  std::vector<Core> cores;  // in this process's affinity mask when it was read
  int host_cores = 0;       // that the container or host lets anybody use
  int host_packages = 0;
  int host_numa_nodes = 0;
};

// Reads the host through hwloc, once. DeviceError if hwloc cannot.
const Topology& topology();

// What the launcher says through its environment variables (Open MPI, MPICH and Intel MPI, torchrun, Slurm).
struct Launch {
  std::string launcher = "none";
  int local_rank = 0;         // among the ranks on this host
  int local_size = 1;         // ranks on this host
  std::optional<bool> bound;  // whether the launcher gave each rank its own mask; nullopt if it does not say
};
Launch read_launch();

// The share of the host that one rank computes on.
struct Placement {
  std::vector<Core> cores;  // this rank's own, or, if they cannot be told apart, all in the mask
  int default_threads = 1;
  int ranks_on_mask = 1;    // ranks that use the same affinity mask
  bool owns_cores = false;  // no other rank computes on `cores`
  std::string reason;       // one clause, for `tutti env`
};
Placement place(const Topology& host, const Launch& launch);

// Restricts the calling thread to the processors of these cores. False if the system refuses.
bool bind_calling_thread(const Core* cores, std::size_t count) noexcept;

// "1 package, 1 NUMA node, 2 cores; 2 cores (0-1) for this process", for `tutti env`.
std::string topology_text(const Topology& host);
// "0-3,8" of the processors of these cores.
std::string processor_list(const std::vector<Core>& cores);

}  // namespace tutti
