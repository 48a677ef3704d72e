// SPDX-License-Identifier: Apache-2.0
// How batch norm sees its images: [N, C, L] as runs (the L elements of a channel are contiguous: NCHW) or as rows (the
// channels of a position are: channels-last, [N, C]). A view that fits neither, or not the layout of x, is copied to
// memory that does.
#pragma once

#include <cstdint>
#include "backend/backend.h"
#include "kernels/cpu/onednn/workspace.hpp"

namespace tutti::cpu {

struct BatchNormShape {
  explicit BatchNormShape(const tutti_view& x);

  std::int64_t count() const { return batch * length; }  // values of a channel

  std::int64_t batch, channels, length;
  bool by_rows = false;
};

// One image operand in the layout of a shape. Strides count elements.
class BatchNormOperand {
 public:
  enum class Use { kRead, kWritten };
  // view.data may be null: no such operand. kRead copies in at once. A copy lies in this thread's workspace for `purpose`.
  BatchNormOperand(const tutti_view& view, const BatchNormShape& shape, Use use, onednn::Purpose purpose);
  BatchNormOperand(const BatchNormOperand&) = delete;
  BatchNormOperand& operator=(const BatchNormOperand&) = delete;
  // Copies back what was written to a copy.
  void finish() const;

  explicit operator bool() const { return data_ != nullptr; }
  char* run(std::int64_t image, std::int64_t channel, std::int64_t position) const {
    return data_ + (image * batch_stride_ + channel * channel_stride_ + position) * size_;
  }
  char* row(std::int64_t index) const { return data_ + index * row_stride_ * size_; }
  std::int64_t row_stride() const { return row_stride_; }

 private:
  // False if the view does not lie in the shape's layout.
  bool take_strides(const tutti_view& view, const BatchNormShape& shape);

  tutti_view view_;
  tutti_view copy_{};
  char* data_;
  std::int64_t size_;
  std::int64_t batch_stride_ = 0, channel_stride_ = 0, row_stride_ = 0;
  bool written_;
};

}  // namespace tutti::cpu
