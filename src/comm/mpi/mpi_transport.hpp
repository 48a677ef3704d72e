// SPDX-License-Identifier: Apache-2.0
// Collectives over MPI's point-to-point messages. MPI_Allreduce is not used: its order of summation depends on algorithm and
// size, it knows no half dtypes, and ranks that disagree corrupt memory in it.
#pragma once

#include <mpi.h>

#include <cstdint>
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
  void give_up() noexcept override;

 private:
  class Send;
  class Receive;
  using Queues =
      std::map<std::pair<int, int>, std::deque<Receive*>>;  // by sender and tag, in the order of their calls

  // What requests point to, beside tensors.
  struct Buffers {
    struct Word {
      Contract contract;
      bool same;  // as those of all ranks that the sender has heard from
    };
    struct Step {
      Word out;
      Word in;
    };
    std::uint64_t presence = 0;
    std::uint64_t given_up = 0;
    std::vector<Step> steps;          // of an agreement
    std::vector<Contract> contracts;  // by rank, where they differ
    std::vector<std::byte> scratch;   // what all ranks sent for this rank's slice, one behind the other
  };

  void agree(const Contract& contract);
  void throw_disagreement(const Contract& contract);
  std::vector<int> absent_ranks(const Contract& contract);
  std::vector<int> missing_ranks(const Contract& contract);
  void check_given_up(const Contract& contract, const std::vector<int>& awaited) const;
  void note_presence();
  void start_send(const void* data, std::size_t bytes, int to);
  void start_receive(void* data, std::size_t bytes, int from);
  // Blocks until all that was started is done.
  void finish(const Contract& contract);
  template <class Missing>
  void finish(const Contract& contract, const Missing& missing);
  void let_go() noexcept;
  void grow_scratch(std::size_t bytes);
  void reduce_received(const Contract& contract, void* out, const void* own, std::int64_t count);

  MPI_Comm communicator_;
  std::shared_ptr<Waiter> waiter_;
  int rank_ = 0;
  int size_ = 1;
  MpiRequests requests_;  // of the collective under way
  MpiRequests presence_;  // of what this rank told of itself
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::vector<const void*> ins_;
  std::uint64_t agreements_ = 0;  // begun so far: the same number on all ranks
  // By rank: the last agreement that it has said to wait in; with kGivenUp the last that it takes part in.
  std::vector<std::uint64_t> here_;
  std::shared_ptr<Queues> queues_ = std::make_shared<Queues>();
};

}  // namespace tutti::comm
