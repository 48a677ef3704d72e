// SPDX-License-Identifier: Apache-2.0
// The ranks of this host as one process sees them: where they sleep, whether they live, and whether one has failed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap.hpp"
#include "comm/futex.hpp"
#include "comm/shm/segment.hpp"

namespace tutti::comm {

class Host {
 public:
  // Collective over the job. Works without shared memory too (shares_memory() is then false, `reason` says why).
  static std::shared_ptr<Host> create(Bootstrap& bootstrap, const Deadline& deadline);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  int world_rank() const noexcept { return world_rank_; }
  int world_size() const noexcept { return static_cast<int>(host_of_.size()); }
  int local_rank() const noexcept { return local_rank_; }
  int local_size() const noexcept { return static_cast<int>(local_ranks_.size()); }
  // World ranks of this host, ascending.
  const std::vector<int>& local_ranks() const noexcept { return local_ranks_; }
  // By world rank: a number for its host, in the order of first ranks; and the host's name.
  const std::vector<int>& host_of() const noexcept { return host_of_; }
  const std::vector<std::string>& host_names() const noexcept { return host_names_; }
  // Position among local_ranks(), -1 for a rank of another host.
  int local_index(int world_rank) const noexcept;

  bool shares_memory() const noexcept { return static_cast<bool>(control_); }
  const std::string& reason() const noexcept { return reason_; }
  pid_t pid_of(int local_index) const noexcept { return pids_[static_cast<std::size_t>(local_index)]; }

  Doorbell& own_doorbell() noexcept;
  Doorbell& doorbell(int local_index) noexcept;

  // Throws CommError if one of these ranks (world numbers) has left or died. Ranks of other hosts are not known about.
  void check_alive(std::span<const int> world_ranks) const;
  // Tells local ranks that this one will take part in nothing more.
  void depart() noexcept;
  // Tells local ranks that this one ends the job. False if another was first.
  bool announce_failure() noexcept;
  // The world rank that ends the job, or -1.
  int failed_rank() const noexcept;
  // Blocks until another rank ends the job (true), or this process calls stop_watching() (false). Needs shared memory.
  bool wait_for_failure() noexcept;
  void stop_watching() noexcept;

 private:
  struct Peer;     // in shared memory, one a local rank
  struct Control;  // the same, once
  Host() = default;
  void share(Bootstrap& bootstrap, const Deadline& deadline);
  void watch_peers();
  Control* control() const noexcept { return reinterpret_cast<Control*>(control_.data()); }
  Peer& peer(int local_index) const noexcept;

  int world_rank_ = 0;
  int local_rank_ = 0;
  std::vector<int> local_ranks_{0};
  std::vector<int> host_of_{0};
  std::vector<std::string> host_names_;
  std::vector<pid_t> pids_;   // of the local ranks
  std::vector<int> pid_fds_;  // readable once the process has ended; -1 where the system has no such thing
  Segment control_;
  std::string reason_;
  Doorbell private_doorbell_;  // without shared memory
  std::atomic<int> private_failure_{-1};
};

}  // namespace tutti::comm
