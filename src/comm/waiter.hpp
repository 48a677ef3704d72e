// SPDX-License-Identifier: Apache-2.0
// How an operation waits for other ranks: it spins a little, sleeps, looks after sends and receives, and gives up with a
// message when a rank is dead or the deadline has passed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/contract.hpp"
#include "comm/host.hpp"
#include "core/deadline.hpp"

namespace tutti::comm {

// How long to sleep before the next look at what no doorbell announces (MPI), after so long a wait: ever longer, up to 1 ms.
std::chrono::nanoseconds polling_nap(std::chrono::nanoseconds waited) noexcept;

class Waiter {
 public:
  // `world_ranks` are those that wait for one another, in the order of their own numbers from 0. Where these are only some of
  // the group, `group_ranks` says which, for messages; empty: all.
  Waiter(std::shared_ptr<Host> host, std::string group, std::vector<int> world_ranks, double timeout_s,
         std::vector<int> group_ranks = {});

  // Returns once ready() holds. `missing` gives the ranks, by their own numbers, that it waits for. Throws
  // TimeoutError or CommError.
  template <class Ready, class Missing>
  void until(const Ready& ready, const Contract& contract, const Missing& missing) {
    if (spin([&ready] { return ready(); })) return;
    sleep(std::cref(ready), contract, std::cref(missing), kSharedMemoryNaps);
  }
  // The same for what no doorbell announces (MPI): looks again and again, ever more rarely.
  template <class Ready, class Missing>
  void poll_until(const Ready& ready, const Contract& contract, const Missing& missing) {
    if (spin([&ready] { return ready(); })) return;
    sleep(std::cref(ready), contract, std::cref(missing), kPollingNaps);
  }

  // Throws CommError if one of the missing ranks is dead, or TimeoutError if the deadline has passed.
  void check(const Contract& contract, const std::vector<int>& missing, const Deadline& deadline) const;

  Host& host() const noexcept { return *host_; }
  const std::string& group() const noexcept { return group_; }
  const std::vector<int>& world_ranks() const noexcept { return world_ranks_; }
  // As the group numbers it.
  int group_rank(int rank) const noexcept {
    return group_ranks_.empty() ? rank : group_ranks_[static_cast<std::size_t>(rank)];
  }
  double timeout_s() const noexcept { return timeout_s_; }

 private:
  enum Naps { kSharedMemoryNaps, kPollingNaps };
  template <class Ready>
  bool spin(const Ready& ready) const {
    const int rounds = spin_rounds();
    for (int round = 0; round < rounds; ++round) {
      if (ready()) return true;
      spin_pause();
    }
    return ready();
  }
  int spin_rounds() const noexcept;
  void sleep(const std::function<bool()>& ready, const Contract& contract,
             const std::function<std::vector<int>()>& missing, Naps naps);

  std::shared_ptr<Host> host_;
  std::string group_;
  std::vector<int> world_ranks_;
  std::vector<int> group_ranks_;
  double timeout_s_;
  bool has_core_ = true;  // there is a core for each rank of this host
};

// The limits of one send or receive: its peer must live and the deadline not pass. check() is cheap enough for each try.
class TransferWatch {
 public:
  TransferWatch(std::shared_ptr<Waiter> waiter, const Contract& contract);
  void check();
  // How long to sleep before the next try, if no doorbell announces it.
  std::chrono::nanoseconds nap() const noexcept { return polling_nap(Deadline::Clock::now() - since_); }

 private:
  std::shared_ptr<Waiter> waiter_;
  Contract contract_;
  Deadline deadline_;
  Deadline::Clock::time_point since_;
  Deadline::Clock::time_point next_check_;
};

// If another rank has failed and ends the job, waits quietly for that end, so that its message is the only one.
void park_if_job_ends(const Host& host);

}  // namespace tutti::comm
