// SPDX-License-Identifier: Apache-2.0
#include "comm/contract.hpp"

#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

const char* name_of(Operation operation) {
  constexpr const char* kNames[] = {
      "all_reduce", "broadcast", "reduce_scatter", "all_gather", "barrier",
      "exchange",   "split",     "send",           "recv",       "end of the Environment"};
  return kNames[static_cast<std::size_t>(operation)];
}

}  // namespace

const char* name(ReduceOp op) noexcept {
  constexpr const char* kNames[] = {"sum", "mean", "max", "min", "product"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string to_text(const Contract& contract) {
  std::string text = concat(name_of(contract.operation), " #", contract.sequence);
  switch (contract.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter: text += concat(" (", name(contract.reduce), ")"); break;
    case Operation::kBroadcast: text += concat(" from rank ", contract.root); break;
    case Operation::kSend: text += concat(" to rank ", contract.root); break;
    case Operation::kRecv: text += concat(" from rank ", contract.root); break;
    case Operation::kBarrier:
    case Operation::kExchange:
    case Operation::kSplit:
    case Operation::kEnd: return text;
    case Operation::kAllGather: break;
  }
  return text + concat(" of ", contract.count, " x ", contract.dtype);
}

std::string to_text(const Contract& contract, int tag, const std::string& group) {
  return concat(to_text(contract), " with tag ", tag, " in group '", group, "'");
}

void check_agreement(const std::string& group, std::span<const Contract> by_rank) {
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].agrees_with(by_rank[0])) [[likely]]
      continue;
    tutti::detail::fail<AgreedError>("ranks of group '", group, "' issue different operations: rank 0 ",
                                     to_text(by_rank[0]), ", rank ", rank, " ", to_text(by_rank[rank]));
  }
}

std::string rank_list(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += concat(ranks[i]);
  }
  return text;
}

}  // namespace tutti::comm
