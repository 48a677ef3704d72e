// SPDX-License-Identifier: Apache-2.0
#include "comm/waiter.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "comm/ending.hpp"
#include "comm/executor.hpp"
#include "core/topology.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

using namespace std::chrono_literals;

// A pause is about 40 ns: short enough that the compute thread, which may share the core, hardly loses by it, and long
// enough for a peer that is on its way.
constexpr int kShortSpin = 50;
// Nobody computes on this core, so a peer that is a little late is cheaper to wait for than to be woken by.
constexpr int kLongSpin = 1500;
constexpr std::chrono::nanoseconds kFirstPoll = 20us;
constexpr std::chrono::nanoseconds kLongestPoll = 1ms;
constexpr auto kLongestNap = 100ms;
constexpr auto kCheckInterval = 100ms;

}  // namespace

void park_if_job_ends(const Host& host) {
  const int failed = host.failed_rank();
  if (failed < 0 || failed == host.world_rank()) return;
  std::this_thread::sleep_for(kLongestPark);
  ::_exit(EXIT_FAILURE);
}

std::chrono::nanoseconds polling_nap(std::chrono::nanoseconds waited) noexcept {
  return std::min(kFirstPoll + waited / 8, kLongestPoll);
}

Waiter::Waiter(std::shared_ptr<Host> host, std::string group, std::vector<int> world_ranks, double timeout_s,
               std::vector<int> group_ranks)
    : host_(std::move(host)),
      group_(std::move(group)),
      world_ranks_(std::move(world_ranks)),
      group_ranks_(std::move(group_ranks)),
      timeout_s_(timeout_s),
      has_core_(host_->local_size() <= topology().host_cores) {}

int Waiter::spin_rounds() const noexcept {
  if (!has_core_) return 0;
  if (!Executor::on_communication_thread()) return kLongSpin;
  const Executor* executor = Executor::current();
  return executor != nullptr && executor->somebody_waits() ? kLongSpin : kShortSpin;
}

void Waiter::check(const Contract& contract, const std::vector<int>& missing,
                   const Deadline& deadline) const {
  park_if_job_ends(*host_);
  std::vector<int> world;
  for (const int rank : missing) world.push_back(world_ranks_[static_cast<std::size_t>(rank)]);
  try {
    host_->check_alive(world);
  } catch (const CommError& error) {
    tutti::detail::fail<CommError>(to_text(contract), " in group '", group_, "': ", error.what());
  }
  if (!deadline.passed()) return;
  std::vector<int> late;
  for (const int rank : missing) late.push_back(group_rank(rank));
  tutti::detail::fail<TimeoutError>(to_text(contract), " (", contract.bytes(), " bytes) in group '", group_,
                                    "' has waited ", deadline.seconds(), " s for ", rank_list(late),
                                    " (TUTTI_TIMEOUT_S, GroupOptions::timeout_s)");
}

TransferWatch::TransferWatch(std::shared_ptr<Waiter> waiter, const Contract& contract)
    : waiter_(std::move(waiter)),
      contract_(contract),
      deadline_(waiter_->timeout_s()),
      since_(Deadline::Clock::now()),
      next_check_(since_ + kCheckInterval) {}

void TransferWatch::check() {
  const auto now = Deadline::Clock::now();
  if (now < next_check_ && now < deadline_.time_point()) return;
  next_check_ = now + kCheckInterval;
  waiter_->check(contract_, {contract_.root}, deadline_);
}

void Waiter::sleep(const std::function<bool()>& ready, const Contract& contract,
                   const std::function<std::vector<int>()>& missing, Naps naps) {
  const Deadline deadline(timeout_s_);
  Executor* executor = Executor::current();
  const auto begun = Deadline::Clock::now();
  auto next_check = begun + kCheckInterval;
  Doorbell::Listener listener(host_->own_doorbell());
  for (;;) {
    listener.arm();
    if (ready()) return;
    std::chrono::nanoseconds nap = kLongestNap;
    if (executor != nullptr) {
      executor->progress_point_to_point();
      nap = std::min(nap, executor->longest_sleep());
    }
    if (naps == kPollingNaps) nap = std::min(nap, polling_nap(Deadline::Clock::now() - begun));
    listener.sleep(nap);
    if (Deadline::Clock::now() < next_check && !deadline.passed()) continue;
    next_check = Deadline::Clock::now() + kCheckInterval;
    const std::vector<int> late = missing();
    if (ready()) return;  // what a rank gave before it ended still counts
    check(contract, late, deadline);
  }
}

}  // namespace tutti::comm
