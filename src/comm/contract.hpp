// SPDX-License-Identifier: Apache-2.0
// What a rank believes an operation to be. Ranks compare contracts before data moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tutti/comm/process_group.hpp"
#include "tutti/core/dtype.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

enum class Operation : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kReduceScatter,
  kAllGather,
  kBarrier,
  kExchange,
  kSplit,
  kSend,
  kRecv,
  kEnd
};

struct Contract {
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceOp reduce = ReduceOp::kSum;
  // Its tensor lies in memory that peers can map. May differ between ranks.
  std::uint8_t in_shared_memory = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;     // elements of this rank's input
  std::uint64_t sequence = 0;  // of the operation in its group, from 1
  std::uint64_t padding = 0;

  std::size_t bytes() const noexcept { return count * size_of(dtype); }
  bool agrees_with(const Contract& other) const noexcept {
    return operation == other.operation && dtype == other.dtype && reduce == other.reduce &&
           root == other.root && count == other.count && sequence == other.sequence;
  }
};
static_assert(sizeof(Contract) == 32, "travels between processes");

// A failure that every rank of the group throws at the same operation, before data moves: the group stays usable.
class AgreedError : public CommError {
 public:
  using CommError::CommError;
};

// A message that does not fit its receive, which concerns no other operation: it is dropped, and the group stays usable.
class RefusedMessage final : public CommError {
 public:
  using CommError::CommError;
};

// "all_reduce #3 (sum) of 100 x float32".
std::string to_text(const Contract& contract);
// "recv #1 from rank 0 of 20 x float32 with tag 3 in group 'world'".
std::string to_text(const Contract& contract, int tag, const std::string& group);
// Throws AgreedError naming both sides if a rank's contract differs from rank 0's.
void check_agreement(const std::string& group, std::span<const Contract> by_rank);
// "rank 1" or "ranks 1, 4 and 5".
std::string rank_list(std::span<const int> ranks);

}  // namespace tutti::comm
