// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one dim. Rows (the dim is contiguous) and columns (another one is) have loops
// of their own; anything else is copied to a contiguous row and back.
#include <algorithm>
#include <cstring>

#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/softmax_loops.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/onednn/workspace.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {
namespace {

constexpr std::int64_t kTaskElements = 16384;
constexpr std::int64_t kStripColumns = 64;

// count elements of `size` bytes from one stride to another.
void copy_spread(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride,
                 std::int64_t count, std::int64_t size) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(out + i * out_stride, in + i * in_stride, static_cast<std::size_t>(size));
  }
}

// Forward and backward: views 0 and 1 are the output and the input, view 2 the gradient (forward: the input
// again).
class Softmax {
 public:
  Softmax(const tutti_softmax& call, bool backward) : backward_(backward), log_(call.log != 0) {
    const tutti_view* const views[] = {&call.out, &call.in, backward ? &call.grad : &call.in};
    dtype_ = call.in.dtype;
    size_ = element_size(dtype_);
    tutti_view rest[3];
    bool rows = true;
    for (int v = 0; v < 3; ++v) {
      rest[v] = *views[v];
      if (call.in.ndim > 0) {
        n_ = call.in.sizes[call.dim];
        strides_[v] = views[v]->strides[call.dim];
        rest[v].sizes[call.dim] = 1;
      }
      rows = rows && (n_ == 1 || strides_[v] == 1);
    }
    const tutti_view* const rests[] = {&rest[0], &rest[1], &rest[2]};
    loop_ = coalesce<3>(rests);
    positions_ = numel(rest[0]);
    by_rows_ = rows;
    by_columns_ = loop_.inner() > 1 && loop_.inner_stride(0) == size_ && loop_.inner_stride(1) == size_ &&
                  loop_.inner_stride(2) == size_;
  }

  void run() const {
    std::int64_t grain = std::max<std::int64_t>(1, kTaskElements / n_);
    if (!by_rows_ && by_columns_) grain = (grain + kStripColumns - 1) / kStripColumns * kStripColumns;
    parallel_for(0, positions_, grain, [&](std::int64_t begin, std::int64_t end) {
      for_each_piece(loop_, begin, end, [&](char* const* data, std::int64_t count) {
        if (by_rows_) {
          rows(data, count);
        } else if (by_columns_) {
          columns(data, count);
        } else {
          spread_rows(data, count);
        }
      });
    });
  }

 private:
  void rows(char* const* data, std::int64_t count) const {
    const SoftmaxFunction function =
        (backward_ ? softmax_loops().backward_row : softmax_loops().forward_row)[dtype_];
    function({.in = data[1],
              .grad = data[2],
              .out = data[0],
              .in_stride = loop_.inner_stride(1) / size_,
              .grad_stride = loop_.inner_stride(2) / size_,
              .out_stride = loop_.inner_stride(0) / size_,
              .rows = count,
              .columns = n_,
              .log = log_});
  }

  void columns(char* const* data, std::int64_t count) const {
    const SoftmaxFunction function =
        (backward_ ? softmax_loops().backward_column : softmax_loops().forward_column)[dtype_];
    function({.in = data[1],
              .grad = data[2],
              .out = data[0],
              .in_stride = strides_[1],
              .grad_stride = strides_[2],
              .out_stride = strides_[0],
              .rows = n_,
              .columns = count,
              .log = log_});
  }

  void spread_rows(char* const* data, std::int64_t count) const {
    const SoftmaxFunction function =
        (backward_ ? softmax_loops().backward_row : softmax_loops().forward_row)[dtype_];
    const std::size_t bytes = static_cast<std::size_t>(n_ * size_);
    char* in = static_cast<char*>(onednn::workspace(onednn::Purpose::kStage, 2 * bytes));
    char* grad = in + bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      copy_spread(in, size_, data[1] + i * loop_.inner_stride(1), strides_[1] * size_, n_, size_);
      if (backward_)
        copy_spread(grad, size_, data[2] + i * loop_.inner_stride(2), strides_[2] * size_, n_, size_);
      function({.in = in,
                .grad = grad,
                .out = in,
                .in_stride = 0,
                .grad_stride = 0,
                .out_stride = 0,
                .rows = 1,
                .columns = n_,
                .log = log_});
      copy_spread(data[0] + i * loop_.inner_stride(0), strides_[0] * size_, in, size_, n_, size_);
    }
  }

  bool backward_, log_;
  std::int32_t dtype_;
  std::int64_t size_;
  std::int64_t n_ = 1;
  std::int64_t strides_[3] = {1, 1, 1};  // along the dim, elements
  StridedLoop<3> loop_;                  // over the other dims
  std::int64_t positions_ = 0;
  bool by_rows_ = false, by_columns_ = false;
};

tutti_status softmax(const tutti_softmax& call, bool backward) noexcept {
  const char* name = call.log != 0 ? "log_softmax" : "softmax";
  const bool same = call.out.dtype == call.in.dtype && (!backward || call.grad.dtype == call.in.dtype);
  if (!is_floating(call.in.dtype) || !same) {
    return fail(TUTTI_UNSUPPORTED, name, backward ? " backward" : "", ": wanted one floating dtype, given ",
                dtype_text(call.in.dtype), backward ? " and a gradient of " : "",
                backward ? dtype_text(call.grad.dtype) : "", " for a result of ", dtype_text(call.out.dtype));
  }
  if (numel(call.in) == 0) return TUTTI_OK;
  return guarded([&] { Softmax(call, backward).run(); });
}

}  // namespace

tutti_status softmax_forward(const tutti_softmax* call) noexcept { return softmax(*call, false); }
tutti_status softmax_backward(const tutti_softmax* call) noexcept { return softmax(*call, true); }

}  // namespace tutti::cpu
