// SPDX-License-Identifier: Apache-2.0
#include "comm/group_core.hpp"

#include <algorithm>
#include <map>

#include "comm/hierarchical/hierarchical_transport.hpp"
#include "comm/job.hpp"
#include "comm/self/self_transport.hpp"
#include "comm/shm/shm_transport.hpp"
#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

Bootstrap::~Bootstrap() = default;
std::unique_ptr<Transport> Bootstrap::make_network_transport(std::shared_ptr<Waiter>, const Deadline&) {
  return nullptr;
}

void GroupCore::check_usable() {
  const std::lock_guard lock(mutex_);
  TUTTI_CHECK(failure_.empty(), CommError, "group '", name, "' can't be used any more: ", failure_);
}

void GroupCore::set_failure(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = concat("an operation has failed (", what, ")");
  transport->give_up();
}

void GroupCore::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    failure_ = "its Environment has ended";
  }
  transport = nullptr;
  bootstrap = nullptr;
  waiter = nullptr;
}

namespace {

enum class Choice { kAuto, kShm, kMpi };

Choice chosen_backend() {
  const auto text = environment_text("TUTTI_COMM_BACKEND");
  if (!text) return Choice::kAuto;
  if (*text == "shm") return Choice::kShm;
  TUTTI_CHECK(*text == "mpi", ValueError, "TUTTI_COMM_BACKEND must be shm or mpi, but is \"", *text, "\"");
  return Choice::kMpi;
}

bool on_one_host(const Host& host, const std::vector<int>& world_ranks) {
  return std::all_of(world_ranks.begin(), world_ranks.end(), [&](int rank) {
    return host.host_of()[static_cast<std::size_t>(rank)] ==
           host.host_of()[static_cast<std::size_t>(world_ranks[0])];
  });
}

// True if each host has the same number of the group's ranks, more than one.
bool hosts_are_alike(const Host& host, const std::vector<int>& world_ranks) {
  std::map<int, int> counts;
  for (const int rank : world_ranks) ++counts[host.host_of()[static_cast<std::size_t>(rank)]];
  const int first = counts.begin()->second;
  return first > 1 &&
         std::all_of(counts.begin(), counts.end(), [first](const auto& one) { return one.second == first; });
}

std::unique_ptr<Transport> make_transport(Job& job, GroupCore& core, const Deadline& deadline) {
  const Host& host = *job.host;
  const Choice choice = chosen_backend();
  const bool one_host = on_one_host(host, core.world_ranks);
  if (choice != Choice::kMpi && one_host && host.shares_memory()) {
    return std::make_unique<ShmTransport>(*core.bootstrap, deadline, core.waiter, job.heap);
  }
  TUTTI_CHECK(choice != Choice::kShm, CommError, "TUTTI_COMM_BACKEND=shm: ",
              one_host ? host.reason() : concat("the ranks of group '", core.name, "' are on several hosts"));
  auto network = core.bootstrap->make_network_transport(core.waiter, deadline);
  TUTTI_CHECK(
      network != nullptr, CommError, "group '", core.name, "': ",
      one_host
          ? concat("no shared memory (", host.reason(), ") and no MPI")
          : std::string(
                "ranks on several hosts need MPI, and this job was started without: use mpirun or srun"));
  if (choice == Choice::kMpi || !host.shares_memory() || !hosts_are_alike(host, core.world_ranks))
    return network;
  return std::make_unique<HierarchicalTransport>(job, core, std::move(network), deadline);
}

}  // namespace

void check_backend_choice() { chosen_backend(); }

std::shared_ptr<GroupCore> make_group_core(Job& job, std::unique_ptr<Bootstrap> bootstrap,
                                           std::vector<int> world_ranks, std::string name, double timeout_s) {
  auto core = std::make_shared<GroupCore>();
  core->name = std::move(name);
  core->rank = bootstrap->rank();
  core->size = bootstrap->size();
  core->timeout_s = timeout_s;
  core->world_ranks = std::move(world_ranks);
  core->bootstrap = std::move(bootstrap);
  if (core->size == 1) {
    core->transport = std::make_unique<SelfTransport>();
  } else {
    const Deadline deadline(timeout_s);
    core->waiter = std::make_shared<Waiter>(job.host, core->name, core->world_ranks, timeout_s);
    core->transport = make_transport(job, *core, deadline);
  }
  std::erase_if(job.groups, [](const std::weak_ptr<GroupCore>& group) { return group.expired(); });
  job.groups.push_back(core);
  return core;
}

}  // namespace tutti::comm
