// SPDX-License-Identifier: Apache-2.0
// The passes over memory that batch norm consists of, in parallel: moments, normalisation, sums of gradients, gradient.
// Sums are cut into parts by the shape alone and the parts are added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/integers.hpp"
#include "core/parallel_for.hpp"
#include "kernels/cpu/batch_norm_layout.hpp"
#include "kernels/cpu/call_memory.hpp"
#include "kernels/cpu/isa/batch_norm_loops.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

inline constexpr std::int64_t kBatchNormTaskElements = 32768;
inline constexpr std::int64_t kBatchNormLongestSegment = 65536;  // of a run
inline constexpr std::int64_t kBatchNormShortRun = 256;
inline constexpr std::int64_t kBatchNormBlockRows = 64;
inline constexpr std::int64_t kBatchNormFewChannels = 32;

// Of one call, in its CallMemory.
using ChannelNumbers = std::pmr::vector<double>;

// N is the type that the loops compute in: float, or double for f64.
template <class N>
class BatchNormPasses {
 public:
  BatchNormPasses(std::int32_t dtype, const BatchNormShape& shape, const BatchNormOperand& x,
                  CallMemory& memory)
      : memory_(memory),
        shape_(shape),
        x_(x),
        dtype_(dtype),
        size_(element_size(dtype)),
        channels_(shape.channels),
        rows_(shape.count()) {
    if (shape.by_rows && channels_ < kBatchNormFewChannels && x.row_stride() == channels_) {
      // Few channels: `fold` rows make up one, of that many times the channels, so that vectors are full.
      for (fold_ = 2 * kBatchNormFewChannels / channels_; rows_ % fold_ != 0; --fold_) {
      }
    }
    run_segments_ = divide_up(shape.length, kBatchNormLongestSegment);
    const std::int64_t segment = std::min(shape.length, kBatchNormLongestSegment);
    units_of_part_ = std::max<std::int64_t>(1, kBatchNormTaskElements / segment);
    run_parts_ = divide_up(shape.batch * run_segments_, units_of_part_);
  }

  // Another image operand must share the folding.
  void add_operand(const BatchNormOperand& operand) {
    if (shape_.by_rows && operand && operand.row_stride() != channels_) fold_ = 1;
  }

  std::pmr::vector<Moments> moments() const { return shape_.by_rows ? moments_of_rows() : moments_of_runs(); }

  void normalise(const BatchNormOperand& y, const ChannelNumbers& mean, const ChannelNumbers& scale,
                 const ChannelNumbers& shift) const {
    // What float cannot hold of the mean goes into the shift.
    ChannelNumbers whole_shift(shift, &memory_);
    for (std::size_t c = 0; c < mean.size(); ++c) {
      whole_shift[c] -= (mean[c] - static_cast<double>(static_cast<N>(mean[c]))) * scale[c];
    }
    const std::pmr::vector<N> means = folded(mean);
    const std::pmr::vector<N> scales = folded(scale);
    const std::pmr::vector<N> shifts = folded(whole_shift);
    apply(x_, nullptr, y, {means.data(), scales.data(), shifts.data(), nullptr});
  }

  // sums and dots: of dy and of dy * (x - mean).
  void grad_sums(const BatchNormOperand& grad, const ChannelNumbers& mean, ChannelNumbers& sums,
                 ChannelNumbers& dots) const {
    const std::pmr::vector<N> means = folded(mean);
    if (shape_.by_rows) {
      grad_sums_of_rows(grad, means, sums, dots);
    } else {
      grad_sums_of_runs(grad, means, sums, dots);
    }
  }

  void gradient(const BatchNormOperand& grad, const BatchNormOperand& out, const ChannelNumbers& mean,
                const ChannelNumbers& scale, const ChannelNumbers& shift,
                const ChannelNumbers& grad_scale) const {
    const std::pmr::vector<N> means = folded(mean);
    const std::pmr::vector<N> scales = folded(scale);
    const std::pmr::vector<N> shifts = folded(shift);
    const std::pmr::vector<N> grad_scales = folded(grad_scale);
    apply(x_, &grad, out, {means.data(), scales.data(), shifts.data(), grad_scales.data()});
  }

  // out = in * scale, channel by channel.
  void scale(const BatchNormOperand& in, const BatchNormOperand& out, const ChannelNumbers& scale) const {
    const std::pmr::vector<N> scales = folded(scale);
    const std::pmr::vector<N> zeros(scales.size(), N{0}, &memory_);
    apply(in, nullptr, out, {zeros.data(), scales.data(), zeros.data(), nullptr});
  }

 private:
  std::int64_t wide_channels() const { return channels_ * fold_; }
  std::int64_t wide_rows() const { return rows_ / fold_; }

  std::pmr::vector<N> folded(const ChannelNumbers& values) const {
    std::pmr::vector<N> result(static_cast<std::size_t>(wide_channels()), &memory_);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<N>(values[i % values.size()]);
    return result;
  }

  // Rows of a part: a multiple of the loops' own blocks.
  std::int64_t rows_of_part() const {
    return std::max<std::int64_t>(1, kBatchNormTaskElements / (wide_channels() * kBatchNormBlockRows)) *
           kBatchNormBlockRows;
  }
  // Calls body(part, first row, end row) for all parts.
  template <class Body>
  void for_row_parts(const Body& body) const {
    const std::int64_t most = rows_of_part();
    parallel_for(0, divide_up(wide_rows(), most), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        body(part, part * most, std::min((part + 1) * most, wide_rows()));
      }
    });
  }

  BatchNormRows rows(const BatchNormOperand& x, const BatchNormOperand* grad, const BatchNormOperand* out,
                     std::int64_t begin, std::int64_t end) const {
    return {.x = x.row(begin * fold_),
            .grad = grad != nullptr ? grad->row(begin * fold_) : nullptr,
            .out = out != nullptr ? out->row(begin * fold_) : nullptr,
            .rows = end - begin,
            .channels = wide_channels(),
            .x_stride = x.row_stride() * fold_,
            .grad_stride = grad != nullptr ? grad->row_stride() * fold_ : 0,
            .out_stride = out != nullptr ? out->row_stride() * fold_ : 0};
  }

  // Calls body(image, first position, length) for the units of a part of a channel's runs.
  template <class Body>
  void for_units(std::int64_t part, const Body& body) const {
    const std::int64_t end = std::min((part + 1) * units_of_part_, shape_.batch * run_segments_);
    for (std::int64_t unit = part * units_of_part_; unit < end; ++unit) {
      const std::int64_t position = unit % run_segments_ * kBatchNormLongestSegment;
      body(unit / run_segments_, position, std::min(kBatchNormLongestSegment, shape_.length - position));
    }
  }
  // Calls body(data, n) for the runs of a part of a channel, data one pointer an operand. Short runs are copied together,
  // since each call of a loop costs as much as some dozens of elements.
  template <int kOperands, class Body>
  void for_runs(std::int64_t part, std::int64_t channel, const BatchNormOperand* const (&operands)[kOperands],
                const Body& body) const {
    const char* data[kOperands];
    if (shape_.length > kBatchNormShortRun) {
      for_units(part, [&](std::int64_t image, std::int64_t position, std::int64_t length) {
        for (int i = 0; i < kOperands; ++i) data[i] = operands[i]->run(image, channel, position);
        body(data, length);
      });
      return;
    }
    constexpr std::int64_t kRoom = 2048;
    alignas(64) char stage[kOperands][kRoom * sizeof(N)];
    for (int i = 0; i < kOperands; ++i) data[i] = stage[i];
    std::int64_t filled = 0;
    for_units(part, [&](std::int64_t image, std::int64_t position, std::int64_t length) {
      if (filled + length > kRoom) {
        body(data, filled);
        filled = 0;
      }
      const std::size_t bytes = static_cast<std::size_t>(length * size_);
      for (int i = 0; i < kOperands; ++i) {
        std::memcpy(stage[i] + filled * size_, operands[i]->run(image, channel, position), bytes);
      }
      filled += length;
    });
    body(data, filled);
  }

  // Parts of all channels as tasks of about kBatchNormTaskElements elements.
  std::int64_t part_grain() const {
    const std::int64_t elements = units_of_part_ * std::min(shape_.length, kBatchNormLongestSegment);
    const std::int64_t whole = shape_.batch * shape_.length;
    return std::max<std::int64_t>(1, kBatchNormTaskElements / std::min(elements, whole));
  }

  std::pmr::vector<Moments> moments_of_runs() const {
    std::pmr::vector<Moments> partial(static_cast<std::size_t>(channels_ * run_parts_), &memory_);
    parallel_for(0, channels_ * run_parts_, part_grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        Moments& moments = partial[static_cast<std::size_t>(i)];
        for_runs(i % run_parts_, i / run_parts_, {&x_}, [&](const char* const* data, std::int64_t n) {
          moments.merge(batch_norm_loops().run_moments[dtype_](data[0], n));
        });
      }
    });
    if (run_parts_ == 1) return partial;
    std::pmr::vector<Moments> result(static_cast<std::size_t>(channels_), &memory_);
    for (std::size_t i = 0; i < partial.size(); ++i)
      result[i / static_cast<std::size_t>(run_parts_)].merge(partial[i]);
    return result;
  }

  std::pmr::vector<Moments> moments_of_rows() const {
    const std::int64_t wide = wide_channels();
    const std::int64_t parts = divide_up(wide_rows(), rows_of_part());
    ChannelNumbers partial(static_cast<std::size_t>(2 * parts * wide), &memory_);
    for_row_parts([&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      double* means = partial.data() + part * 2 * wide;
      batch_norm_loops().row_moments[dtype_](rows(x_, nullptr, nullptr, begin, end), means, means + wide);
    });
    std::pmr::vector<Moments> result(static_cast<std::size_t>(channels_), &memory_);
    for (std::int64_t part = 0; part < parts; ++part) {
      const double* means = partial.data() + part * 2 * wide;
      const std::int64_t count = std::min(rows_of_part(), wide_rows() - part * rows_of_part());
      for (std::int64_t c = 0; c < wide; ++c) {
        result[static_cast<std::size_t>(c % channels_)].merge(
            {static_cast<double>(count), means[c], means[wide + c]});
      }
    }
    return result;
  }

  void grad_sums_of_runs(const BatchNormOperand& grad, const std::pmr::vector<N>& means, ChannelNumbers& sums,
                         ChannelNumbers& dots) const {
    ChannelNumbers partial(static_cast<std::size_t>(2 * channels_ * run_parts_), &memory_);
    parallel_for(0, channels_ * run_parts_, part_grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t channel = i / run_parts_;
        double* sum = partial.data() + 2 * i;
        for_runs(i % run_parts_, channel, {&x_, &grad}, [&](const char* const* data, std::int64_t n) {
          batch_norm_loops().run_grad_sums[dtype_](data[0], data[1], n, means.data() + channel, sum, sum + 1);
        });
      }
    });
    for (std::size_t i = 0; i < partial.size() / 2; ++i) {
      sums[i / static_cast<std::size_t>(run_parts_)] += partial[2 * i];
      dots[i / static_cast<std::size_t>(run_parts_)] += partial[2 * i + 1];
    }
  }

  void grad_sums_of_rows(const BatchNormOperand& grad, const std::pmr::vector<N>& means, ChannelNumbers& sums,
                         ChannelNumbers& dots) const {
    const std::int64_t wide = wide_channels();
    const std::int64_t parts = divide_up(wide_rows(), rows_of_part());
    ChannelNumbers partial(static_cast<std::size_t>(2 * parts * wide), &memory_);
    for_row_parts([&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      double* sum = partial.data() + part * 2 * wide;
      batch_norm_loops().row_grad_sums[dtype_](rows(x_, &grad, nullptr, begin, end), means.data(), sum,
                                               sum + wide);
    });
    for (std::int64_t part = 0; part < parts; ++part) {
      const double* sum = partial.data() + part * 2 * wide;
      for (std::int64_t c = 0; c < wide; ++c) {
        sums[static_cast<std::size_t>(c % channels_)] += sum[c];
        dots[static_cast<std::size_t>(c % channels_)] += sum[wide + c];
      }
    }
  }

  // y from in, or dx from in and grad.
  void apply(const BatchNormOperand& in, const BatchNormOperand* grad, const BatchNormOperand& out,
             const ChannelAffine& affine) const {
    if (shape_.by_rows) {
      for_row_parts([&](std::int64_t, std::int64_t begin, std::int64_t end) {
        const BatchNormRows call = rows(in, grad, &out, begin, end);
        if (grad != nullptr) {
          batch_norm_loops().row_grad[dtype_](call, affine);
        } else {
          batch_norm_loops().row_normalise[dtype_](call, affine);
        }
      });
      return;
    }
    const std::int64_t grain = std::max<std::int64_t>(1, kBatchNormTaskElements / shape_.length);
    parallel_for(0, shape_.batch * channels_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        apply_to_run(in, grad, out, affine, i / channels_, i % channels_);
    });
  }

  void apply_to_run(const BatchNormOperand& in, const BatchNormOperand* grad, const BatchNormOperand& out,
                    const ChannelAffine& affine, std::int64_t image, std::int64_t channel) const {
    const auto at = [&](const void* values) -> const void* {
      return values != nullptr ? static_cast<const N*>(values) + channel : nullptr;
    };
    const ChannelAffine own{at(affine.mean), at(affine.scale), at(affine.shift), at(affine.grad_scale)};
    if (grad != nullptr) {
      batch_norm_loops().run_grad[dtype_](in.run(image, channel, 0), grad->run(image, channel, 0),
                                          out.run(image, channel, 0), shape_.length, own);
    } else {
      batch_norm_loops().run_normalise[dtype_](in.run(image, channel, 0), out.run(image, channel, 0),
                                               shape_.length, own);
    }
  }

  CallMemory& memory_;
  const BatchNormShape& shape_;
  const BatchNormOperand& x_;
  std::int32_t dtype_;
  std::int64_t size_;
  std::int64_t channels_, rows_;
  std::int64_t fold_ = 1;
  std::int64_t run_segments_, units_of_part_, run_parts_;
};

}  // namespace tutti::cpu
