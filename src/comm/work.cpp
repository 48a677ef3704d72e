// SPDX-License-Identifier: Apache-2.0
#include "tutti/comm/work.hpp"

#include "comm/executor.hpp"
#include "comm/futex.hpp"
#include "comm/work_state.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace detail {

WorkState::~WorkState() = default;

void WorkState::finish(std::exception_ptr error) noexcept {
  error_ = std::move(error);
  done_.store(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex_wake_all(done_);
}

void WorkState::sleep_until_done(std::chrono::nanoseconds longest) noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex_wait(done_, 0, longest);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void ThenState::run() {
  if (before_ != nullptr) {
    // A send or receive that stands before this one in the queue has only been started.
    if (!before_->is_done()) Executor::current()->wait(*before_);
    before_->rethrow_failure();
  }
  function_();
}

void ThenState::release() noexcept {
  before_ = nullptr;
  function_ = nullptr;
}

}  // namespace detail

void Work::synchronize() const {
  if (state_ == nullptr) return;
  if (!state_->is_done()) {
    Executor* executor = Executor::current();
    if (executor != nullptr) executor->wait(*state_);
  }
  state_->rethrow_failure();
}

// All backends so far compute on the host, so that being ordered after means being done.
void Work::wait() const { synchronize(); }

bool Work::is_completed() const noexcept { return state_ == nullptr || state_->is_done(); }

Work Work::then(std::function<void()> function) const {
  TUTTI_CHECK(function != nullptr, ValueError, "then: the function is empty");
  auto next = std::make_shared<detail::ThenState>(state_, std::move(function));
  Executor::submit_or_run(next);
  return Work(std::move(next));
}

}  // namespace tutti::comm
