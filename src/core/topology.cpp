// SPDX-License-Identifier: Apache-2.0
#include "core/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"

namespace tutti {

namespace {

constexpr std::int64_t kMaxRanks = 1 << 20;

struct BitmapFree {
  void operator()(hwloc_bitmap_t bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

// Cores, packages and NUMA nodes only, and without the x86 backend, which moves to each core in turn to ask
// it by cpuid: this is in the start-up time of every program.
hwloc_topology_t load_host() {
  hwloc_topology_t host = nullptr;
  TUTTI_CHECK(hwloc_topology_init(&host) == 0, DeviceError, "hwloc cannot start");
  hwloc_topology_set_all_types_filter(host, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(host, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(host, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_components(host, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (hwloc_topology_load(host) != 0) {
    hwloc_topology_destroy(host);
    detail::fail<DeviceError>("hwloc cannot read the topology of this host");
  }
  return host;
}

// Kept until the process ends: threads bind themselves through it at any time.
hwloc_topology_t host_topology() {
  static const hwloc_topology_t kHost = load_host();
  return kHost;
}

int first_or_zero(hwloc_const_bitmap_t set) { return std::max(hwloc_bitmap_first(set), 0); }

int package_of(hwloc_topology_t host, hwloc_obj_t object) {
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(host, HWLOC_OBJ_PACKAGE, object);
  return package != nullptr ? static_cast<int>(package->logical_index) : 0;
}

Topology read_topology() {
  const hwloc_topology_t host = host_topology();
  const Bitmap mask(hwloc_bitmap_alloc());
  TUTTI_CHECK(mask != nullptr, DeviceError, "hwloc is out of memory");
  if (hwloc_get_cpubind(host, mask.get(), HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_copy(mask.get(), hwloc_topology_get_allowed_cpuset(host));
  }
  Topology found;
  // Some virtual machines show processors but no cores.
  const hwloc_obj_type_t unit =
      hwloc_get_nbobjs_by_type(host, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  found.host_cores = std::max(hwloc_get_nbobjs_by_type(host, unit), 1);
  found.host_packages = std::max(hwloc_get_nbobjs_by_type(host, HWLOC_OBJ_PACKAGE), 1);
  found.host_numa_nodes = std::max(hwloc_get_nbobjs_by_type(host, HWLOC_OBJ_NUMANODE), 1);
  const Bitmap usable(hwloc_bitmap_alloc());
  TUTTI_CHECK(usable != nullptr, DeviceError, "hwloc is out of memory");
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(host, unit, object)) != nullptr;) {
    hwloc_bitmap_and(usable.get(), object->cpuset, mask.get());
    Core core{package_of(host, object), first_or_zero(object->nodeset), {}};
    for (int p = hwloc_bitmap_first(usable.get()); p >= 0; p = hwloc_bitmap_next(usable.get(), p)) {
      core.processors.push_back(p);
    }
    if (!core.processors.empty()) found.cores.push_back(std::move(core));
  }
  TUTTI_CHECK(!found.cores.empty(), DeviceError, "hwloc finds no core in this process's affinity mask");
  return found;
}

int as_integer(const char* variable, std::int64_t least) {
  return static_cast<int>(environment_integer(variable, least, kMaxRanks).value());
}

// The entry of this node in Slurm's run-length list, "4(x2),3": tasks on the nodes of the step.
int slurm_tasks_here(const std::string& list, std::int64_t node) {
  const char* at = list.data();
  const char* const end = at + list.size();
  const auto skip = [&at, end](std::string_view text) {
    const bool found =
        std::string_view(at, static_cast<std::size_t>(end - at)).substr(0, text.size()) == text;
    if (found) at += text.size();
    return found;
  };
  const auto number = [&at, end](std::int64_t& value) {
    const auto result = std::from_chars(at, end, value);
    at = result.ptr;
    return result.ec == std::errc{} && value > 0 && value <= kMaxRanks;
  };
  for (;;) {
    std::int64_t tasks = 0;
    std::int64_t repeat = 1;
    const bool good =
        number(tasks) && (!skip("(x") || (number(repeat) && skip(")"))) && (at == end || skip(","));
    TUTTI_CHECK(good, ValueError, "SLURM_STEP_TASKS_PER_NODE must be a list as \"4(x2),3\", but is \"", list,
                "\"");
    if (node < repeat || at == end) return static_cast<int>(tasks);
    node -= repeat;
  }
}

}  // namespace

const Topology& topology() {
  static const Topology kTopology = read_topology();
  return kTopology;
}

Launch read_launch() {
  Launch launch;
  if (environment_text("OMPI_COMM_WORLD_LOCAL_SIZE")) {
    launch = {"Open MPI",
              as_integer("OMPI_COMM_WORLD_LOCAL_RANK", 0),
              as_integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1),
              {}};
    // Open MPI 4 sets this variable in each rank that it has bound; Open MPI 5 (prterun) has no such
    // variable.
    if (environment_text("OMPI_MCA_orte_launch")) {
      launch.bound = environment_text("OMPI_MCA_orte_bound_at_launch").has_value();
    }
  } else if (environment_text("MPI_LOCALNRANKS") && environment_text("MPI_LOCALRANKID")) {
    launch = {"MPICH", as_integer("MPI_LOCALRANKID", 0), as_integer("MPI_LOCALNRANKS", 1), {}};
  } else if (environment_text("LOCAL_WORLD_SIZE") && environment_text("LOCAL_RANK")) {
    launch = {"torchrun", as_integer("LOCAL_RANK", 0), as_integer("LOCAL_WORLD_SIZE", 1), {}};
  } else if (const auto tasks = environment_text("SLURM_STEP_TASKS_PER_NODE");
             tasks && environment_text("SLURM_LOCALID")) {
    // The step's variables are set by srun alone. SLURM_NTASKS_PER_NODE is also set in a batch script, where
    // a program that is started without srun is one process whatever the job asked for.
    const std::int64_t node = environment_integer("SLURM_NODEID", 0, kMaxRanks).value_or(0);
    launch = {"Slurm", as_integer("SLURM_LOCALID", 0), slurm_tasks_here(*tasks, node), {}};
  }
  TUTTI_CHECK(launch.local_rank < launch.local_size, ValueError, launch.launcher,
              "'s environment says local rank ", launch.local_rank, " of ", launch.local_size,
              " ranks on this host");
  return launch;
}

Placement place(const Topology& host, const Launch& launch) {
  const int cores = static_cast<int>(host.cores.size());
  const int ranks = launch.local_size;
  // A mask narrower than the host is taken for one of several equal masks (mpirun's default binding, Slurm),
  // unless the launcher says that it bound nothing: then a narrow mask was there before it, and all ranks
  // share it.
  int sharing = ranks;
  if (launch.bound.value_or(true)) {
    sharing = std::clamp((ranks * cores + host.host_cores - 1) / host.host_cores, 1, ranks);
  }
  Placement placement{host.cores, std::max(cores / sharing, 1), sharing, false, {}};
  if (sharing == 1) {
    placement.owns_cores = true;
    placement.reason = ranks == 1 ? "one rank on this host" : "each rank has its own affinity mask";
  } else if (cores < sharing) {
    placement.reason = concat(sharing, " ranks share ", cores, " cores, so nothing is bound");
  } else if (sharing < ranks) {
    placement.reason =
        concat(sharing, " of ", ranks, " ranks share this affinity mask, and which is not known");
  } else {
    placement.cores.assign(host.cores.begin() + launch.local_rank * cores / ranks,
                           host.cores.begin() + (launch.local_rank + 1) * cores / ranks);
    placement.owns_cores = true;
    placement.reason =
        concat("slice ", launch.local_rank, " of the ", ranks, " that share this affinity mask");
  }
  return placement;
}

bool bind_calling_thread(const Core* cores, std::size_t count) noexcept {
  const Bitmap set(hwloc_bitmap_alloc());
  if (set == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) {
    for (const int processor : cores[i].processors)
      hwloc_bitmap_set(set.get(), static_cast<unsigned>(processor));
  }
  return hwloc_set_cpubind(host_topology(), set.get(), HWLOC_CPUBIND_THREAD) == 0;
}

std::string processor_list(const std::vector<Core>& cores) {
  std::vector<int> processors;
  for (const Core& core : cores)
    processors.insert(processors.end(), core.processors.begin(), core.processors.end());
  std::sort(processors.begin(), processors.end());
  std::string text;
  for (std::size_t i = 0; i < processors.size();) {
    std::size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? concat(processors[i]) : concat(processors[i], "-", processors[last]);
    i = last + 1;
  }
  return text;
}

std::string topology_text(const Topology& host) {
  const auto counted = [](std::size_t count, const char* what) {
    return concat(count, " ", what, count == 1 ? "" : "s");
  };
  return concat(counted(static_cast<std::size_t>(host.host_packages), "package"), ", ",
                counted(static_cast<std::size_t>(host.host_numa_nodes), "NUMA node"), ", ",
                counted(static_cast<std::size_t>(host.host_cores), "core"), "; ",
                counted(host.cores.size(), "core"), " (processors ", processor_list(host.cores),
                ") for this process");
}

}  // namespace tutti
