// SPDX-License-Identifier: Apache-2.0
/// \file
/// Work: the handle of a collective that may still be running.
#pragma once

#include <functional>
#include <memory>

#include "tutti/core/export.hpp"

namespace tutti::comm {

namespace detail {
class WorkState;
}

/// A cheap shared handle to one operation of a process group. It keeps the operation's tensors alive until it
/// is done.
///
/// A default-constructed Work is done. Every operation ends: at the latest when the group's timeout has
/// passed, with a TimeoutError that names operation, sequence number, bytes and the ranks that are missing.
class TUTTI_API Work {
 public:
  Work() noexcept = default;
  explicit Work(std::shared_ptr<detail::WorkState> state) noexcept : state_(std::move(state)) {}

  /// Orders the current stream of the tensors' device after the operation; on a CPU that blocks the calling
  /// thread. Rethrows the operation's failure (CommError, TimeoutError), each time it is called.
  void wait() const;
  /// Blocks the host until the operation is done. Rethrows its failure.
  void synchronize() const;
  /// True once the operation is done or has failed. Never blocks.
  bool is_completed() const noexcept;
  /// Appends `function` to the communication queue and returns its Work. It runs on the communication thread after this operation
  /// and all collectives issued before the call; sends and receives issued before may still be under way, and it can wait() for
  /// them. Collectives that it issues run at once, inside it. If this operation fails, `function` does not run and the returned
  /// Work fails alike. What it throws is rethrown by wait(). ValueError if it is empty.
  Work then(std::function<void()> function) const;

 private:
  std::shared_ptr<detail::WorkState> state_;
};

}  // namespace tutti::comm
