// SPDX-License-Identifier: Apache-2.0
/// \file
/// GradBucket and comm hooks: what is sent when a bucket of gradients is ready.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "tutti/comm/process_group.hpp"
#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::parallel {

/// A run of parameters whose gradients travel together. Lives until the backward that filled it has ended.
class TUTTI_API GradBucket {
 public:
  /// 0 is launched first: it holds the parameters that were declared last.
  std::size_t index() const noexcept { return index_; }
  bool is_last() const noexcept { return is_last_; }
  /// All gradients of the bucket, flat; each parameter's part starts on 64 bytes, what lies between is zero. A hook leaves
  /// the sum over all ranks here; the Reducer divides.
  Tensor buffer() const noexcept { return buffer_; }
  std::span<const Tensor> parameters() const noexcept { return {parameters_.data(), parameters_.size()}; }
  /// Views of buffer(), one for each parameter, of its shape.
  std::span<const Tensor> gradients() const noexcept { return {gradients_.data(), gradients_.size()}; }
  comm::ProcessGroup& group() const noexcept { return *group_; }

 private:
  friend class Reducer;
  std::size_t index_ = 0;
  bool is_last_ = false;
  Tensor buffer_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;
  comm::ProcessGroup* group_ = nullptr;
};

/// Sends a bucket: returns the work after which bucket.buffer() holds the sum over all ranks. It is called in the thread that
/// runs backward, for bucket 0, 1, 2, ... in this order on every rank, with gradients disabled. If it throws, every rank gets an
/// error in this step, provided that it throws before it has issued an operation.
using CommHook = std::function<comm::Work(GradBucket& bucket)>;

}  // namespace tutti::parallel
