// SPDX-License-Identifier: Apache-2.0
// The team of compute threads: its size, where its threads run, and how long idle ones spin.
#pragma once

#include <string>

namespace tutti {

// Decides the team's size and binds the calling thread as its first member; done by the first get_num_threads
// or parallel_for otherwise. Called early (by Environment), threads that start later inherit this rank's
// slice of cores.
void bind_team();

// "2 threads, bound one a core to processors 0-1: one rank on this host", for `tutti env`.
std::string team_text();

// True on a thread that must run in place what parallel_for would give to a team.
bool thread_is_serial() noexcept;

// Called by each thread of a parallel region: thread `slot` of the bound team moves to its core, once.
class TeamBinding {
 public:
  // On the thread that starts the region.
  static TeamBinding of_calling_thread() noexcept;
  void enter(int slot) const noexcept;

 private:
  unsigned generation_ = 0;  // 0: this thread's team is not the bound one
};

}  // namespace tutti
