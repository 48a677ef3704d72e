// SPDX-License-Identifier: Apache-2.0
#include "comm/queued_operations.hpp"

#include <cstdint>
#include <new>

#include "comm/keep.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::comm {

void CollectiveState::run() {
  const trace::Range range(trace_name(), static_cast<std::int64_t>(contract_.bytes()));
  contract_.sequence = ++core_->sequence;
  try {
    core_->run([this] { move(); });
  } catch (const AgreedError&) {
    buffers_.reset();
    throw;
  }
  buffers_.reset();
  // Counted when it was issued too; what was read or packed since then is out of date.
  if (is_written()) raw::bump_version(out_);
}

void CollectiveState::release() noexcept {
  if (buffers_.has_value()) keep_buffers();  // it has failed halfway
  out_ = Tensor();
  in_ = Tensor();
  core_ = nullptr;
}

void CollectiveState::keep_buffers() noexcept {
  try {
    keep_forever(std::make_shared<Buffers>(std::move(*buffers_)));
  } catch (const std::bad_alloc&) {
    leak(std::move(*buffers_));
  }
  buffers_.reset();
}

const char* CollectiveState::trace_name() const noexcept {
  switch (contract_.operation) {
    case Operation::kAllReduce: return "all_reduce";
    case Operation::kBroadcast: return "broadcast";
    case Operation::kReduceScatter: return "reduce_scatter";
    case Operation::kAllGather: return "all_gather";
    default: return "barrier";
  }
}

void CollectiveState::move() {
  Transport& transport = *core_->transport;
  if (contract_.operation == Operation::kBarrier || contract_.operation == Operation::kEnd) {
    transport.barrier(contract_);
    return;
  }
  buffers_.emplace(out_, in_);
  const Dense& out = buffers_->out;
  switch (contract_.operation) {
    case Operation::kAllReduce: transport.all_reduce(contract_, out.data()); break;
    case Operation::kBroadcast: transport.broadcast(contract_, out.data()); break;
    case Operation::kReduceScatter:
      transport.reduce_scatter(contract_, out.data(), buffers_->in->data());
      break;
    default: transport.all_gather(contract_, out.data(), buffers_->in->data()); break;
  }
  if (is_written()) out.write_back();
}

bool TransferState::progress() {
  bool done = false;
  try {
    core_->run([&] {
      if (transfer_ == nullptr) start();
      done = transfer_->progress();
      if (done && !is_send()) {
        dense_->write_back();
        raw::bump_version(tensor_);
      }
    });
  } catch (const RefusedMessage&) {
    dense_ = nullptr;  // nothing will be written into it
    throw;
  }
  if (done) dense_ = nullptr;
  return done;
}

void TransferState::release() noexcept {
  transfer_ = nullptr;
  if (dense_ != nullptr) keep_forever(std::move(dense_));  // it has failed halfway
  tensor_ = Tensor();
  core_ = nullptr;
}

void TransferState::start() {
  dense_ = std::make_shared<Dense>(tensor_);
  message_.data = dense_->data();
  transfer_ = is_send() ? core_->transport->send(message_) : core_->transport->receive(message_);
}

}  // namespace tutti::comm
