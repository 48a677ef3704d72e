// SPDX-License-Identifier: Apache-2.0
// all_reduce of n elements on R ranks, each of which sums one slice of every chunk:
//   in place (ProcessGroup::allocate)   its slice of R tensors, straight into R tensors; 2 meetings
//   by slices                           publishes the other slices in its stage, sums its slice of its own tensor and the
//                                       others' stages, straight into its tensor and those stages, and copies out the
//                                       slices that the others have summed in its stage; 2 meetings a chunk
//   directly (small tensors)            publishes all in its stage, reads R - 1 stages and its tensor; 1 meeting
// By slices, every cache line of a stage goes from its rank to the one that sums it and back, each time together with the
// right to write: half the trips between caches that reading the others' stages in full would cost.
#include <algorithm>
#include <cstring>

#include "comm/keep.hpp"
#include "comm/shm/shm_transport.hpp"
#include "comm/slices.hpp"
#include "kernels/cpu/isa/convert.hpp"

namespace tutti::comm {

namespace {

// Up to so many bytes each rank reads all stages: that saves a meeting.
constexpr std::size_t kDirectBytes = 4 * 1024;

}  // namespace

void ShmTransport::all_reduce(const Contract& contract, void* data) {
  MemoryReference reference;
  const bool shared = bridge_ == nullptr && reference_of(data, contract, reference);
  const bool directly = bridge_ == nullptr && contract.bytes() <= kDirectBytes;
  auto* bytes = static_cast<std::byte*>(data);
  const auto publish_first = [&] {
    if (directly) {
      std::memcpy(stage(rank_, next_meeting()), bytes, contract.bytes());
    } else {
      exchange_chunks(contract, {}, chunk_at(contract, bytes, 0));
    }
  };
  // The first chunk travels with the contract; nobody reads it if ranks disagree.
  if (!shared && contract.count > 0) publish_first();
  const Sharing sharing = agree(contract, shared ? &reference : nullptr);
  if (contract.count == 0) return;
  if (sharing == Sharing::kAll) {
    reduce_in_place(contract, data);
    return;
  }
  if (sharing == Sharing::kSome) {
    publish_first();
    meet(contract);
  }
  if (directly) {
    reduce_directly(contract, bytes);
  } else {
    reduce_by_slices(contract, bytes);
  }
}

void ShmTransport::reduce_in_place(const Contract& contract, void* data) {
  map_all(data);
  const std::size_t element = size_of(contract.dtype);
  const Slice slice = slice_of(static_cast<std::int64_t>(contract.count), rank_, size_, element);
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    outs_[at] = mapped_[at] + static_cast<std::size_t>(slice.begin) * element;
    ins_[at] = outs_[at];
  }
  reduce_loop(contract.dtype, contract.reduce)(outs_.data(), size_, ins_.data(), size_, slice.count, size_);
  meet(contract);
}

void ShmTransport::reduce_directly(const Contract& contract, std::byte* data) {
  for (int rank = 0; rank < size_; ++rank)
    ins_[static_cast<std::size_t>(rank)] = rank == rank_ ? data : stage(rank, meeting_);
  void* out = data;
  reduce_loop(contract.dtype, contract.reduce)(&out, 1, ins_.data(), size_,
                                               static_cast<std::int64_t>(contract.count), size_);
}

void ShmTransport::reduce_by_slices(const Contract& contract, std::byte* data) {
  const auto total = static_cast<std::int64_t>(contract.count);
  const std::int64_t elements = chunk_elements(contract.dtype);
  for (std::int64_t begin = 0; begin < total; begin += elements) {
    const Chunk chunk = chunk_at(contract, data, begin);
    const Chunk next = chunk_at(contract, data, begin + elements);
    reduce_own_slice(contract, chunk);
    meet(contract);
    exchange_chunks(contract, chunk, next);
    if (next.count > 0) meet(contract);
  }
}

// A multiple of all ranks' cache lines, so that no slice of a shorter chunk is longer than one of a full chunk.
std::int64_t ShmTransport::chunk_elements(DType dtype) const noexcept {
  const std::size_t line_of_each = static_cast<std::size_t>(size_) * kCacheLine;
  return static_cast<std::int64_t>(kStageBytes / line_of_each * line_of_each / size_of(dtype));
}

ShmTransport::Chunk ShmTransport::chunk_at(const Contract& contract, std::byte* data,
                                           std::int64_t begin) const noexcept {
  const auto total = static_cast<std::int64_t>(contract.count);
  if (begin >= total) return {};
  return {data + static_cast<std::size_t>(begin) * size_of(contract.dtype),
          std::min(chunk_elements(contract.dtype), total - begin)};
}

// Where a rank's stage has the slice that `summing` sums: in its place of a full chunk.
std::byte* ShmTransport::staged_slice(int rank, int summing, std::uint64_t meeting,
                                      DType dtype) const noexcept {
  const Slice slice = slice_of(chunk_elements(dtype), summing, size_, size_of(dtype));
  return stage(rank, meeting) + static_cast<std::size_t>(slice.begin) * size_of(dtype);
}

// Of the chunk published at the last meeting, into this rank's tensor and the others' stages.
void ShmTransport::reduce_own_slice(const Contract& contract, Chunk chunk) {
  const std::size_t element = size_of(contract.dtype);
  const Slice own = slice_of(chunk.count, rank_, size_, element);
  std::byte* result = chunk.data + static_cast<std::size_t>(own.begin) * element;
  for (int rank = 0; rank < size_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    outs_[at] = rank == rank_ ? result : staged_slice(rank, rank_, meeting_, contract.dtype);
    ins_[at] = outs_[at];
  }
  if (bridge_ == nullptr) {
    reduce_loop(contract.dtype, contract.reduce)(outs_.data(), size_, ins_.data(), size_, own.count, size_);
    return;
  }
  reduce_across_hosts(contract, result, own.count);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_)
      std::memcpy(outs_[static_cast<std::size_t>(rank)], result,
                  static_cast<std::size_t>(own.count) * element);
  }
}

// Copies the slices that the others have summed out of this rank's stage into `done`, and those of `next` that they shall
// sum into it. Either may be empty. What was published at a meeting and summed before the following one lies in the half
// that the meeting after that uses.
void ShmTransport::exchange_chunks(const Contract& contract, Chunk done, Chunk next) {
  const std::size_t element = size_of(contract.dtype);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const Slice out = slice_of(done.count, rank, size_, element);
    const Slice in = slice_of(next.count, rank, size_, element);
    reduce_loops().exchange(staged_slice(rank_, rank, next_meeting(), contract.dtype),
                            done.data + static_cast<std::size_t>(out.begin) * element,
                            static_cast<std::size_t>(out.count) * element,
                            next.data + static_cast<std::size_t>(in.begin) * element,
                            static_cast<std::size_t>(in.count) * element);
  }
}

// The reduction of ins_, on all hosts. Half dtypes travel between hosts as float32 and the mean is taken last, so that both are
// rounded once.
void ShmTransport::reduce_across_hosts(const Contract& contract, void* result, std::int64_t count) {
  const bool half = contract.dtype == DType::kFloat16 || contract.dtype == DType::kBFloat16;
  const DType wide = half ? DType::kFloat32 : contract.dtype;
  const ReduceOp op = contract.reduce == ReduceOp::kMean ? ReduceOp::kSum : contract.reduce;
  void* partial = result;
  if (half) {
    widened_->resize(static_cast<std::size_t>(count));
    partial = widened_->data();
    reduce_loops().widen[contract.dtype == DType::kBFloat16 ? 1 : 0][static_cast<std::size_t>(op)](
        &partial, 1, ins_.data(), size_, count, 1);
  } else {
    reduce_loop(wide, op)(&partial, 1, ins_.data(), size_, count, 1);
  }
  try {
    bridge_->all_reduce(contract, wide, op, partial, count);
  } catch (...) {
    keep_forever(widened_);
    throw;
  }
  if (contract.reduce == ReduceOp::kMean) {
    const void* sum = partial;
    reduce_loop(wide, ReduceOp::kMean)(&partial, 1, &sum, 1, count, bridge_ranks_);
  }
  if (half) {
    cpu::convert_loops().convert[static_cast<std::size_t>(contract.dtype)][static_cast<std::size_t>(wide)](
        result, partial, count);
  }
}

}  // namespace tutti::comm
