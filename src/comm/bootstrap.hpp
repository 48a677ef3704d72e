// SPDX-License-Identifier: Apache-2.0
// How ranks find one another and agree on small things before there are data paths. Two forms: mpi and tcp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/deadline.hpp"

namespace tutti::comm {

class Transport;
class Waiter;

// What all ranks together may give in one exchange, in bytes: every form of bootstrap carries so much in one message.
inline constexpr std::size_t kLongestExchange = std::size_t{32} << 20U;

// Ranks of a job, at most: a greater number is a mistake in a variable, or garbage in a message.
inline constexpr int kGreatestSize = 1 << 20;

// Calls are collective and blocking. After a TimeoutError or CommError the object is not used again.
class Bootstrap {
 public:
  Bootstrap() = default;
  virtual ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  // Returns what each rank gave, in the order of ranks. `purpose` stands in messages ("meeting of the job's ranks").
  virtual std::vector<std::string> exchange(const std::string& bytes, const Deadline& deadline,
                                            const char* purpose) = 0;
  // The same among some of the ranks, given in the order of their new ranks; only those call it, with the same name,
  // which is used once.
  virtual std::unique_ptr<Bootstrap> subset(const std::vector<int>& ranks, const std::string& name,
                                            const Deadline& deadline) = 0;

  // A transport over the network among these ranks; null if this form of bootstrap has none.
  virtual std::unique_ptr<Transport> make_network_transport(std::shared_ptr<Waiter> waiter,
                                                            const Deadline& deadline);

  void barrier(const Deadline& deadline, const char* purpose) { exchange({}, deadline, purpose); }
};

// Meets the other ranks over TCP at MASTER_ADDR and MASTER_PORT, as RANK of WORLD_SIZE; rank 0 serves.
std::unique_ptr<Bootstrap> make_tcp_bootstrap(const Deadline& deadline);
// True if the variables of the above are set. ValueError if some are, and ask for several ranks, but not all.
bool tcp_bootstrap_requested();
// RANK; ValueError if it isn't one of WORLD_SIZE.
int rank_by_environment();

}  // namespace tutti::comm
