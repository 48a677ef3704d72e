// SPDX-License-Identifier: Apache-2.0
// Positions (and values) of the greatest or smallest elements along one dim: the first of equal ones, or the
// first NaN.
#include <algorithm>

#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/reduce_loops.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/numbers.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

constexpr std::int64_t kTileColumns = 256;
constexpr std::int64_t kTaskElements = 32768;

union State {
  double number;
  std::int64_t integer;
};

class ArgReduction {
 public:
  explicit ArgReduction(const tutti_arg_reduce& call)
      : call_(call),
        floating_(is_floating(call.in.dtype)),
        n_(call.in.sizes[call.dim]),
        stride_(call.in.strides[call.dim]),
        has_values_(call.values.data != nullptr) {
    tutti_view in = call.in;
    in.sizes[call.dim] = 1;
    tutti_view values = has_values_ ? call.values : call.indices;
    const tutti_view* const views[] = {&in, &call.indices, &values};
    loop_ = coalesce<3>(views);
    in_size_ = element_size(call.in.dtype);
    by_columns_ = loop_.inner() > 1 && loop_.inner_stride(0) == in_size_ && stride_ != 1;
  }

  void run() const {
    const std::int64_t results = numel(call_.indices);
    const std::int64_t grain = std::max<std::int64_t>(by_columns_ ? kTileColumns : 1, kTaskElements / n_);
    parallel_for(0, results, grain, [&](std::int64_t begin, std::int64_t end) {
      for_each_piece(loop_, begin, end, [&](char* const* data, std::int64_t count) {
        if (by_columns_) {
          columns(data, count);
        } else {
          for (std::int64_t i = 0; i < count; ++i) row(data, i);
        }
      });
    });
  }

 private:
  void row(char* const* data, std::int64_t i) const {
    const void* in = data[0] + i * loop_.inner_stride(0);
    State state;
    if (floating_) {
      read_numbers(call_.in.dtype, in, 1, 1, &state.number);
    } else {
      read_numbers(call_.in.dtype, in, 1, 1, &state.integer);
    }
    const int op = call_.smallest != 0 ? kLoopAmin : kLoopAmax;
    reduce_loops().rows[op][call_.in.dtype](in, 1, 0, n_, stride_, &state);
    const std::int64_t position = arg_reduce_loops().find[call_.in.dtype](in, n_, stride_, &state);
    write(data, i, 1, &state, &position);
  }

  void columns(char* const* data, std::int64_t count) const {
    State states[kTileColumns];
    std::int64_t positions[kTileColumns];
    for (std::int64_t first = 0; first < count; first += kTileColumns) {
      const std::int64_t tile = std::min(kTileColumns, count - first);
      const char* in = data[0] + first * in_size_;
      if (floating_) {
        read_numbers(call_.in.dtype, in, 1, tile, &states->number);
      } else {
        read_numbers(call_.in.dtype, in, 1, tile, &states->integer);
      }
      std::fill_n(positions, tile, 0);
      arg_reduce_loops().columns[call_.smallest != 0 ? 1 : 0][call_.in.dtype](
          in + stride_ * in_size_, n_ - 1, stride_, tile, 1, 1, states, positions);
      write(data, first, tile, states, positions);
    }
  }

  void write(char* const* data, std::int64_t first, std::int64_t count, const State* states,
             const std::int64_t* positions) const {
    for (std::int64_t i = 0; i < count; ++i) {
      *reinterpret_cast<std::int64_t*>(data[1] + (first + i) * loop_.inner_stride(1)) = positions[i];
    }
    if (!has_values_) return;
    char* values = data[2] + first * loop_.inner_stride(2);
    const std::int64_t stride = loop_.inner_stride(2) / element_size(call_.values.dtype);
    if (floating_) {
      write_numbers(call_.values.dtype, values, stride, count, &states->number);
    } else {
      write_numbers(call_.values.dtype, values, stride, count, &states->integer);
    }
  }

  const tutti_arg_reduce& call_;
  bool floating_;
  std::int64_t n_, stride_;
  bool has_values_;
  StridedLoop<3> loop_;
  std::int64_t in_size_ = 0;
  bool by_columns_ = false;
};

}  // namespace

tutti_status arg_reduce(const tutti_arg_reduce* call) noexcept {
  const char* name = call->smallest != 0 ? "argmin" : "argmax";
  if (call->indices.dtype != TUTTI_I64) {
    return fail(TUTTI_UNSUPPORTED, name, ": wanted int64 indices, given ", dtype_text(call->indices.dtype));
  }
  if (call->values.data != nullptr && call->values.dtype != call->in.dtype) {
    return fail(TUTTI_UNSUPPORTED, name, ": wanted values of dtype ", dtype_text(call->in.dtype), ", given ",
                dtype_text(call->values.dtype));
  }
  if (call->in.ndim == 0) {
    *data_of<std::int64_t>(call->indices) = 0;
    if (call->values.data != nullptr) {
      std::copy_n(data_of<const char>(call->in), element_size(call->in.dtype), data_of<char>(call->values));
    }
    return TUTTI_OK;
  }
  if (numel(call->indices) == 0) return TUTTI_OK;
  if (call->in.sizes[call->dim] == 0) {
    return fail(TUTTI_INVALID, name, ": wanted at least one element along dim ", call->dim, ", given ",
                describe(call->in));
  }
  return guarded([&] { ArgReduction(*call).run(); });
}

}  // namespace tutti::cpu
