// SPDX-License-Identifier: Apache-2.0
// Collectives over MPI's point-to-point messages. MPI_Allreduce is not used: its order of summation depends on algorithm and
// size, it knows no half dtypes, and ranks that disagree corrupt memory in it.
#pragma once

#include <mpi.h>

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/mpi/mpi_requests.hpp"
#include "comm/transport.hpp"
#include "comm/waiter.hpp"

namespace tutti::comm {

class MpiTransport final : public Transport {
 public:
  // Takes over the communicator, whose ranks are the waiter's.
  MpiTransport(MPI_Comm communicator, std::shared_ptr<Waiter> waiter);
  ~MpiTransport() override;

  const char* name() const noexcept override { return "mpi"; }
  void all_reduce(const Contract& contract, void* data) override;
  void broadcast(const Contract& contract, void* data) override;
  void reduce_scatter(const Contract& contract, void* out, const void* in) override;
  void all_gather(const Contract& contract, void* out, const void* in) override;
  void barrier(const Contract& contract) override { agree(contract); }
  std::unique_ptr<Transfer> send(const Message& message) override;
  std::unique_ptr<Transfer> receive(const Message& message) override;

 private:
  class Send;
  class Receive;
  using Queues =
      std::map<std::pair<int, int>, std::deque<Receive*>>;  // by sender and tag, in the order of their calls

  // What requests point to, beside tensors.
  struct Buffers {
    std::vector<Contract> contracts;  // by rank
    std::vector<std::byte> scratch;   // what all ranks sent for this rank's slice, one behind the other
  };

  void agree(const Contract& contract);
  void start_send(const void* data, std::size_t bytes, int to);
  void start_receive(void* data, std::size_t bytes, int from);
  // Blocks until all that was started is done.
  void finish(const Contract& contract);
  void let_go() noexcept;
  void grow_scratch(std::size_t bytes);
  void reduce_received(const Contract& contract, void* out, const void* own, std::int64_t count);

  MPI_Comm communicator_;
  std::shared_ptr<Waiter> waiter_;
  int rank_ = 0;
  int size_ = 1;
  MpiRequests requests_;  // of the collective under way
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::vector<const void*> ins_;
  std::shared_ptr<Queues> queues_ = std::make_shared<Queues>();
};

}  // namespace tutti::comm
