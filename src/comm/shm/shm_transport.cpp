// SPDX-License-Identifier: Apache-2.0
// Ranks move in step from one meeting to the next. A rank publishes in slot, stage or tensor, then meets; after the meeting
// it may read what the others published.
//
//   meeting        m                    m + 1                   m + 2
//   rank 0   publish | read others' m   publish | read ...
//   rank 1   publish   | read others' m   publish | read ...
//
// What is published at meeting m lies in half m % 2 of slot and stage. It is overwritten by what is published at m + 2, and
// by then all have read it: a rank comes to m + 1 after it has read m, and nobody passes m + 1 before all have come. So one
// meeting a chunk is enough, and ranks copy in the next chunk while others still read the last.
#include "comm/shm/shm_transport.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "comm/parse_integer.hpp"
#include "comm/slices.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

// A smaller tensor is copied through the stage, also if it is shared: that saves a meeting.
constexpr std::size_t kInPlaceBytes = 2 * 1024;

}  // namespace

Bridge::~Bridge() = default;
Transport::~Transport() = default;
Transfer::~Transfer() = default;

struct ShmTransport::Slot {
  alignas(128) std::atomic<std::uint64_t> arrived{0};  // the last meeting that the rank has come to
  std::atomic<std::uint32_t> given_up{0};              // it comes to no other
  struct Half {
    alignas(64) Contract contract;
    MemoryReference memory;
  } halves[2];
};

ShmTransport::ShmTransport(Bootstrap& bootstrap, const Deadline& deadline, std::shared_ptr<Waiter> waiter,
                           std::shared_ptr<SharedHeap> heap)
    : rank_(bootstrap.rank()), size_(bootstrap.size()), waiter_(std::move(waiter)), heap_(std::move(heap)) {
  // A stage must hold at least a cache line for each rank.
  constexpr int kMostRanks = static_cast<int>(kStageBytes / kCacheLine);
  TUTTI_CHECK(size_ <= kMostRanks, CommError, "a group with shared memory has at most ", kMostRanks,
              " ranks on a host, not ", size_);
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t rings_at = ranks * sizeof(Slot);
  const std::size_t bytes = rings_at + ranks * ranks * sizeof(MailRing) + ranks * 2 * kStageBytes;
  Host& host = waiter_->host();
  for (const int rank : waiter_->world_ranks()) local_indices_.push_back(host.local_index(rank));
  make_segment(bootstrap, deadline, bytes);
  auto* rings = reinterpret_cast<MailRing*>(segment_.data() + rings_at);
  for (int peer = 0; peer < size_; ++peer) {
    mailboxes_.emplace_back(rings + rank_ * size_ + peer, rings + peer * size_ + rank_, waiter_,
                            &host.doorbell(local_indices_[static_cast<std::size_t>(peer)]));
  }
  mapped_.resize(ranks);
  ins_.resize(ranks);
  outs_.resize(ranks);
}

ShmTransport::~ShmTransport() = default;

// A rank that fails tells the others, which would wait for it until the deadline.
void ShmTransport::make_segment(Bootstrap& bootstrap, const Deadline& deadline, std::size_t bytes) {
  std::string failure;
  try {
    if (rank_ == 0) {
      segment_ = Segment::create(bytes);
      for (int i = 0; i < size_; ++i) new (&slot(i)) Slot;
      // The rings need no construction: zero bytes, which a new segment has, are an empty ring. So unused ones take no memory.
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  const auto fds = bootstrap.exchange(concat(segment_.fd()), deadline, kMakingSharedMemory);
  try {
    const int fd = parse_integer(fds[0]);
    if (rank_ != 0 && fd >= 0) segment_ = Segment::open(waiter_->host().pid_of(local_indices_[0]), fd, bytes);
  } catch (const Error& error) {
    failure = error.what();
  }
  const auto failures = bootstrap.exchange(failure, deadline, kMakingSharedMemory);
  for (int rank = 0; rank < size_; ++rank) {
    const std::string& text = failures[static_cast<std::size_t>(rank)];
    if (!text.empty())
      tutti::detail::fail<AgreedError>("group '", waiter_->group(), "': rank ", waiter_->group_rank(rank),
                                       ": ", text);
  }
}

ShmTransport::Slot& ShmTransport::slot(int rank) const noexcept {
  return *reinterpret_cast<Slot*>(segment_.data() + static_cast<std::size_t>(rank) * sizeof(Slot));
}

std::byte* ShmTransport::stage(int rank, std::uint64_t meeting) const noexcept {
  const std::size_t index = static_cast<std::size_t>(rank) * 2 + meeting % 2;
  const std::size_t stages_at = segment_.bytes() - static_cast<std::size_t>(size_) * 2 * kStageBytes;
  return segment_.data() + stages_at + index * kStageBytes;
}

// ---- meetings -----------------------------------------------------------------------------------------------------------

void ShmTransport::meet(const Contract& contract) {
  const std::uint64_t meeting = ++meeting_;
  slot(rank_).arrived.store(meeting, std::memory_order_release);
  ring_peers();
  const auto absent = [this, meeting](int peer) {
    return slot(peer).arrived.load(std::memory_order_acquire) < meeting;
  };
  const auto all_here = [this, &absent] {
    for (int peer = 0; peer < size_; ++peer) {
      if (absent(peer)) return false;
    }
    return true;
  };
  waiter_->until(all_here, contract, [this, &absent, &contract] {
    std::vector<int> missing;
    for (int peer = 0; peer < size_; ++peer) {
      if (!absent(peer)) continue;
      TUTTI_CHECK(slot(peer).given_up.load(std::memory_order_acquire) == 0, CommError, to_text(contract),
                  " in group '", waiter_->group(), "': rank ", waiter_->group_rank(peer),
                  " has failed in an operation of this group");
      missing.push_back(peer);
    }
    return missing;
  });
}

void ShmTransport::ring_peers() const noexcept {
  Host& host = waiter_->host();
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) host.doorbell(local_indices_[static_cast<std::size_t>(peer)]).ring();
  }
}

void ShmTransport::give_up() noexcept {
  slot(rank_).given_up.store(1, std::memory_order_release);
  ring_peers();
  if (bridge_ != nullptr) bridge_->give_up();
}

ShmTransport::Sharing ShmTransport::agree(Contract contract, const MemoryReference* memory) {
  Slot::Half& own = slot(rank_).halves[next_meeting() % 2];
  contract.in_shared_memory = memory != nullptr ? 1 : 0;
  own.contract = contract;
  if (memory != nullptr) own.memory = *memory;
  meet(contract);
  int sharing = 0;
  bool same = true;
  for (int rank = 0; rank < size_; ++rank) {
    const Contract& other = slot(rank).halves[meeting_ % 2].contract;
    same = same && contract.agrees_with(other);
    sharing += other.in_shared_memory;
  }
  if (!same) [[unlikely]] {
    std::vector<Contract> all;
    for (int rank = 0; rank < size_; ++rank) all.push_back(slot(rank).halves[meeting_ % 2].contract);
    check_agreement(waiter_->group(), all);
  }
  return sharing == 0 ? Sharing::kNone : sharing == size_ ? Sharing::kAll : Sharing::kSome;
}

bool ShmTransport::reference_of(const void* data, const Contract& contract,
                                MemoryReference& reference) const {
  return contract.bytes() > kInPlaceBytes && heap_->find(data, contract.bytes(), reference);
}

// Finds every rank's tensor, as published at the last meeting.
void ShmTransport::map_all(void* own) {
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    mapped_[at] = rank == rank_ ? static_cast<std::byte*>(own)
                                : heap_->map_peer(waiter_->host(), local_indices_[at],
                                                  slot(rank).halves[meeting_ % 2].memory);
  }
}

// ---- collectives but all_reduce -------------------------------------------------------------------------------------------

// out = the reduction of elements [begin, begin + count) of all stages.
void ShmTransport::reduce_stages(const Contract& contract, void* out, std::int64_t begin,
                                 std::int64_t count) {
  const std::size_t offset = static_cast<std::size_t>(begin) * size_of(contract.dtype);
  for (int rank = 0; rank < size_; ++rank)
    ins_[static_cast<std::size_t>(rank)] = stage(rank, meeting_) + offset;
  reduce_loop(contract.dtype, contract.reduce)(&out, 1, ins_.data(), size_, count, size_);
}

void ShmTransport::broadcast(const Contract& contract, void* data) {
  const bool is_root = rank_ == contract.root;
  const std::size_t total = contract.bytes();
  auto* bytes = static_cast<std::byte*>(data);
  MemoryReference reference;
  const bool shared = is_root && reference_of(data, contract, reference);
  const auto publish = [&](std::size_t begin) {
    if (is_root)
      std::memcpy(stage(rank_, next_meeting()), bytes + begin, std::min(kStageBytes, total - begin));
  };
  if (!shared && total > 0) publish(0);
  const Sharing sharing = agree(contract, shared ? &reference : nullptr);
  if (sharing != Sharing::kNone) {  // only the root says that it shares
    if (!is_root) {
      const auto root = static_cast<std::size_t>(contract.root);
      std::memcpy(data,
                  heap_->map_peer(waiter_->host(), local_indices_[root],
                                  slot(contract.root).halves[meeting_ % 2].memory),
                  total);
    }
    meet(contract);
    return;
  }
  for (std::size_t begin = 0; begin < total; begin += kStageBytes) {
    if (begin > 0) {
      publish(begin);
      meet(contract);
    }
    if (!is_root)
      std::memcpy(bytes + begin, stage(contract.root, meeting_), std::min(kStageBytes, total - begin));
  }
}

void ShmTransport::all_gather(const Contract& contract, void* out, const void* in) {
  const std::size_t part = contract.bytes();
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  const auto publish = [&](std::size_t begin) {
    std::memcpy(stage(rank_, next_meeting()), from + begin, std::min(kStageBytes, part - begin));
  };
  if (part > 0) publish(0);
  agree(contract, nullptr);
  for (std::size_t begin = 0; begin < part; begin += kStageBytes) {
    if (begin > 0) {
      publish(begin);
      meet(contract);
    }
    const std::size_t bytes = std::min(kStageBytes, part - begin);
    for (int rank = 0; rank < size_; ++rank) {
      std::byte* place = to + static_cast<std::size_t>(rank) * part + begin;
      if (place != from + begin) std::memcpy(place, stage(rank, meeting_), bytes);
    }
  }
}

void ShmTransport::reduce_scatter(const Contract& contract, void* out, const void* in) {
  const std::size_t element = size_of(contract.dtype);
  const auto part = static_cast<std::int64_t>(contract.count) / size_;
  // A stage holds one chunk of each rank's part, one behind the other.
  const std::int64_t chunk =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kStageBytes / element) / size_);
  const auto* from = static_cast<const std::byte*>(in);
  const auto publish = [&](std::int64_t begin) {
    const std::int64_t count = std::min(chunk, part - begin);
    for (int rank = 0; rank < size_; ++rank) {
      std::memcpy(stage(rank_, next_meeting()) + static_cast<std::size_t>(rank * chunk) * element,
                  from + static_cast<std::size_t>(rank * part + begin) * element,
                  static_cast<std::size_t>(count) * element);
    }
  };
  if (part > 0) publish(0);
  agree(contract, nullptr);
  for (std::int64_t begin = 0; begin < part; begin += chunk) {
    if (begin > 0) {
      publish(begin);
      meet(contract);
    }
    reduce_stages(contract, static_cast<std::byte*>(out) + static_cast<std::size_t>(begin) * element,
                  rank_ * chunk, std::min(chunk, part - begin));
  }
}

void ShmTransport::barrier(const Contract& contract) { agree(contract, nullptr); }

std::unique_ptr<Transfer> ShmTransport::send(const Message& message) {
  return mailboxes_[static_cast<std::size_t>(message.contract.root)].send(message);
}

std::unique_ptr<Transfer> ShmTransport::receive(const Message& message) {
  return mailboxes_[static_cast<std::size_t>(message.contract.root)].receive(message);
}

}  // namespace tutti::comm
