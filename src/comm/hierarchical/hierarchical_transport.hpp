// SPDX-License-Identifier: Apache-2.0
// Ranks of several hosts, equally many on each. An all_reduce sums slices in shared memory, the ranks that hold the same slice
// on each host sum over the network, and shared memory hands the result round. Everything else goes over the network.
#pragma once

#include <memory>
#include <vector>

#include "comm/group_core.hpp"
#include "comm/shm/shm_transport.hpp"
#include "comm/transport.hpp"

namespace tutti::comm {

class HierarchicalTransport final : public Transport {
 public:
  // Collective over the core's bootstrap. `network` connects all ranks of the group.
  HierarchicalTransport(Job& job, const GroupCore& core, std::unique_ptr<Transport> network,
                        const Deadline& deadline);
  ~HierarchicalTransport() override;

  const char* name() const noexcept override { return "hierarchical"; }
  void all_reduce(const Contract& contract, void* data) override;
  void broadcast(const Contract& contract, void* data) override { network_->broadcast(contract, data); }
  void reduce_scatter(const Contract& contract, void* out, const void* in) override {
    network_->reduce_scatter(contract, out, in);
  }
  void all_gather(const Contract& contract, void* out, const void* in) override {
    network_->all_gather(contract, out, in);
  }
  void barrier(const Contract& contract) override { network_->barrier(contract); }
  std::unique_ptr<Transfer> send(const Message& message) override { return network_->send(message); }
  std::unique_ptr<Transfer> receive(const Message& message) override { return network_->receive(message); }

  void give_up() noexcept override {
    shared_->give_up();
    network_->give_up();
  }

 private:
  // `ranks` of the group are on this host.
  void make_shared_memory(Job& job, const GroupCore& core, const std::vector<int>& ranks,
                          const Deadline& deadline);

  std::unique_ptr<Transport> network_;
  std::unique_ptr<Bootstrap> host_bootstrap_;    // the group's ranks of this host
  std::unique_ptr<Bootstrap> bridge_bootstrap_;  // the ranks with this one's position on each host
  std::unique_ptr<ShmTransport> shared_;
};

}  // namespace tutti::comm
