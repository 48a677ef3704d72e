// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/batch_norm_layout.hpp"

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {
namespace {

struct Strides {
  std::int64_t batch = 0, channel = 0, position = 1;
  bool even = true;  // the dims after the second one merge into one
};

// [N, C] has its N as positions of one image, so that either order of memory has a fast layout.
Strides strides_of(const tutti_view& view, std::int64_t length) {
  Strides result;
  result.batch = view.strides[0];
  result.channel = view.strides[1];
  std::int64_t merged = 0;
  for (int d = view.ndim - 1; d >= 2; --d) {
    if (view.sizes[d] == 1) continue;
    if (merged == 0) {
      result.position = view.strides[d];
      merged = view.sizes[d];
    } else {
      result.even = result.even && view.strides[d] == result.position * merged;
      merged *= view.sizes[d];
    }
  }
  if (merged == 0 && length > 1) {  // [N, C, 1, ...]
    result.position = result.batch;
    result.batch = 0;
  }
  return result;
}

bool has_runs(const Strides& strides, const BatchNormShape& shape) {
  return strides.even && (strides.position == 1 || shape.length == 1);
}
bool has_rows(const Strides& strides, const BatchNormShape& shape) {
  const bool merges = shape.batch == 1 || strides.batch == strides.position * shape.length;
  return strides.even && merges && (strides.channel == 1 || shape.channels == 1);
}

void throw_unless_ok(tutti_status status) {
  if (status == TUTTI_OK) return;
  char text[512];
  error_text(text, sizeof text);
  throw KernelError(status, text);
}

void copy_view(const tutti_view& out, const tutti_view& in) {
  tutti_copy call{};
  call.out = out;
  call.in = in;
  throw_unless_ok(copy(&call));
}

}  // namespace

BatchNormShape::BatchNormShape(const tutti_view& x) : batch(x.sizes[0]), channels(x.sizes[1]), length(1) {
  for (int d = 2; d < x.ndim; ++d) length *= x.sizes[d];
  if (length == 1) {
    length = batch;
    batch = 1;
  }
  const Strides strides = strides_of(x, length);
  // Of two layouts that fit, rows: short runs are slow.
  by_rows = has_rows(strides, *this) && (length == 1 || channels > 1 || !has_runs(strides, *this));
}

BatchNormOperand::BatchNormOperand(const tutti_view& view, const BatchNormShape& shape, Use use,
                                   onednn::Purpose purpose)
    : view_(view),
      data_(static_cast<char*>(view.data)),
      size_(element_size(view.dtype)),
      written_(use == Use::kWritten) {
  if (data_ == nullptr || take_strides(view, shape)) return;
  copy_ = view;
  std::int64_t stride = shape.by_rows ? shape.channels : 1;
  for (int d = view.ndim - 1; d >= 0; --d) {
    if (d == 1) {
      copy_.strides[1] = shape.by_rows ? 1 : stride;
      if (!shape.by_rows) stride *= view.sizes[1];
    } else {
      copy_.strides[d] = stride;
      stride *= view.sizes[d];
    }
  }
  if (!shape.by_rows && shape.batch == 1 && view.sizes[0] == shape.length) {  // [N, C]: the positions are N
    copy_.strides[0] = 1;
    copy_.strides[1] = shape.length;
  }
  copy_.data = onednn::workspace(purpose, static_cast<std::size_t>(numel(view) * size_));
  if (!written_) copy_view(copy_, view);
  data_ = static_cast<char*>(copy_.data);
  take_strides(copy_, shape);
}

bool BatchNormOperand::take_strides(const tutti_view& view, const BatchNormShape& shape) {
  const Strides strides = strides_of(view, shape.length);
  if (shape.by_rows ? !has_rows(strides, shape) : !has_runs(strides, shape)) return false;
  batch_stride_ = strides.batch;
  channel_stride_ = strides.channel;
  row_stride_ = strides.position;
  return true;
}

void BatchNormOperand::finish() const {
  if (written_ && copy_.data != nullptr) copy_view(view_, copy_);
}

}  // namespace tutti::cpu
