// SPDX-License-Identifier: Apache-2.0
#include "comm/cpu_group.hpp"

#include <algorithm>
#include <new>
#include <tuple>

#include "comm/ending.hpp"
#include "comm/executor.hpp"
#include "comm/job.hpp"
#include "comm/keep.hpp"
#include "comm/parse_integer.hpp"
#include "comm/queued_operations.hpp"
#include "tensor/layout.hpp"
#include "tensor/raw.hpp"
#include "tensor/storage.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::comm {

namespace {

constexpr int kGreatestTag = 32'000;  // MPI guarantees tags up to 32,767

Work submit(std::shared_ptr<detail::WorkState> state) {
  Executor::submit_or_run(state);
  return Work(std::move(state));
}

void check_tensor(const char* op, const Tensor& tensor) {
  TUTTI_CHECK(tensor.defined(), Error, op, ": the tensor is undefined");
  TUTTI_CHECK(tensor.device().is_cpu(), DeviceError, op,
              ": this group communicates CPU tensors, given one of ", tensor.dtype(), " ", tensor.sizes(),
              " on ", tensor.device());
}

// Found only when the result is copied back, it would be a failure halfway.
void check_written(const char* op, const Tensor& tensor) {
  check_tensor(op, tensor);
  TUTTI_CHECK(tensor.is_contiguous() || !tutti::detail::may_overlap_itself(tensor.sizes(), tensor.strides()),
              ShapeError, op, ": elements of the tensor to be written share memory (shape ", tensor.sizes(),
              ", strides ", tensor.strides(), ", an expanded view?); clone() it first");
}

void check_reduction(const char* op, DType dtype, ReduceOp reduce) {
  TUTTI_CHECK(reduce <= ReduceOp::kProduct, ValueError, op, ": ", static_cast<int>(reduce),
              " is no ReduceOp");
  TUTTI_CHECK(reduce != ReduceOp::kMean || is_floating_point(dtype), DTypeError, op,
              ": the mean wants a floating-point tensor, given ", dtype);
}

// Without a sequence number: that is given when the operation runs, in an order that is the same on all ranks also for those
// that functions of Work::then issue.
Contract contract_of(Operation operation, const Tensor& tensor) {
  Contract contract;
  contract.operation = operation;
  contract.dtype = tensor.dtype();
  contract.count = static_cast<std::uint64_t>(tensor.numel());
  return contract;
}

}  // namespace

CpuGroup::~CpuGroup() {
  if (is_forked_child()) {
    leak(std::move(core_));
    return;
  }
  // Letting go of the core may call MPI, which one thread at a time may do.
  std::shared_ptr<LastState> last;
  try {
    last = std::make_shared<LastState>();
    last->core = std::move(core_);
    Executor::submit_or_run(last);
  } catch (const std::bad_alloc&) {
    leak(std::move(last != nullptr ? last->core : core_));
  }
}

Work CpuGroup::all_reduce(const Tensor& tensor, ReduceOp op) {
  check_written("all_reduce", tensor);
  check_reduction("all_reduce", tensor.dtype(), op);
  Contract contract = contract_of(Operation::kAllReduce, tensor);
  contract.reduce = op;
  raw::bump_version(tensor);
  return submit(std::make_shared<CollectiveState>(core_, contract, tensor, Tensor()));
}

Work CpuGroup::broadcast(const Tensor& tensor, int root) {
  check_written("broadcast", tensor);  // on the root too: what is refused must not depend on the rank
  TUTTI_CHECK(root >= 0 && root < size(), ValueError, "broadcast: root must be a rank from 0 to ", size() - 1,
              ", given ", root);
  Contract contract = contract_of(Operation::kBroadcast, tensor);
  contract.root = root;
  if (root != rank()) raw::bump_version(tensor);
  return submit(std::make_shared<CollectiveState>(core_, contract, tensor, Tensor()));
}

Work CpuGroup::reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op) {
  check_written("reduce_scatter", out);
  check_tensor("reduce_scatter", in);
  check_reduction("reduce_scatter", in.dtype(), op);
  TUTTI_CHECK(out.dtype() == in.dtype(), DTypeError, "reduce_scatter: out is ", out.dtype(), ", in is ",
              in.dtype());
  TUTTI_CHECK(in.numel() == out.numel() * size(), ShapeError, "reduce_scatter: in must have ", size(),
              " times as many elements as out, given in ", in.sizes(), " and out ", out.sizes());
  Contract contract = contract_of(Operation::kReduceScatter, in);
  contract.reduce = op;
  raw::bump_version(out);
  return submit(std::make_shared<CollectiveState>(core_, contract, out, in));
}

Work CpuGroup::all_gather(const Tensor& out, const Tensor& in) {
  check_written("all_gather", out);
  check_tensor("all_gather", in);
  TUTTI_CHECK(out.dtype() == in.dtype(), DTypeError, "all_gather: out is ", out.dtype(), ", in is ",
              in.dtype());
  TUTTI_CHECK(out.numel() == in.numel() * size(), ShapeError, "all_gather: out must have ", size(),
              " times as many elements as in, given in ", in.sizes(), " and out ", out.sizes());
  const Contract contract = contract_of(Operation::kAllGather, in);
  raw::bump_version(out);
  return submit(std::make_shared<CollectiveState>(core_, contract, out, in));
}

void CpuGroup::check_peer(int peer, const char* what) const {
  TUTTI_CHECK(peer >= 0 && peer < size() && peer != rank(), ValueError, what,
              ": wanted another rank from 0 to ", size() - 1, ", given ", peer, " on rank ", rank());
}

Work CpuGroup::point_to_point(Operation operation, const Tensor& tensor, int peer, int tag) {
  const char* what = operation == Operation::kSend ? "send" : "recv";
  if (operation == Operation::kSend) {
    check_tensor(what, tensor);
  } else {
    check_written(what, tensor);
  }
  check_peer(peer, what);
  TUTTI_CHECK(tag >= 0 && tag <= kGreatestTag, ValueError, what, ": the tag must be from 0 to ", kGreatestTag,
              ", given ", tag);
  Message message;
  // Numbered apart from collectives: ranks need not issue the same ones.
  message.contract.operation = operation;
  message.contract.dtype = tensor.dtype();
  message.contract.count = static_cast<std::uint64_t>(tensor.numel());
  message.contract.root = peer;
  message.contract.sequence = core_->transfers.fetch_add(1, std::memory_order_relaxed) + 1;
  message.tag = tag;
  if (operation == Operation::kRecv) raw::bump_version(tensor);
  return submit(std::make_shared<TransferState>(core_, message, tensor));
}

Work CpuGroup::send(const Tensor& tensor, int to, int tag) {
  return point_to_point(Operation::kSend, tensor, to, tag);
}
Work CpuGroup::recv(const Tensor& tensor, int from, int tag) {
  return point_to_point(Operation::kRecv, tensor, from, tag);
}

void CpuGroup::meet(Operation operation) {
  Contract contract;
  contract.operation = operation;
  submit(std::make_shared<CollectiveState>(core_, contract, Tensor(), Tensor())).synchronize();
}

std::vector<std::string> CpuGroup::exchange(const std::string& bytes) {
  // At the call, so that the group stays usable.
  const std::size_t longest = kLongestExchange / static_cast<std::size_t>(size());
  TUTTI_CHECK(bytes.size() <= longest, ValueError, "exchange: wanted at most ", longest, " bytes of each of ",
              size(), " ranks, given ", bytes.size(), " on rank ", rank());
  if (size() == 1) return {bytes};
  Contract contract;
  contract.operation = Operation::kExchange;
  std::vector<std::string> all;
  submit(std::make_shared<FunctionState>([&, core = core_] {
    contract.sequence = ++core->sequence;
    core->run([&] {
      core->transport->barrier(contract);
      all = core->bootstrap->exchange(bytes, Deadline(core->timeout_s), "exchange");
    });
  })).synchronize();
  return all;
}

std::shared_ptr<ProcessGroup> CpuGroup::split(int color, int key, GroupOptions options) {
  TUTTI_CHECK(options.timeout_s >= 0, ValueError, "split: timeout_s must not be negative, given ",
              options.timeout_s);
  const double timeout_s = options.timeout_s > 0 ? options.timeout_s : core_->timeout_s;
  if (size() == 1) {
    if (color < 0) return nullptr;
    if (options.name.empty()) options.name = concat(name(), "/", core_->splits++, ".", color);
    return make_group_of_one(std::move(options.name), timeout_s);
  }
  Contract contract;
  contract.operation = Operation::kSplit;
  std::shared_ptr<ProcessGroup> group;
  submit(std::make_shared<FunctionState>([&, core = core_] {
    contract.sequence = ++core->sequence;
    core->run([&] {
      const Deadline deadline(core->timeout_s);
      core->transport->barrier(contract);
      const auto colors = core->bootstrap->exchange(concat(color, ' ', key), deadline, "split");
      const int split_number = core->splits++;
      if (color < 0) return;
      std::vector<std::tuple<int, int>> members;  // key, rank
      for (int other = 0; other < core->size; ++other) {
        const std::string_view text = colors[static_cast<std::size_t>(other)];
        const std::size_t space = text.find(' ');
        if (parse_integer(text.substr(0, space)) != color) continue;
        members.emplace_back(parse_integer(text.substr(space + 1)), other);
      }
      std::sort(members.begin(), members.end());
      std::vector<int> ranks;
      std::vector<int> world_ranks;
      for (const auto& [unused_key, member] : members) {
        ranks.push_back(member);
        world_ranks.push_back(core->world_ranks[static_cast<std::size_t>(member)]);
      }
      std::string name =
          options.name.empty() ? concat(core->name, "/", split_number, ".", color) : options.name;
      auto bootstrap = core->bootstrap->subset(ranks, concat(split_number, ".", color), deadline);
      group = std::make_shared<CpuGroup>(make_group_core(*Job::current(), std::move(bootstrap),
                                                         std::move(world_ranks), std::move(name), timeout_s));
    });
  })).synchronize();
  return group;
}

Tensor CpuGroup::allocate(const Dims& sizes, DType dtype, Device device) {
  TUTTI_CHECK(device.is_cpu(), DeviceError,
              "allocate: this group communicates CPU tensors, wanted memory on ", device);
  Job* job = Job::current();
  if (size() == 1 || job == nullptr || !job->host->shares_memory()) return empty(sizes, dtype, device);
  const std::size_t bytes =
      tutti::detail::checked_bytes(tutti::detail::checked_numel(sizes, "allocate"), dtype, "allocate");
  // Who holds it last gives the block back, also if no tensor comes of it.
  const std::shared_ptr<void> block(job->heap->allocate(bytes),
                                    [heap = job->heap](void* data) { heap->release(data); });
  return from_blob(block.get(), sizes, dtype, {}, device, [block] {});
}

ProcessGroup::~ProcessGroup() = default;

}  // namespace tutti::comm
