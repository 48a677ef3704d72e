// SPDX-License-Identifier: Apache-2.0
// all_reduce of n bytes on R ranks, in chunks: each rank sends slice r of its chunk to rank r (sends n (R - 1) / R), which sums
// in the order of ranks and sends the result to all (again n (R - 1) / R): a ring's bytes, in a fixed order.
#include "comm/mpi/mpi_transport.hpp"

#include <algorithm>
#include <bit>
#include <exception>

#include "comm/keep.hpp"
#include "comm/slices.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

namespace tutti::comm {

namespace {

// Communicators are a transport's own, so collectives and messages are told apart by tags alone. Message tags begin at the last.
constexpr int kCollectiveTag = 0;
constexpr int kPresenceTag = 1;
constexpr int kFirstMessageTag = 2;
// Beside the number of an agreement in a word of presence.
constexpr std::uint64_t kGivenUp = std::uint64_t{1} << 63U;
// Agreements between two looks at who has said that it is here.
constexpr std::uint64_t kPresenceInterval = 64;
// What is reduced at once; scratch memory of the same size is needed.
constexpr std::size_t kReduceBytes = std::size_t{4} << 20U;

const std::byte* at(const void* data, std::int64_t element, std::size_t element_bytes) {
  return static_cast<const std::byte*>(data) + static_cast<std::size_t>(element) * element_bytes;
}
std::byte* at(void* data, std::int64_t element, std::size_t element_bytes) {
  return static_cast<std::byte*>(data) + static_cast<std::size_t>(element) * element_bytes;
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm communicator, std::shared_ptr<Waiter> waiter)
    : communicator_(communicator),
      waiter_(std::move(waiter)),
      requests_(communicator),
      presence_(communicator) {
  check_mpi(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  ins_.resize(static_cast<std::size_t>(size_));
  here_.resize(static_cast<std::size_t>(size_));
  buffers_->steps.resize(static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(size_))));
}

MpiTransport::~MpiTransport() {
  let_go();
  MPI_Comm_free(&communicator_);
}

// ---- calls --------------------------------------------------------------------------------------------------------------

void MpiTransport::start_send(const void* data, std::size_t bytes, int to) {
  requests_.send(data, bytes, to, kCollectiveTag);
}

void MpiTransport::start_receive(void* data, std::size_t bytes, int from) {
  requests_.receive(data, bytes, from, kCollectiveTag);
}

void MpiTransport::finish(const Contract& contract) {
  finish(contract, [this, &contract] { return missing_ranks(contract); });
}

template <class Missing>
void MpiTransport::finish(const Contract& contract, const Missing& missing) {
  try {
    waiter_->poll_until([this] { return requests_.test(); }, contract, missing);
  } catch (...) {
    let_go();
    throw;
  }
}

// The group keeps the operation's tensors.
void MpiTransport::let_go() noexcept {
  if (!requests_.under_way() && !presence_.under_way()) return;
  keep_forever(buffers_);
  requests_.let_go();
  presence_.let_go();
}

// ---- agreement ----------------------------------------------------------------------------------------------------------
// In step k a rank hears from the one 2^k below it, which has heard from 2^k - 1 others by then: after log2(size) steps each has
// heard from all whether theirs is the same contract. Only if not do all send theirs to all, for the message.
//
// Who waits long may not know for whom: its neighbour waits as well. So who has waited for a while tells all that it is here,
// and who gives up tells all that it comes to no other agreement.

void MpiTransport::agree(const Contract& contract) {
  // So that what others say does not pile up with a rank that never waits.
  if (++agreements_ % kPresenceInterval == 0) note_presence();
  bool same = true;
  std::size_t step = 0;
  for (int distance = 1; distance < size_; distance *= 2) {
    Buffers::Step& words = buffers_->steps[step++];
    words.out = {contract, same};
    start_receive(&words.in, sizeof words.in, (rank_ - distance + size_) % size_);
    start_send(&words.out, sizeof words.out, (rank_ + distance) % size_);
    finish(contract, [this, &contract] { return absent_ranks(contract); });
    same = same && words.in.same && words.in.contract.agrees_with(contract);
  }
  if (!same) [[unlikely]]
    throw_disagreement(contract);
}

void MpiTransport::throw_disagreement(const Contract& contract) {
  std::vector<Contract>& all = buffers_->contracts;
  all.assign(static_cast<std::size_t>(size_), contract);
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + step) % size_;
    start_receive(&all[static_cast<std::size_t>(peer)], sizeof(Contract), peer);
    start_send(&all[static_cast<std::size_t>(rank_)], sizeof(Contract), peer);
  }
  finish(contract);
  check_agreement(waiter_->group(), all);
}

// The ranks that have not said that they are here. Called now and then while this one waits.
std::vector<int> MpiTransport::absent_ranks(const Contract& contract) {
  std::uint64_t& own = here_[static_cast<std::size_t>(rank_)];
  if (own < agreements_ && presence_.test()) {
    own = buffers_->presence = agreements_;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) presence_.send(&buffers_->presence, sizeof buffers_->presence, peer, kPresenceTag);
    }
  }
  note_presence();
  std::vector<int> absent;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && (here_[static_cast<std::size_t>(peer)] & ~kGivenUp) < agreements_)
      absent.push_back(peer);
  }
  if (absent.empty()) return missing_ranks(contract);
  check_given_up(contract, absent);
  return absent;
}

// The ranks whose messages are missing, once all have come to the agreement.
std::vector<int> MpiTransport::missing_ranks(const Contract& contract) {
  note_presence();
  std::vector<int> missing = requests_.missing();
  check_given_up(contract, missing);
  return missing;
}

void MpiTransport::check_given_up(const Contract& contract, const std::vector<int>& awaited) const {
  for (const int peer : awaited) {
    TUTTI_CHECK((here_[static_cast<std::size_t>(peer)] & kGivenUp) == 0, CommError, to_text(contract),
                " in group '", waiter_->group(), "': rank ", waiter_->group_rank(peer),
                " has failed in an operation of this group");
  }
}

void MpiTransport::give_up() noexcept {
  try {
    buffers_->given_up = agreements_ | kGivenUp;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) presence_.send(&buffers_->given_up, sizeof buffers_->given_up, peer, kPresenceTag);
    }
  } catch (const std::exception& error) {
    // They find out when their deadline passes.
    if (logging::enabled(logging::Level::kWarning)) logging::write(logging::Level::kWarning, error.what());
  }
}

void MpiTransport::note_presence() {
  for (;;) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, kPresenceTag, communicator_, &found, &message, &status),
              "MPI_Improbe");
    if (found == 0) return;
    check_mpi(MPI_Mrecv(&here_[static_cast<std::size_t>(status.MPI_SOURCE)], sizeof(std::uint64_t), MPI_BYTE,
                        &message, MPI_STATUS_IGNORE),
              "MPI_Mrecv");
  }
}

// ---- collectives ----------------------------------------------------------------------------------------------------------

// Never shrinks: growing again would fill it with zeros.
void MpiTransport::grow_scratch(std::size_t bytes) {
  if (buffers_->scratch.size() < bytes) buffers_->scratch.resize(bytes);
}

// out = the reduction of `own` and what the other ranks have sent into buffers_->scratch.
void MpiTransport::reduce_received(const Contract& contract, void* out, const void* own, std::int64_t count) {
  const std::size_t element = size_of(contract.dtype);
  for (int rank = 0; rank < size_; ++rank) {
    ins_[static_cast<std::size_t>(rank)] =
        rank == rank_ ? own : at(buffers_->scratch.data(), rank * count, element);
  }
  reduce_loop(contract.dtype, contract.reduce)(&out, 1, ins_.data(), size_, count, size_);
}

void MpiTransport::all_reduce(const Contract& contract, void* data) {
  agree(contract);
  const std::size_t element = size_of(contract.dtype);
  const auto total = static_cast<std::int64_t>(contract.count);
  const auto chunk = static_cast<std::int64_t>(kReduceBytes / element);
  for (std::int64_t begin = 0; begin < total; begin += chunk) {
    const std::int64_t count = std::min(chunk, total - begin);
    std::byte* part = at(data, begin, element);
    const Slice own = slice_of(count, rank_, size_, element);
    grow_scratch(static_cast<std::size_t>(own.count * size_) * element);
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      const Slice theirs = slice_of(count, peer, size_, element);
      start_receive(at(buffers_->scratch.data(), peer * own.count, element),
                    static_cast<std::size_t>(own.count) * element, peer);
      start_send(at(part, theirs.begin, element), static_cast<std::size_t>(theirs.count) * element, peer);
    }
    finish(contract);
    std::byte* result = at(part, own.begin, element);
    reduce_received(contract, result, result, own.count);
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      const Slice theirs = slice_of(count, peer, size_, element);
      start_receive(at(part, theirs.begin, element), static_cast<std::size_t>(theirs.count) * element, peer);
      start_send(result, static_cast<std::size_t>(own.count) * element, peer);
    }
    finish(contract);
  }
}

void MpiTransport::reduce_scatter(const Contract& contract, void* out, const void* in) {
  agree(contract);
  const std::size_t element = size_of(contract.dtype);
  const auto part = static_cast<std::int64_t>(contract.count) / size_;
  const auto chunk = std::max<std::int64_t>(1, static_cast<std::int64_t>(kReduceBytes / element) / size_);
  for (std::int64_t begin = 0; begin < part; begin += chunk) {
    const std::int64_t count = std::min(chunk, part - begin);
    const std::size_t bytes = static_cast<std::size_t>(count) * element;
    grow_scratch(bytes * static_cast<std::size_t>(size_));
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      start_receive(at(buffers_->scratch.data(), peer * count, element), bytes, peer);
      start_send(at(in, peer * part + begin, element), bytes, peer);
    }
    finish(contract);
    reduce_received(contract, at(out, begin, element), at(in, rank_ * part + begin, element), count);
  }
}

void MpiTransport::all_gather(const Contract& contract, void* out, const void* in) {
  agree(contract);
  const std::size_t bytes = contract.bytes();
  auto* parts = static_cast<std::byte*>(out);
  std::byte* own = parts + static_cast<std::size_t>(rank_) * bytes;
  if (own != in && bytes > 0) std::copy_n(static_cast<const std::byte*>(in), bytes, own);
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + step) % size_;
    start_receive(parts + static_cast<std::size_t>(peer) * bytes, bytes, peer);
    start_send(own, bytes, peer);
  }
  finish(contract);
}

// A binomial tree from the root: a rank receives from the one that lacks its lowest set bit, then serves those above.
void MpiTransport::broadcast(const Contract& contract, void* data) {
  agree(contract);
  const int position = (rank_ - contract.root + size_) % size_;
  int bit = 1;
  while (bit < size_ && (position & bit) == 0) bit <<= 1;
  if (position != 0) {
    start_receive(data, contract.bytes(), (position - bit + contract.root) % size_);
    finish(contract);
  }
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (position + bit < size_) start_send(data, contract.bytes(), (position + bit + contract.root) % size_);
  }
  finish(contract);
}

// ---- messages -------------------------------------------------------------------------------------------------------------
// A message is its contract, then its bytes. MPI keeps the order of one sender and tag.

class MpiTransport::Send final : public Transfer {
 public:
  Send(MPI_Comm communicator, std::shared_ptr<Waiter> waiter, const Message& message)
      : contract_(std::make_shared<const Contract>(message.contract)),
        watch_(std::move(waiter), *contract_),
        requests_(communicator) {
    const int tag = message.tag + kFirstMessageTag;
    requests_.send(contract_.get(), sizeof(Contract), contract_->root, tag);
    requests_.send(message.data, contract_->bytes(), contract_->root, tag);
  }
  ~Send() override {
    if (requests_.under_way()) keep_forever(contract_);
  }
  bool progress() override {
    if (requests_.test()) return true;
    watch_.check();
    return false;
  }
  // What is short leaves at once. Where MPI moves a long message piece by piece, it does so in calls only, and nothing tells when it
  // begins.
  std::chrono::nanoseconds poll_interval() const noexcept override { return kPollInterval; }

 private:
  std::shared_ptr<const Contract> contract_;
  TransferWatch watch_;
  MpiRequests requests_;
};

class MpiTransport::Receive final : public Transfer {
 public:
  Receive(MPI_Comm communicator, std::shared_ptr<Waiter> waiter, std::shared_ptr<Queues> queues,
          const Message& message)
      : communicator_(communicator),
        waiter_(std::move(waiter)),
        queue_((*queues)[{message.contract.root, message.tag}]),
        queues_(std::move(queues)),
        message_(message),
        watch_(waiter_, message.contract),
        requests_(communicator) {
    queue_.push_back(this);
  }
  ~Receive() override {
    if (requests_.under_way() && dropped_ != nullptr) keep_forever(dropped_);
    std::erase(queue_, this);
  }

  bool progress() override {
    if (queue_.front() == this && (has_header_ || receive_header()) && requests_.test()) {
      if (!refusal_.empty()) throw RefusedMessage(refusal_);
      return true;
    }
    watch_.check();
    return false;
  }
  // Where MPI moves a long message piece by piece, it does so in calls only: once it has begun, they come often.
  std::chrono::nanoseconds poll_interval() const noexcept override {
    return has_header_ ? kPollInterval : watch_.nap();
  }

 private:
  bool receive_header() {
    const Contract& wanted = message_.contract;
    const int tag = message_.tag + kFirstMessageTag;
    int found = 0;
    MPI_Message matched = MPI_MESSAGE_NULL;
    check_mpi(MPI_Improbe(wanted.root, tag, communicator_, &found, &matched, MPI_STATUS_IGNORE),
              "MPI_Improbe");
    if (found == 0) return false;
    Contract sent;
    check_mpi(MPI_Mrecv(&sent, sizeof sent, MPI_BYTE, &matched, MPI_STATUS_IGNORE), "MPI_Mrecv");
    has_header_ = true;
    void* data = message_.data;
    if (sent.count != wanted.count || sent.dtype != wanted.dtype) {
      refusal_ = concat(to_text(wanted, message_.tag, waiter_->group()), ": rank ", wanted.root, " has sent ",
                        sent.count, " x ", sent.dtype);
      // It is received all the same, so that the next message of this tag can be.
      dropped_ = std::make_shared<std::vector<std::byte>>(sent.bytes());
      data = dropped_->data();
    }
    requests_.receive(data, sent.bytes(), wanted.root, tag);
    return true;
  }

  MPI_Comm communicator_;
  std::shared_ptr<Waiter> waiter_;
  std::deque<Receive*>& queue_;
  std::shared_ptr<Queues> queues_;
  Message message_;
  TransferWatch watch_;
  bool has_header_ = false;
  std::string refusal_;                              // why the message does not fit
  std::shared_ptr<std::vector<std::byte>> dropped_;  // where such a message goes
  MpiRequests requests_;
};

std::unique_ptr<Transfer> MpiTransport::send(const Message& message) {
  return std::make_unique<Send>(communicator_, waiter_, message);
}

std::unique_ptr<Transfer> MpiTransport::receive(const Message& message) {
  return std::make_unique<Receive>(communicator_, waiter_, queues_, message);
}

}  // namespace tutti::comm
