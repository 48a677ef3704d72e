// SPDX-License-Identifier: Apache-2.0
/// \file
/// ProcessGroup: collectives among ranks.
///
/// Rules of all operations
///   - Every rank of the group issues the same operations in the same order; all groups of a process share one ordered queue. A
///     call checks its tensors, appends to the queue and returns.
///   - Before data moves, ranks compare operation, reduction, dtype, number of elements and root. A difference is a CommError on
///     every rank that names both sides; the group stays usable.
///   - Tensors may have any layout; one that is not contiguous is copied through. One that is to be written must not have
///     elements that share memory, as those of an expanded view do (ShapeError at the call). Until the Work is done nobody else
///     may touch them. Results count as an in-place write (Tensor::version).
///   - Sums run in the same order for every element, whatever the size or arrival order: in that of ranks; in a "hierarchical"
///     group the ranks of each host first, then the hosts' sums. So results are bit-equal on all ranks, and between runs whose
///     ranks are spread over hosts alike. float16 and bfloat16 are reduced in float32 and rounded once.
///   - An operation that fails halfway (a rank is late beyond the timeout, or has died) leaves its group unusable: each further
///     call is a CommError. Its tensors are kept until the process ends, since a late rank may still write into their memory.
///     What from_blob wraps without a `release` that owns it can't be kept: it must outlive the process group's operations,
///     failed ones too.
///   - Autograd does not see these operations.
///
/// Ranks of one host communicate in shared memory, ranks of several hosts over MPI, each host's first among themselves where
/// all hosts have equally many. TUTTI_COMM_BACKEND = shm or mpi, the same on all ranks, chooses otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/work.hpp"
#include "tutti/core/dtype.hpp"
#include "tutti/core/export.hpp"
#include "tutti/tensor/dims.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::comm {

/// How elements of several ranks become one. bool: sum and max mean "any", product and min "all"; no mean.
/// Integers: sums and products wrap; no mean (DTypeError).
enum class ReduceOp : std::uint8_t { kSum, kMean, kMax, kMin, kProduct };

/// "sum", "mean", "max", "min", "product".
TUTTI_API const char* name(ReduceOp op) noexcept;

/// Options of new groups.
struct GroupOptions {
  std::string name = {};  ///< For messages; default: derived from the parent's.
  /// Longest wait of one operation, in seconds; 0: the parent's (the world's: TUTTI_TIMEOUT_S, 600).
  double timeout_s = 0;
};

/// An ordered set of ranks that communicate. Made by world(), split() and new_group().
class TUTTI_API ProcessGroup {
 public:
  virtual ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  virtual int rank() const noexcept = 0;  ///< Of the calling process in this group.
  virtual int size() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;
  /// "self", "shm", "mpi" or "hierarchical".
  virtual const char* backend() const noexcept = 0;
  /// Longest wait of one operation, in seconds.
  virtual double timeout_s() const noexcept = 0;

  /// Replaces the tensor on every rank by the reduction over all ranks. kMean divides the sum by size().
  virtual Work all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::kSum) = 0;
  /// Replaces the tensor on every rank by that of rank `root`.
  virtual Work broadcast(const Tensor& tensor, int root = 0) = 0;
  /// Rank r's `out` becomes the reduction of the r-th part of all `in`. in has size() times as many elements
  /// as out (ShapeError), cut in row-major order.
  virtual Work reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op = ReduceOp::kSum) = 0;
  /// Every rank's `out` becomes all `in`, in the order of ranks. out has size() times as many elements as in
  /// (ShapeError).
  virtual Work all_gather(const Tensor& out, const Tensor& in) = 0;
  /// Sends to rank `to`, which receives with the same tag, dtype and number of elements. Messages of one
  /// sender and tag arrive in order. Sends and receives don't hold up one another, nor the operations issued
  /// after them; a function given to Work::then does, until what it follows is done.
  virtual Work send(const Tensor& tensor, int to, int tag = 0) = 0;
  /// Receives from rank `from`. CommError if the message has another dtype or length: it is dropped, the group stays usable.
  virtual Work recv(const Tensor& tensor, int from, int tag = 0) = 0;
  /// Blocks until every rank has called it and all earlier operations of this group are done.
  virtual void barrier() = 0;
  /// Blocks; returns what each rank gave, in the order of ranks. For small agreements (names, layouts), not for
  /// data: a rank gives at most 32 MiB / size() (ValueError).
  virtual std::vector<std::string> exchange(const std::string& bytes) = 0;

  /// New group of those ranks that give the same color, ordered by key, then rank. Collective: every rank of
  /// this group calls it. A negative color gives no group (null).
  virtual std::shared_ptr<ProcessGroup> split(int color, int key = 0, GroupOptions options = {}) = 0;
  /// An uninitialised contiguous tensor in memory that the ranks of a host share. Collectives of every "shm" group of the
  /// process use it in place, but for very small tensors, and copy other memory through; "hierarchical" and "mpi" groups
  /// treat it as any memory. Not collective.
  virtual Tensor allocate(const Dims& sizes, DType dtype = DType::kFloat32, Device device = {}) = 0;

 protected:
  ProcessGroup() = default;
};

/// All ranks of the job; a group of one without an Environment or a launcher. The same object on each call.
TUTTI_API std::shared_ptr<ProcessGroup> world();
/// New group of the given ranks of the world, in that order. Collective over the whole world: every rank
/// calls it with the same ranks (ValueError, CommError); ranks that are not in it get null.
TUTTI_API std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& ranks, GroupOptions options = {});

}  // namespace tutti::comm
