// SPDX-License-Identifier: Apache-2.0
// Moves the bytes of one group's operations. All calls come from the executor, one at a time, in the same order on all
// ranks. Buffers are contiguous. The contract says what the operation is; ranks agree on it before data moves.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "comm/contract.hpp"

namespace tutti::comm {

// One message of a send or a receive.
struct Message {
  Contract contract;  // root is the other rank, count and dtype those of the buffer
  int tag = 0;
  void* data = nullptr;
};

// A send or a receive under way.
class Transfer {
 public:
  Transfer() = default;
  virtual ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  // Moves what can be moved now, without waiting. True once done. Throws its failure.
  virtual bool progress() = 0;
  // How long a process may sleep before it must look again, if no doorbell rings.
  virtual std::chrono::nanoseconds poll_interval() const noexcept = 0;
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const noexcept = 0;
  // data: contract.count elements, in place.
  virtual void all_reduce(const Contract& contract, void* data) = 0;
  virtual void broadcast(const Contract& contract, void* data) = 0;
  // in: contract.count elements; out: contract.count / size.
  virtual void reduce_scatter(const Contract& contract, void* out, const void* in) = 0;
  // in: contract.count elements; out: contract.count * size. in may be this rank's part of out.
  virtual void all_gather(const Contract& contract, void* out, const void* in) = 0;
  virtual void barrier(const Contract& contract) = 0;
  // The buffer must outlive the transfer.
  virtual std::unique_ptr<Transfer> send(const Message& message) = 0;
  virtual std::unique_ptr<Transfer> receive(const Message& message) = 0;
  // This rank's operation has failed halfway and it will take part in no other: tells those that wait for it.
  virtual void give_up() noexcept {}
};

}  // namespace tutti::comm
