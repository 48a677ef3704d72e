// SPDX-License-Identifier: Apache-2.0
// All that an Environment of several ranks owns, in the order in which it comes into being.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.hpp"
#include "comm/cpu_group.hpp"
#include "comm/executor.hpp"
#include "comm/group_core.hpp"
#include "comm/host.hpp"
#include "comm/shm/heap.hpp"
#include "tutti/comm/process_group.hpp"

namespace tutti::comm {

struct Job {
  std::shared_ptr<Host> host;
  std::shared_ptr<SharedHeap> heap;
  std::unique_ptr<Executor> executor;
  std::shared_ptr<CpuGroup> world;
  std::vector<std::weak_ptr<GroupCore>> groups;  // to be closed at the end
  double timeout_s = 0;

  // Meets the other ranks and makes the world.
  Job(std::unique_ptr<Bootstrap> bootstrap, double timeout);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  // Waits for the other ranks to come to their end too; TimeoutError or CommError. Then ends the communication thread and
  // the groups.
  void close();

  static Job* current() noexcept;
  static void set_current(Job* job) noexcept;
};

// A group of the calling process alone.
std::shared_ptr<ProcessGroup> make_group_of_one(std::string name, double timeout_s);

}  // namespace tutti::comm
