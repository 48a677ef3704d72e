// SPDX-License-Identifier: Apache-2.0
// Collectives among ranks of one host, in memory that they share.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "comm/bootstrap.hpp"
#include "comm/shm/heap.hpp"
#include "comm/shm/mailbox.hpp"
#include "comm/shm/segment.hpp"
#include "comm/slices.hpp"
#include "comm/transport.hpp"
#include "comm/waiter.hpp"

namespace tutti::comm {

// Continues a reduction beyond this host: every rank calls it with its slice.
class Bridge {
 public:
  Bridge() = default;
  virtual ~Bridge();
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;
  // Replaces `data` by its reduction over hosts, in the order of hosts.
  virtual void all_reduce(const Contract& contract, DType dtype, ReduceOp op, void* data,
                          std::int64_t count) = 0;
  // As Transport::give_up.
  virtual void give_up() noexcept = 0;
};

inline constexpr const char* kMakingSharedMemory = "making the shared memory of a group";

class ShmTransport final : public Transport {
 public:
  // Collective over the bootstrap's ranks, which are the waiter's and all on this host.
  ShmTransport(Bootstrap& bootstrap, const Deadline& deadline, std::shared_ptr<Waiter> waiter,
               std::shared_ptr<SharedHeap> heap);
  ~ShmTransport() override;

  // With a bridge, all_reduce goes on beyond this host, over `ranks` in all; the other operations stay on it.
  void set_bridge(std::unique_ptr<Bridge> bridge, int ranks) {
    bridge_ = std::move(bridge);
    bridge_ranks_ = ranks;
  }

  const char* name() const noexcept override { return "shm"; }
  void all_reduce(const Contract& contract, void* data) override;
  void broadcast(const Contract& contract, void* data) override;
  void reduce_scatter(const Contract& contract, void* out, const void* in) override;
  void all_gather(const Contract& contract, void* out, const void* in) override;
  void barrier(const Contract& contract) override;
  std::unique_ptr<Transfer> send(const Message& message) override;
  std::unique_ptr<Transfer> receive(const Message& message) override;
  void give_up() noexcept override;

 private:
  // Of one half of a rank's stage. All ranks' halves fit the second-level cache of a few cores.
  static constexpr std::size_t kStageBytes = 256 * 1024;

  struct Slot;
  enum class Sharing { kNone, kSome, kAll };

  void make_segment(Bootstrap& bootstrap, const Deadline& deadline, std::size_t bytes);
  Slot& slot(int rank) const noexcept;
  std::byte* stage(int rank, std::uint64_t meeting) const noexcept;
  std::uint64_t next_meeting() const noexcept { return meeting_ + 1; }
  void meet(const Contract& contract);
  void ring_peers() const noexcept;
  // Publishes contract and memory, meets, and compares. Returns which ranks' memory can be used in place.
  Sharing agree(Contract contract, const MemoryReference* memory);
  bool reference_of(const void* data, const Contract& contract, MemoryReference& reference) const;
  void map_all(void* own);

  void reduce_in_place(const Contract& contract, void* data);
  // A part of a tensor that passes through the stages at once; data is null if there is none.
  struct Chunk {
    std::byte* data = nullptr;
    std::int64_t count = 0;
  };
  std::int64_t chunk_elements(DType dtype) const noexcept;
  Chunk chunk_at(const Contract& contract, std::byte* data, std::int64_t begin) const noexcept;
  std::byte* staged_slice(int rank, int summing, std::uint64_t meeting, DType dtype) const noexcept;
  void reduce_directly(const Contract& contract, std::byte* data);
  void reduce_by_slices(const Contract& contract, std::byte* data);
  void reduce_own_slice(const Contract& contract, Chunk chunk);
  void reduce_across_hosts(const Contract& contract, void* result, std::int64_t count);
  void exchange_chunks(const Contract& contract, Chunk done, Chunk next);
  void reduce_stages(const Contract& contract, void* out, std::int64_t begin, std::int64_t count);

  int rank_;
  int size_;
  std::shared_ptr<Waiter> waiter_;
  std::shared_ptr<SharedHeap> heap_;
  std::vector<int> local_indices_;  // of the group's ranks on the host
  Segment segment_;
  std::uint64_t meeting_ = 0;       // meetings held so far: the same on all ranks
  std::vector<std::byte*> mapped_;  // each rank's tensor, of the operation under way
  std::vector<const void*> ins_;
  std::vector<void*> outs_;
  std::vector<Mailbox> mailboxes_;  // by peer
  std::unique_ptr<Bridge> bridge_;
  int bridge_ranks_ = 0;
  // What half dtypes become on their way between hosts. MPI may use it longer than this object lives.
  std::shared_ptr<std::vector<float>> widened_ = std::make_shared<std::vector<float>>();
};

}  // namespace tutti::comm
