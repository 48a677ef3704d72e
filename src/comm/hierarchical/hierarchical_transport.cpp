// SPDX-License-Identifier: Apache-2.0
#include "comm/hierarchical/hierarchical_transport.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "comm/job.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

class NetworkBridge final : public Bridge {
 public:
  explicit NetworkBridge(std::unique_ptr<Transport> network) : network_(std::move(network)) {}
  void all_reduce(const Contract& contract, DType dtype, ReduceOp op, void* data,
                  std::int64_t count) override {
    Contract slice = contract;
    slice.dtype = dtype;
    slice.reduce = op;
    slice.count = static_cast<std::uint64_t>(count);
    network_->all_reduce(slice, data);
  }
  void give_up() noexcept override { network_->give_up(); }

 private:
  std::unique_ptr<Transport> network_;
};

// Of some ranks of the group, which are numbered anew among themselves.
std::shared_ptr<Waiter> waiter_of(const Job& job, const GroupCore& core, const std::vector<int>& ranks) {
  std::vector<int> world_ranks;
  for (const int rank : ranks) world_ranks.push_back(core.world_ranks[static_cast<std::size_t>(rank)]);
  return std::make_shared<Waiter>(job.host, core.name, std::move(world_ranks), core.timeout_s, ranks);
}

}  // namespace

HierarchicalTransport::HierarchicalTransport(Job& job, const GroupCore& core,
                                             std::unique_ptr<Transport> network, const Deadline& deadline)
    : network_(std::move(network)) {
  std::map<int, std::vector<int>> by_host;  // ranks of the group
  const auto host_of = [&](int rank) {
    return job.host->host_of()[static_cast<std::size_t>(core.world_ranks[static_cast<std::size_t>(rank)])];
  };
  for (int rank = 0; rank < core.size; ++rank) by_host[host_of(rank)].push_back(rank);
  const std::vector<int>& here = by_host[host_of(core.rank)];
  const auto position =
      static_cast<std::size_t>(std::find(here.begin(), here.end(), core.rank) - here.begin());
  std::vector<int> across;
  for (const auto& [unused_host, ranks] : by_host) across.push_back(ranks[position]);

  host_bootstrap_ = core.bootstrap->subset(here, concat("host", host_of(core.rank)), deadline);
  bridge_bootstrap_ = core.bootstrap->subset(across, concat("bridge", position), deadline);
  make_shared_memory(job, core, here, deadline);
  shared_->set_bridge(std::make_unique<NetworkBridge>(
                          bridge_bootstrap_->make_network_transport(waiter_of(job, core, across), deadline)),
                      core.size);
}

// The ranks of a host fail together; those of other hosts must not go on without them.
void HierarchicalTransport::make_shared_memory(Job& job, const GroupCore& core, const std::vector<int>& ranks,
                                               const Deadline& deadline) {
  std::string failure;
  try {
    shared_ =
        std::make_unique<ShmTransport>(*host_bootstrap_, deadline, waiter_of(job, core, ranks), job.heap);
  } catch (const Error& error) {
    failure = error.what();
  }
  for (const std::string& text : core.bootstrap->exchange(failure, deadline, kMakingSharedMemory)) {
    if (!text.empty()) throw AgreedError(text);
  }
}

HierarchicalTransport::~HierarchicalTransport() = default;

void HierarchicalTransport::all_reduce(const Contract& contract, void* data) {
  network_->barrier(contract);  // all ranks of all hosts agree; each host alone could not see a difference
  shared_->all_reduce(contract, data);
}

}  // namespace tutti::comm
