// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a host: a ring of slots in shared memory for each direction.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "comm/transport.hpp"
#include "comm/waiter.hpp"

namespace tutti::comm {

// Nothing but the doorbell need wake a process.
inline constexpr std::chrono::nanoseconds kDoorbellAnnounces = std::chrono::seconds(1);

inline constexpr std::size_t kMailBytes = 32 * 1024;
inline constexpr std::uint64_t kMailSlots = 4;

// What a message is.
struct MailHeader {
  std::uint64_t message_bytes = 0;
  std::uint64_t count = 0;
  std::int32_t tag = 0;
  DType dtype = DType::kUInt8;
};

// One piece of a message, in shared memory.
struct MailSlot {
  alignas(64) MailHeader header;
  std::uint32_t piece_bytes = 0;
  std::uint8_t is_first = 0;
  alignas(64) std::byte data[kMailBytes];
};

// One direction, in shared memory. The sender advances `written`, the receiver `read`.
struct MailRing {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
  MailSlot slots[kMailSlots];
};

// This process's ends of the two rings that it shares with one peer.
class Mailbox {
 public:
  Mailbox(MailRing* outgoing, MailRing* incoming, std::shared_ptr<Waiter> waiter, Doorbell* peer_bell);
  ~Mailbox();
  Mailbox(Mailbox&&) noexcept;
  Mailbox& operator=(Mailbox&&) = delete;

  std::unique_ptr<Transfer> send(const Message& message);
  std::unique_ptr<Transfer> receive(const Message& message);

 private:
  struct State;
  class Send;
  class Receive;
  std::shared_ptr<State> state_;
};

}  // namespace tutti::comm
