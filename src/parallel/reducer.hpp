// SPDX-License-Identifier: Apache-2.0
// Averages gradients over the ranks while backward runs. reducer.cpp opens with the timeline.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tutti/autograd/hooks.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/nn/module.hpp"
#include "tutti/parallel/distributed_data_parallel.hpp"
#include "tutti/parallel/grad_bucket.hpp"

namespace tutti::parallel {

class Reducer {
 public:
  // `parameters`: those that require grad, in the order that all ranks have agreed on.
  Reducer(std::vector<nn::NamedTensor> parameters, std::shared_ptr<comm::ProcessGroup> group,
          const DistributedDataParallelOptions& options);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  void set_comm_hook(CommHook hook);
  bool set_sync(bool on) noexcept;  // returns what it was
  bool sync() const noexcept { return sync_; }
  // Of a forward that a backward is to follow, on every rank: counts it as skipped if its graph dies without one.
  void watch_forward(const std::vector<Tensor>& outputs);
  // Waits for what a backward that has thrown left under way.
  void settle();
  std::vector<std::size_t> bucket_bytes() const;

 private:
  // A parameter, and its place in a bucket.
  struct Slot {
    std::string name;
    Tensor parameter;
    Tensor view;  // its part of the bucket, in its own shape
    std::size_t bucket = 0;
    bool ready = false;
  };
  struct Bucket {
    GradBucket grads;
    std::vector<std::size_t> slots;
    Tensor whole;             // grads.buffer() and, in the last bucket, the status
    std::size_t pending = 0;  // slots whose gradient is not there yet
    comm::Work work;
  };

  class Watch;

  void build_buckets(const DistributedDataParallelOptions& options);
  void make_bucket(std::size_t index, std::size_t count, const struct BucketLayout& layout);
  void attach_hooks();
  // Whether autograd writes gradients into the buckets' views.
  void write_into_buckets();
  void write_elsewhere() noexcept;

  // The four steps of a backward, in call order.
  void on_grad_ready(std::size_t slot_index);
  void launch_ready_buckets();
  comm::Work run_comm_hook(Bucket& bucket);
  void finalize();

  void start_backward();
  void store_in_bucket(Slot& slot) const;
  void launch_incomplete_buckets();
  std::exception_ptr wait_for_buckets() noexcept;
  void launch_status(bool failed);
  std::exception_ptr agree_on_status(bool failed);
  void hand_back(Bucket& bucket);
  void reset();

  void drop_gradients();
  void drop_step();
  // The backward has thrown before finalize.
  void abandon() noexcept;
  std::string own_failure(const std::exception_ptr& failure) const;
  void count_anew() { skipped_ = std::make_shared<std::atomic<std::uint64_t>>(0); }
  [[noreturn]] void throw_failures(const std::exception_ptr& failure, const struct StepStatus& status);

  std::shared_ptr<comm::ProcessGroup> group_;
  bool as_bucket_view_;
  bool sync_ = true;
  bool in_progress_ = false;     // between a backward's first gradient and finalize
  std::size_t next_bucket_ = 0;  // the one to launch next
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::weak_ptr<Watch> watch_;  // of the backward that runs
  bool abandoned_ = false;      // the last backward has thrown; what it launched may be under way
  bool owes_a_step_ = false;    // it had thrown after its gradients had left: the others have stepped
  // Forwards without a backward, so far or since a step that failed on all ranks; shared with the graphs.
  std::shared_ptr<std::atomic<std::uint64_t>> skipped_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  Tensor status_;           // see step_status.hpp; travels with the last bucket
  comm::Work status_work_;  // with a comm hook it travels on its own, after all buckets
  comm::Work report_;       // of an abandoned backward, to the others
  std::exception_ptr hook_failure_;
  CommHook comm_hook_;
  std::vector<autograd::HookHandle> handles_;
};

}  // namespace tutti::parallel
