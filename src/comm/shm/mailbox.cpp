// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/mailbox.hpp"

#include <algorithm>
#include <cstring>
#include <list>

#include "tutti/core/error.hpp"

namespace tutti::comm {

struct Mailbox::State {
  // A message that arrived before its receive.
  struct Parcel {
    MailHeader header;
    std::vector<std::byte> bytes;
    bool complete = false;
  };

  MailRing* outgoing = nullptr;
  MailRing* incoming = nullptr;
  std::shared_ptr<Waiter> waiter;
  Doorbell* peer_bell = nullptr;
  std::deque<Send*> sends;        // in order; the first is on its way
  std::deque<Receive*> receives;  // without a message yet, in the order of their calls
  std::list<Parcel> parcels;

  // The message that is arriving. Its bytes go to `target`; to `parcel` if nobody asked for it yet; or nowhere if its
  // receive refuses it or has given up.
  Receive* target = nullptr;
  Parcel* parcel = nullptr;
  std::uint64_t arriving_bytes = 0;
  std::uint64_t arrived_bytes = 0;

  void take_pieces();
  void begin_message(const MailHeader& header);
  void end_message();
};

class Mailbox::Send final : public Transfer {
 public:
  Send(std::shared_ptr<State> state, const Message& message)
      : state_(std::move(state)), message_(message), watch_(state_->waiter, message.contract) {
    state_->sends.push_back(this);
  }
  ~Send() override { std::erase(state_->sends, this); }

  bool progress() override {
    if (state_->sends.front() == this && put_pieces()) {
      state_->sends.pop_front();
      return true;
    }
    watch_.check();
    return false;
  }
  std::chrono::nanoseconds poll_interval() const noexcept override { return kDoorbellAnnounces; }

 private:
  // True once the whole message is in the ring. A message without elements is one empty piece.
  bool put_pieces() {
    MailRing& ring = *state_->outgoing;
    const std::size_t bytes = message_.contract.bytes();
    std::uint64_t written = ring.written.load(std::memory_order_relaxed);
    bool moved = false;
    while (!finished_ && written - ring.read.load(std::memory_order_acquire) < kMailSlots) {
      MailSlot& slot = ring.slots[written % kMailSlots];
      const std::size_t piece = std::min(bytes - sent_, kMailBytes);
      slot.header = {bytes, message_.contract.count, message_.tag, message_.contract.dtype};
      slot.piece_bytes = static_cast<std::uint32_t>(piece);
      slot.is_first = sent_ == 0 ? 1 : 0;
      if (piece > 0) std::memcpy(slot.data, static_cast<const std::byte*>(message_.data) + sent_, piece);
      sent_ += piece;
      finished_ = sent_ == bytes;
      ring.written.store(++written, std::memory_order_release);
      moved = true;
    }
    if (moved) state_->peer_bell->ring();
    return finished_;
  }

  std::shared_ptr<State> state_;
  Message message_;
  TransferWatch watch_;
  std::size_t sent_ = 0;
  bool finished_ = false;
};

class Mailbox::Receive final : public Transfer {
 public:
  Receive(std::shared_ptr<State> state, const Message& message)
      : state_(std::move(state)), message_(message), watch_(state_->waiter, message.contract) {
    state_->receives.push_back(this);
  }
  ~Receive() override {
    std::erase(state_->receives, this);
    if (state_->target == this) state_->target = nullptr;
  }

  bool progress() override {
    open_parcel();
    state_->take_pieces();
    if (!complete_) {
      watch_.check();
      return false;
    }
    if (!refusal_.empty()) throw RefusedMessage(refusal_);
    return true;
  }
  std::chrono::nanoseconds poll_interval() const noexcept override { return kDoorbellAnnounces; }

  int tag() const noexcept { return message_.tag; }
  // Looks whether its message fits. One that does not is dropped as it arrives; then this receive fails.
  void begin(const MailHeader& header) {
    const Contract& wanted = message_.contract;
    if (header.count == wanted.count && header.dtype == wanted.dtype) return;
    refusal_ = concat(to_text(wanted, message_.tag, state_->waiter->group()), ": rank ", wanted.root,
                      " has sent ", header.count, " x ", header.dtype);
  }
  // Where its message goes; null if that is dropped.
  std::byte* data() const noexcept {
    return refusal_.empty() ? static_cast<std::byte*>(message_.data) : nullptr;
  }
  void complete() noexcept { complete_ = true; }

 private:
  // Takes the oldest message of this tag that came early.
  void open_parcel() {
    const auto waiting = std::find(state_->receives.begin(), state_->receives.end(), this);
    if (waiting == state_->receives.end()) return;
    for (auto it = state_->receives.begin(); it != waiting; ++it) {
      if ((*it)->tag() == tag()) return;  // its turn is first
    }
    auto parcel = std::find_if(state_->parcels.begin(), state_->parcels.end(),
                               [this](const State::Parcel& one) { return one.header.tag == tag(); });
    if (parcel == state_->parcels.end() || !parcel->complete) return;
    state_->receives.erase(waiting);
    begin(parcel->header);
    if (data() != nullptr && !parcel->bytes.empty())
      std::memcpy(data(), parcel->bytes.data(), parcel->bytes.size());
    complete();
    state_->parcels.erase(parcel);
  }

  std::shared_ptr<State> state_;
  Message message_;
  TransferWatch watch_;
  std::string refusal_;  // why the message does not fit
  bool complete_ = false;
};

void Mailbox::State::begin_message(const MailHeader& header) {
  arriving_bytes = header.message_bytes;
  arrived_bytes = 0;
  target = nullptr;
  parcel = nullptr;
  // An earlier message of this tag that still lies here goes first.
  const bool earlier = std::any_of(parcels.begin(), parcels.end(),
                                   [&header](const Parcel& one) { return one.header.tag == header.tag; });
  const auto found = std::find_if(receives.begin(), receives.end(),
                                  [&header](const Receive* one) { return one->tag() == header.tag; });
  if (found != receives.end() && !earlier) {
    target = *found;
    receives.erase(found);
    target->begin(header);
    return;
  }
  parcels.emplace_back();
  parcel = &parcels.back();
  parcel->header = header;
  parcel->bytes.resize(header.message_bytes);
}

void Mailbox::State::end_message() {
  if (target != nullptr) target->complete();
  if (parcel != nullptr) parcel->complete = true;
  target = nullptr;
  parcel = nullptr;
}

void Mailbox::State::take_pieces() {
  std::uint64_t read = incoming->read.load(std::memory_order_relaxed);
  bool moved = false;
  while (read < incoming->written.load(std::memory_order_acquire)) {
    const MailSlot& slot = incoming->slots[read % kMailSlots];
    if (slot.is_first != 0) begin_message(slot.header);
    std::byte* to = target != nullptr ? target->data() : parcel != nullptr ? parcel->bytes.data() : nullptr;
    if (to != nullptr && slot.piece_bytes > 0) std::memcpy(to + arrived_bytes, slot.data, slot.piece_bytes);
    arrived_bytes += slot.piece_bytes;
    if (arrived_bytes == arriving_bytes) end_message();
    incoming->read.store(++read, std::memory_order_release);
    moved = true;
  }
  if (moved) peer_bell->ring();
}

Mailbox::Mailbox(MailRing* outgoing, MailRing* incoming, std::shared_ptr<Waiter> waiter, Doorbell* peer_bell)
    : state_(std::make_shared<State>()) {
  state_->outgoing = outgoing;
  state_->incoming = incoming;
  state_->waiter = std::move(waiter);
  state_->peer_bell = peer_bell;
}
Mailbox::~Mailbox() = default;
Mailbox::Mailbox(Mailbox&&) noexcept = default;

std::unique_ptr<Transfer> Mailbox::send(const Message& message) {
  return std::make_unique<Send>(state_, message);
}
std::unique_ptr<Transfer> Mailbox::receive(const Message& message) {
  return std::make_unique<Receive>(state_, message);
}

}  // namespace tutti::comm
