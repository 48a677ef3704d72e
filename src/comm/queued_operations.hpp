// SPDX-License-Identifier: Apache-2.0
// What a group's calls put into the queue. Each owns what it needs, since it may outlive the group's handle.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/contract.hpp"
#include "comm/group_core.hpp"
#include "comm/transport.hpp"
#include "comm/work_state.hpp"
#include "tensor/raw.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::comm {

// A tensor as transports want it: contiguous; copied if it is not.
class Dense {
 public:
  explicit Dense(const Tensor& tensor)
      : tensor_(tensor), dense_(tensor.is_contiguous() ? tensor : raw::contiguous(tensor)) {}
  void* data() const { return dense_.impl()->data; }
  // After the tensor was to be written.
  void write_back() const {
    if (!dense_.is_same(tensor_)) raw::copy(tensor_, dense_);
  }

 private:
  Tensor tensor_;
  Tensor dense_;
};

// A collective, or a barrier, which has no tensors.
class CollectiveState final : public detail::WorkState {
 public:
  CollectiveState(std::shared_ptr<GroupCore> core, const Contract& contract, Tensor out, Tensor in)
      : core_(std::move(core)), contract_(contract), out_(std::move(out)), in_(std::move(in)) {}

  void run() override;
  void release() noexcept override;

  // True if the operation writes this rank's `out`.
  bool is_written() const noexcept {
    return out_.defined() && (contract_.operation != Operation::kBroadcast || contract_.root != core_->rank);
  }

 private:
  struct Buffers {
    Buffers(const Tensor& out_tensor, const Tensor& in_tensor) : out(out_tensor) {
      if (in_tensor.defined()) in.emplace(in_tensor);
    }
    Dense out;
    std::optional<Dense> in;
  };

  void keep_buffers() noexcept;
  const char* trace_name() const noexcept;
  void move();

  std::shared_ptr<GroupCore> core_;
  Contract contract_;
  Tensor out_;
  Tensor in_;
  std::optional<Buffers> buffers_;  // while the transport may use them
};

// A send or a receive.
class TransferState final : public detail::PointToPointState {
 public:
  TransferState(std::shared_ptr<GroupCore> core, const Message& message, Tensor tensor)
      : core_(std::move(core)), message_(message), tensor_(std::move(tensor)) {}

  bool progress() override;
  std::chrono::nanoseconds poll_interval() const noexcept override {
    return transfer_ == nullptr ? std::chrono::nanoseconds(0) : transfer_->poll_interval();
  }
  std::string text() const override { return to_text(message_.contract, message_.tag, core_->name); }
  void release() noexcept override;

 private:
  bool is_send() const noexcept { return message_.contract.operation == Operation::kSend; }
  void start();

  std::shared_ptr<GroupCore> core_;
  Message message_;
  Tensor tensor_;
  std::shared_ptr<Dense> dense_;  // from its start to its end
  std::unique_ptr<Transfer> transfer_;
};

// Anything else that must happen in the queue's order.
class FunctionState final : public detail::WorkState {
 public:
  explicit FunctionState(std::function<void()> function) : function_(std::move(function)) {}
  void run() override { function_(); }
  void release() noexcept override { function_ = nullptr; }

 private:
  std::function<void()> function_;
};

// The last operation of a group's handle.
class LastState final : public detail::WorkState {
 public:
  void run() override { core = nullptr; }
  std::shared_ptr<GroupCore> core;
};

}  // namespace tutti::comm
