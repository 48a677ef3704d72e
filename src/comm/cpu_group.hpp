// SPDX-License-Identifier: Apache-2.0
// ProcessGroup of CPU tensors: checks, contract and queue. The transport moves the bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group_core.hpp"
#include "tutti/comm/process_group.hpp"

namespace tutti::comm {

class CpuGroup final : public ProcessGroup {
 public:
  explicit CpuGroup(std::shared_ptr<GroupCore> core) : core_(std::move(core)) {}
  ~CpuGroup() override;

  int rank() const noexcept override { return core_->rank; }
  int size() const noexcept override { return core_->size; }
  const std::string& name() const noexcept override { return core_->name; }
  const char* backend() const noexcept override { return backend_; }
  double timeout_s() const noexcept override { return core_->timeout_s; }

  Work all_reduce(const Tensor& tensor, ReduceOp op) override;
  Work broadcast(const Tensor& tensor, int root) override;
  Work reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op) override;
  Work all_gather(const Tensor& out, const Tensor& in) override;
  Work send(const Tensor& tensor, int to, int tag) override;
  Work recv(const Tensor& tensor, int from, int tag) override;
  void barrier() override { meet(Operation::kBarrier); }
  // A barrier that knows whether it is one, or the end of the job.
  void meet(Operation operation);
  std::vector<std::string> exchange(const std::string& bytes) override;
  std::shared_ptr<ProcessGroup> split(int color, int key, GroupOptions options) override;
  Tensor allocate(const Dims& sizes, DType dtype, Device device) override;

 private:
  void check_peer(int peer, const char* what) const;
  Work point_to_point(Operation operation, const Tensor& tensor, int peer, int tag);

  std::shared_ptr<GroupCore> core_;
  const char* backend_ = core_->transport->name();
};

}  // namespace tutti::comm
