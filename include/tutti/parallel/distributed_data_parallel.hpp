// SPDX-License-Identifier: Apache-2.0
/// \file
/// DistributedDataParallel: every rank trains its copy of a module on its part of the data; gradients are averaged while
/// backward runs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tutti/autograd/guards.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/export.hpp"
#include "tutti/core/hidden.hpp"
#include "tutti/nn/module.hpp"
#include "tutti/parallel/grad_bucket.hpp"

namespace tutti::parallel {

class Reducer;

/// Options of DistributedDataParallel; names and meaning as in PyTorch.
struct DistributedDataParallelOptions {
  /// Ranks that train together; null: the world.
  std::shared_ptr<comm::ProcessGroup> process_group = nullptr;
  /// A bucket is closed once it holds this many MiB.
  double bucket_cap_mb = 25;
  /// The same for the first bucket that is ready: small, so that communication starts early.
  double first_bucket_cap_mb = 1;
  /// Gradients are views of the buckets: they are written and reduced in place. Otherwise they are copied in and out.
  bool gradient_as_bucket_view = true;
  /// Rank 0's buffers replace all others' before each training forward.
  bool broadcast_buffers = true;
};

/// While it lives, backward leaves gradients local: they add up until a backward outside of it averages them.
class TUTTI_API NoSyncGuard {
 public:
  NoSyncGuard(Reducer& reducer, bool on);
  ~NoSyncGuard();
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;

 private:
  Reducer* reducer_;
  bool previous_;
};

/// The part that does not depend on the module's type.
class TUTTI_API DistributedDataParallelBase {
 public:
  ~DistributedDataParallelBase();
  DistributedDataParallelBase(const DistributedDataParallelBase&) = delete;
  DistributedDataParallelBase& operator=(const DistributedDataParallelBase&) = delete;

  /// Gradients of backward passes inside the guard stay local and add up; the next one outside averages the sum. What counts
  /// is where backward runs, not where forward did. `when` false: the guard does nothing.
  [[nodiscard]] NoSyncGuard no_sync(bool when = true) { return NoSyncGuard(*reducer_, when); }
  /// Replaces the all-reduce of buckets; an empty function brings it back. AutogradError during a backward.
  void register_comm_hook(CommHook hook);
  comm::ProcessGroup& process_group() const noexcept { return *group_; }
  /// Bytes of each bucket, in launch order.
  std::vector<std::size_t> bucket_bytes() const;

 protected:
  DistributedDataParallelBase(nn::ModuleBase& module, const DistributedDataParallelOptions& options);
  /// True if this forward is to have a backward, on every rank.
  bool before_forward();
  void after_forward(const std::vector<Tensor>& outputs);

 private:
  nn::ModuleBase* module_;
  std::shared_ptr<comm::ProcessGroup> group_;
  bool broadcast_buffers_;
  tutti::detail::Hidden<Reducer> reducer_;
};

/// Wraps a module, which it refers to and which must outlive it. Call the wrapper in place of the module.
///
/// Construction is collective: every rank of the group must wrap the same module. Parameter names, shapes, layouts, dtypes
/// and requires_grad are compared, and ModuleError on every rank names the first difference; then rank 0's parameters and buffers
/// are copied to all. A backward in which a parameter that requires grad got no gradient throws AutogradError on every rank,
/// names rank and parameter, and leaves no gradients. So does one that throws on a rank, in a comm hook or elsewhere: that
/// rank gets its own exception. If its last bucket had left by then, the others get the error in the next backward.
/// A backward that a rank skips, or that throws before it reaches the first parameter, makes its next one meet an earlier one of the
/// others. It is known by a training forward (recorded, of a module in training, outside of no_sync) whose graph has died without a
/// backward: if ranks have different numbers of those, all throw AutogradError with the numbers, leave no gradients and count
/// anew. Call forwards that have no backward under autograd::NoGradGuard. Not noticed: a rank that skips the forward too, keeps
/// the graph, or whose module returns no Tensor (nor a pair, tuple or array of them). A rank that does no further backward is
/// waited for until the group's timeout, whose error names it.
template <class M>
class DistributedDataParallel : public DistributedDataParallelBase {
 public:
  explicit DistributedDataParallel(M& module, const DistributedDataParallelOptions& options = {})
      : DistributedDataParallelBase(module, options), module_(module) {}

  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    if (!before_forward()) return module_(std::forward<Args>(args)...);
    decltype(auto) result = module_(std::forward<Args>(args)...);
    after_forward(nn::detail::tensors_of(result));
    return result;
  }
  M& module() noexcept { return module_; }

 private:
  M& module_;
};

}  // namespace tutti::parallel
