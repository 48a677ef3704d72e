// SPDX-License-Identifier: Apache-2.0
// What a Work points to: one entry of the communication queue.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace tutti::comm::detail {

class PointToPointState;

class WorkState {
 public:
  WorkState() = default;
  virtual ~WorkState();
  WorkState(const WorkState&) = delete;
  WorkState& operator=(const WorkState&) = delete;

  // Does the operation, waiting as long as its deadline allows. Throws its failure. Called once, by the executor.
  virtual void run() = 0;
  // Lets go of tensors and functions, once the operation has ended.
  virtual void release() noexcept {}
  // True if only the communication thread may run it: it calls the user's code.
  virtual bool needs_communication_thread() const noexcept { return false; }
  // Itself, if it is a send or a receive; the executor then calls progress() in place of run().
  virtual PointToPointState* as_point_to_point() noexcept { return nullptr; }

  bool is_done() const noexcept { return done_.load(std::memory_order_acquire) != 0; }
  bool has_failed() const noexcept { return is_done() && error_ != nullptr; }
  void rethrow_failure() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  // Wakes who waits. Called by the executor.
  void finish(std::exception_ptr error) noexcept;
  // Blocks until finish(), at most `longest`.
  void sleep_until_done(std::chrono::nanoseconds longest) noexcept;

 private:
  std::atomic<std::uint32_t> done_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::exception_ptr error_;
};

// A send or a receive: once started it is one of several that make progress side by side.
class PointToPointState : public WorkState {
 public:
  // Moves what can be moved now, without waiting. True once done. Throws its failure.
  virtual bool progress() = 0;
  // How long a process may sleep before it must look again, if no doorbell rings.
  virtual std::chrono::nanoseconds poll_interval() const noexcept = 0;
  // What it is, for messages.
  virtual std::string text() const = 0;
  PointToPointState* as_point_to_point() noexcept final { return this; }
  void run() final {}
};

// Work::then.
class ThenState final : public WorkState {
 public:
  ThenState(std::shared_ptr<WorkState> before, std::function<void()> function)
      : before_(std::move(before)), function_(std::move(function)) {}
  void run() override;
  void release() noexcept override;
  bool needs_communication_thread() const noexcept override { return true; }

 private:
  std::shared_ptr<WorkState> before_;
  std::function<void()> function_;
};

}  // namespace tutti::comm::detail
