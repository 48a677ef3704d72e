// SPDX-License-Identifier: Apache-2.0
#include "comm/job.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "comm/mpi/mpi_runtime.hpp"
#include "comm/self/self_transport.hpp"
#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

namespace tutti::comm {

namespace {
std::atomic<Job*> current_job{nullptr};
std::atomic<bool> had_job{false};
}  // namespace

Job* Job::current() noexcept { return current_job.load(std::memory_order_acquire); }
void Job::set_current(Job* job) noexcept {
  if (job != nullptr) had_job.store(true);
  current_job.store(job, std::memory_order_release);
}

Job::Job(std::unique_ptr<Bootstrap> bootstrap, double timeout) : timeout_s(timeout) {
  host = Host::create(*bootstrap, Deadline(timeout_s));
  const std::vector<std::string> backends =
      bootstrap->exchange(environment_text("TUTTI_COMM_BACKEND").value_or(""), Deadline(timeout_s),
                          "the meeting of the job's ranks");
  for (std::size_t rank = 1; rank < backends.size(); ++rank) {
    TUTTI_CHECK(backends[rank] == backends[0], ValueError,
                "TUTTI_COMM_BACKEND must be the same on all ranks, but is \"", backends[0],
                "\" on rank 0 and \"", backends[rank], "\" on rank ", rank);
  }
  if (!host->shares_memory()) {
    logging::warning("ranks of this host don't share memory, so they communicate more slowly: ",
                     host->reason());
  }
  heap = std::make_shared<SharedHeap>();
  std::vector<int> ranks(static_cast<std::size_t>(bootstrap->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  world = std::make_shared<CpuGroup>(
      make_group_core(*this, std::move(bootstrap), std::move(ranks), "world", timeout_s));
  executor = std::make_unique<Executor>(host->own_doorbell());
  Executor::set_current(executor.get());
  set_current(this);
}

void Job::close() {
  world->meet(Operation::kEnd);
  executor->stop();
  host->depart();
}

Job::~Job() {
  executor->stop();
  Executor::set_current(nullptr);
  set_current(nullptr);
  world = nullptr;
  for (const std::weak_ptr<GroupCore>& group : groups) {
    if (const std::shared_ptr<GroupCore> core = group.lock()) core->close();
  }
}

std::shared_ptr<ProcessGroup> make_group_of_one(std::string name, double timeout_s) {
  auto core = std::make_shared<GroupCore>();
  core->name = std::move(name);
  core->timeout_s = timeout_s;
  core->world_ranks = {0};
  core->transport = std::make_unique<SelfTransport>();
  return std::make_shared<CpuGroup>(std::move(core));
}

std::shared_ptr<ProcessGroup> world() {
  if (const Job* job = Job::current()) return job->world;
  static const std::shared_ptr<ProcessGroup> kAlone = [] {
    if (!had_job.load() && launched_with_others()) {
      logging::warning(
          "this process was started as one of several ranks, but has no Environment and so is alone: ",
          "make `Environment env{argc, argv}` first in main");
    }
    return make_group_of_one("world", default_timeout_s());
  }();
  return kAlone;
}

std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& ranks, GroupOptions options) {
  const std::shared_ptr<ProcessGroup> all = world();
  std::vector<bool> seen(static_cast<std::size_t>(all->size()), false);
  TUTTI_CHECK(!ranks.empty(), ValueError, "new_group: wanted at least one rank");
  for (const int rank : ranks) {
    TUTTI_CHECK(rank >= 0 && rank < all->size(), ValueError, "new_group: wanted ranks from 0 to ",
                all->size() - 1, ", given ", rank);
    TUTTI_CHECK(!seen[static_cast<std::size_t>(rank)], ValueError, "new_group: rank ", rank,
                " is given twice");
    seen[static_cast<std::size_t>(rank)] = true;
  }
  std::string list;
  for (const int rank : ranks) list += concat(list.empty() ? "" : ",", rank);
  const std::vector<std::string> lists = all->exchange(list);
  for (std::size_t rank = 1; rank < lists.size(); ++rank) {
    TUTTI_CHECK(lists[rank] == lists[0], CommError, "new_group: rank 0 wants a group of ranks ", lists[0],
                ", rank ", rank, " one of ", lists[rank]);
  }
  const auto own = std::find(ranks.begin(), ranks.end(), all->rank());
  if (options.name.empty()) options.name = concat("ranks ", list);
  return all->split(own == ranks.end() ? -1 : 0, static_cast<int>(own - ranks.begin()), std::move(options));
}

}  // namespace tutti::comm
