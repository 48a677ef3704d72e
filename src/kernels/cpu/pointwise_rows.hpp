// SPDX-License-Identifier: Apache-2.0
// How operands with strides or of half precision are brought to the inner loops of pointwise kernels: by rows, or by tiles
// if an input runs through memory across the rows of the result.
#pragma once

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/isa/pointwise.hpp"

namespace tutti::cpu {

// The call with scalar and dtypes resolved.
struct PointwiseOperands {
  int inputs;
  std::int32_t dtype;  // of the values
  std::int32_t out_dtype;
  std::int32_t in_dtypes[3];
  const double* params;
  const PointwiseLoops* loops;
};

// Rows of one call: how each operand's row is brought to the inner loop.
template <int N>  // out and N - 1 inputs
class PointwiseRows {
 public:
  PointwiseRows(const PointwiseOperands& operands, const StridedLoop<N>& loop)
      : operands_(operands), convert_(convert_loops()) {
    int singles = 0;
    int indirect = 0;
    for (int i = 0; i < N; ++i) {
      const std::int32_t dtype = i == 0 ? operands.out_dtype : operands.in_dtypes[i - 1];
      stride_[i] = loop.inner_stride(i);
      direct_[i] = compute_dtype(dtype) == dtype && stride_[i] == element_size(dtype);
      if (direct_[i]) continue;
      ++indirect;
      if (i > 0 && stride_[i] == 0 && compute_dtype(dtype) == dtype &&
          operands.loops->first_scalar != nullptr) {
        ++singles;
        single_ = i;
      }
    }
    whole_loop_ = indirect == 0 ? operands.loops->contiguous : nullptr;
    if (indirect == 1 && singles == 1) {
      whole_loop_ = single_ == 1 ? operands.loops->first_scalar : operands.loops->second_scalar;
    }
  }

  void run(char* const* data, std::int64_t count) const {
    if (whole_loop_ != nullptr) {
      const void* in[3] = {data[1], data[N > 2 ? 2 : 1], data[N > 3 ? 3 : 1]};
      whole_loop_(data[0], in, count, operands_.params);
      return;
    }
    run_blocks(data, count);
  }

 private:
  void run_blocks(char* const* data, std::int64_t count) const {
    Block blocks[N];
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      const std::int64_t n = count - begin < kBlock ? count - begin : kBlock;
      const void* in[3] = {};
      for (int i = 1; i < N; ++i) {
        char* source = data[i] + begin * stride_[i];
        in[i - 1] = direct_[i] ? static_cast<const void*>(source) : blocks[i].bytes;
        if (direct_[i] || (stride_[i] == 0 && begin > 0)) continue;
        load_block(convert_, blocks[i].bytes, operands_.in_dtypes[i - 1], source, stride_[i], n);
      }
      char* target = data[0] + begin * stride_[0];
      operands_.loops->contiguous(direct_[0] ? static_cast<void*>(target) : blocks[0].bytes, in, n,
                                  operands_.params);
      if (!direct_[0]) store_block(convert_, target, stride_[0], operands_.out_dtype, blocks[0].bytes, n);
    }
  }

  const PointwiseOperands& operands_;
  const ConvertLoops& convert_;
  std::int64_t stride_[N];  // bytes, of the innermost dim
  bool direct_[N];          // contiguous, of the compute type
  int single_ = 0;
  PointwiseLoop whole_loop_;
};

// Tiles of rows and columns for a loop in which an input's contiguous dim is not the innermost one (a transpose).
template <int N>
class PointwiseTiles {
 public:
  static constexpr std::int64_t kHeight = 16;
  static constexpr std::int64_t kWidth = kBlock / kHeight;

  // The dim that some input runs through contiguously while it strides along the innermost one; -1: none.
  static int find_dim(const PointwiseOperands& operands, const StridedLoop<N>& loop) {
    const int last = loop.ndim - 1;
    for (int i = 1; i < N; ++i) {
      const std::int64_t size = element_size(operands.in_dtypes[i - 1]);
      if (loop.strides[i][last] == size || loop.strides[i][last] == 0) continue;
      for (int d = 0; d < last; ++d) {
        if (loop.strides[i][d] == size && loop.sizes[d] > 1) return d;
      }
    }
    return -1;
  }

  PointwiseTiles(const PointwiseOperands& operands, const StridedLoop<N>& loop, int dim)
      : operands_(operands),
        convert_(convert_loops()),
        outer_(loop),
        rows_(loop.sizes[dim]),
        columns_(loop.inner()) {
    for (int i = 0; i < N; ++i) {
      dtypes_[i] = i == 0 ? operands.out_dtype : operands.in_dtypes[i - 1];
      row_stride_[i] = loop.strides[i][dim];
      column_stride_[i] = loop.inner_stride(i);
    }
    // The outer dims are left, with an innermost one of size 1 so that a row iterator walks them all.
    const int last = loop.ndim - 1;
    for (int d = dim; d + 1 < last; ++d) {
      outer_.sizes[d] = outer_.sizes[d + 1];
      for (auto& strides : outer_.strides) strides[d] = strides[d + 1];
    }
    outer_.ndim = last;
    outer_.sizes[last - 1] = 1;
    strips_ = (rows_ + kHeight - 1) / kHeight;
  }

  std::int64_t strips() const { return strips_ * outer_.rows(); }
  std::int64_t strip_elements() const { return kHeight * columns_; }

  void run(std::int64_t strip) const {
    const RowIterator<N> outer(outer_, strip / strips_);
    const std::int64_t row = strip % strips_ * kHeight;
    const std::int64_t height = rows_ - row < kHeight ? rows_ - row : kHeight;
    for (std::int64_t column = 0; column < columns_; column += kWidth) {
      const std::int64_t width = columns_ - column < kWidth ? columns_ - column : kWidth;
      char* data[N];
      for (int i = 0; i < N; ++i)
        data[i] = outer.data()[i] + row * row_stride_[i] + column * column_stride_[i];
      run_tile(data, height, width);
    }
  }

 private:
  void run_tile(char* const* data, std::int64_t height, std::int64_t width) const {
    Block blocks[N];
    const void* in[3] = {};
    for (int i = 1; i < N; ++i) {
      load_tile(i, data[i], height, width, blocks[i]);
      in[i - 1] = blocks[i].bytes;
    }
    operands_.loops->contiguous(blocks[0].bytes, in, height * width, operands_.params);
    const std::int64_t line = width * element_size(compute_dtype(dtypes_[0]));
    for (std::int64_t r = 0; r < height; ++r) {
      store_block(convert_, data[0] + r * row_stride_[0], column_stride_[0], dtypes_[0],
                  blocks[0].bytes + r * line, width);
    }
  }

  void load_tile(int i, const char* data, std::int64_t height, std::int64_t width, Block& block) const {
    const std::int64_t size = element_size(dtypes_[i]);
    const std::int32_t compute = compute_dtype(dtypes_[i]);
    const std::int64_t line = width * element_size(compute);
    if (row_stride_[i] != size || column_stride_[i] == 0) {
      for (std::int64_t r = 0; r < height; ++r) {
        load_block(convert_, block.bytes + r * line, dtypes_[i], data + r * row_stride_[i], column_stride_[i],
                   width);
      }
      return;
    }
    Block halves;
    Block& target = compute == dtypes_[i] ? block : halves;
    convert_.transpose[size_index(size)](target.bytes, width * size, data, column_stride_[i], height, width);
    if (compute != dtypes_[i])
      convert_.convert[compute][dtypes_[i]](block.bytes, halves.bytes, height * width);
  }

  const PointwiseOperands& operands_;
  const ConvertLoops& convert_;
  StridedLoop<N> outer_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t strips_;
  std::int32_t dtypes_[N];
  std::int64_t row_stride_[N];  // bytes
  std::int64_t column_stride_[N];
};

}  // namespace tutti::cpu
