// SPDX-License-Identifier: Apache-2.0
#include "tutti/parallel/distributed_data_parallel.hpp"

#include "parallel/reducer.hpp"
#include "parallel/replicas.hpp"
#include "tutti/core/error.hpp"

namespace tutti::parallel {

NoSyncGuard::NoSyncGuard(Reducer& reducer, bool on)
    : reducer_(on ? &reducer : nullptr), previous_(on ? reducer.set_sync(false) : true) {}
NoSyncGuard::~NoSyncGuard() {
  if (reducer_ != nullptr) reducer_->set_sync(previous_);
}

namespace {

std::vector<nn::NamedTensor> trainable(nn::ModuleBase& module) {
  std::vector<nn::NamedTensor> parameters;
  for (nn::NamedTensor& entry : module.named_parameters()) {
    if (entry.tensor.requires_grad()) parameters.push_back(std::move(entry));
  }
  TUTTI_CHECK(
      !parameters.empty(), ModuleError,
      "DistributedDataParallel: the module has no parameter that requires grad: there is nothing to average");
  return parameters;
}

}  // namespace

DistributedDataParallelBase::DistributedDataParallelBase(nn::ModuleBase& module,
                                                         const DistributedDataParallelOptions& options)
    : module_(&module),
      group_(options.process_group ? options.process_group : comm::world()),
      broadcast_buffers_(options.broadcast_buffers) {
  check_replicas(module, *group_);
  broadcast_tensors(module.parameters(), *group_);
  broadcast_tensors(module.buffers(), *group_);
  reducer_ = tutti::detail::Hidden<Reducer>(new Reducer(trainable(module), group_, options));
}
DistributedDataParallelBase::~DistributedDataParallelBase() = default;

void DistributedDataParallelBase::register_comm_hook(CommHook hook) {
  reducer_->set_comm_hook(std::move(hook));
}

std::vector<std::size_t> DistributedDataParallelBase::bucket_bytes() const {
  return reducer_->bucket_bytes();
}

bool DistributedDataParallelBase::before_forward() {
  if (autograd::recomputing()) return false;
  reducer_->settle();
  // As in PyTorch, buffers stay local as gradients do inside no_sync.
  if (!reducer_->sync() || group_->size() == 1 || !module_->is_training() || !autograd::grad_enabled())
    return false;
  if (broadcast_buffers_) broadcast_tensors(module_->buffers(), *group_);
  return true;
}

void DistributedDataParallelBase::after_forward(const std::vector<Tensor>& outputs) {
  reducer_->watch_forward(outputs);
}

}  // namespace tutti::parallel
