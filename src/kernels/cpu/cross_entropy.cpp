// SPDX-License-Identifier: Apache-2.0
// Cross entropy of logits [N, C] and class indices [N], PyTorch's formulas with class weights w, label smoothing e and
// target t, all rows that are not ignored; lse = log sum exp x, p = exp(x - lse):
//   loss  = (1 - e) * w[t] * (lse - x[t]) + e / C * sum_c w[c] * (lse - x[c])
//   dx[j] = p[j] * ((1 - e) * w[t] + e / C * sum w) - (1 - e) * w[t] * (j == t) - e / C * w[j]
// The weight of a row in the mean is w[t], smoothing or not.
#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/parallel_for.hpp"
#include "kernels/cpu/call_memory.hpp"
#include "kernels/cpu/isa/softmax_loops.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/numbers.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

constexpr std::int64_t kTaskElements = 16384;

// N is the type that the loops compute in: float, or double for f64 logits.
template <class N>
class CrossEntropy {
 public:
  explicit CrossEntropy(const tutti_cross_entropy& call)
      : call_(call),
        dtype_(call.logits.dtype),
        size_(element_size(dtype_)),
        rows_(call.logits.sizes[0]),
        classes_(call.logits.sizes[1]),
        smoothing_(call.label_smoothing) {
    weight_sum_ = static_cast<double>(classes_);
    if (call.weight.data == nullptr) return;
    if (call.weight.dtype == static_cast<std::int32_t>(dtype_of<N>) && is_contiguous(call.weight)) {
      weights_ = data_of<const N>(call.weight);
    } else {
      converted_.resize(static_cast<std::size_t>(classes_));
      read_numbers(call.weight.dtype, call.weight.data, call.weight.strides[0], classes_, converted_.data());
      weights_ = converted_.data();
    }
    weight_sum_ = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) weight_sum_ += static_cast<double>(weights_[c]);
  }

  void forward() const {
    parallel_for(0, rows_, grain(), [&](std::int64_t begin, std::int64_t end) {
      char* stage = stage_of(stage_bytes(call_.logits));
      for (std::int64_t r = begin; r < end; ++r) forward_row(r, stage);
    });
  }

  void backward() const {
    parallel_for(0, rows_, grain(), [&](std::int64_t begin, std::int64_t end) {
      char* stage = stage_of(std::max(stage_bytes(call_.logits), stage_bytes(call_.grad_logits)));
      for (std::int64_t r = begin; r < end; ++r) backward_row(r, stage);
    });
  }

 private:
  std::int64_t grain() const { return std::max<std::int64_t>(1, kTaskElements / classes_); }

  static char* stage_of(std::size_t bytes) {
    return static_cast<char*>(onednn::workspace(onednn::Purpose::kStage, bytes));
  }
  // Rows whose elements lie apart are copied to a contiguous one.
  std::size_t stage_bytes(const tutti_view& view) const {
    return is_spread(view) ? static_cast<std::size_t>(classes_ * size_) : 0;
  }
  bool is_spread(const tutti_view& view) const { return view.strides[1] != 1 && classes_ > 1; }

  const char* logits_row(std::int64_t r, char* stage) const {
    const tutti_view& logits = call_.logits;
    const char* row = data_of<const char>(logits) + r * logits.strides[0] * size_;
    if (!is_spread(logits)) return row;
    copy_elements(stage, 1, row, logits.strides[1]);
    return stage;
  }
  void copy_elements(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride) const {
    for (std::int64_t c = 0; c < classes_; ++c) {
      std::memcpy(out + c * out_stride * size_, in + c * in_stride * size_, static_cast<std::size_t>(size_));
    }
  }

  std::int64_t target(std::int64_t r) const {
    return data_of<const std::int64_t>(call_.targets)[r * call_.targets.strides[0]];
  }
  double weight(std::int64_t c) const { return weights_ == nullptr ? 1.0 : static_cast<double>(weights_[c]); }
  static N& element(const tutti_view& view, std::int64_t r) { return data_of<N>(view)[r * view.strides[0]]; }

  void forward_row(std::int64_t r, char* stage) const {
    const char* logits = logits_row(r, stage);
    const CrossEntropyRow row =
        cross_entropy_loops().forward[dtype_](logits, weights_, classes_, smoothing_ != 0.0);
    const std::int64_t t = target(r);
    double loss = 0.0;
    double row_weight = 0.0;
    if (t != call_.ignore_index) {
      row_weight = weight(t);
      double at_target = 0.0;
      read_numbers(dtype_, logits + t * size_, 1, 1, &at_target);
      loss = (1.0 - smoothing_) * row_weight * (row.log_sum - (at_target - row.greatest));
      if (smoothing_ != 0.0) {
        loss += smoothing_ / static_cast<double>(classes_) * (weight_sum_ * row.log_sum - row.weighted_sum);
      }
    }
    element(call_.losses, r) = static_cast<N>(loss);
    if (call_.row_weights.data != nullptr) element(call_.row_weights, r) = static_cast<N>(row_weight);
    if (call_.log_sum_exp.data != nullptr)
      element(call_.log_sum_exp, r) = static_cast<N>(row.greatest + row.log_sum);
  }

  void backward_row(std::int64_t r, char* stage) const {
    const tutti_view& grad = call_.grad_logits;
    char* out = data_of<char>(grad) + r * grad.strides[0] * size_;
    char* contiguous = is_spread(grad) ? stage : out;
    const std::int64_t t = target(r);
    if (t == call_.ignore_index) {
      std::memset(contiguous, 0, static_cast<std::size_t>(classes_ * size_));
    } else {
      const double scale = static_cast<double>(element(call_.grad_losses, r));
      const double target_scale = scale * (1.0 - smoothing_) * weight(t);
      const double smoothing_scale = scale * smoothing_ / static_cast<double>(classes_);
      cross_entropy_loops().backward[dtype_](
          logits_row(r, stage), weights_, contiguous, classes_,
          {.log_sum_exp = static_cast<double>(element(call_.log_sum_exp, r)),
           .probability_scale = target_scale + smoothing_scale * weight_sum_,
           .smoothing_scale = smoothing_scale,
           .target_scale = target_scale,
           .target = t});
    }
    if (contiguous != out) copy_elements(out, grad.strides[1], contiguous, 1);
  }

  const tutti_cross_entropy& call_;
  std::int32_t dtype_;
  std::int64_t size_, rows_, classes_;
  double smoothing_;
  double weight_sum_ = 0.0;
  const N* weights_ = nullptr;
  CallMemory memory_;
  std::pmr::vector<N> converted_{&memory_};
};

tutti_status check_dtypes(const tutti_cross_entropy& call, bool backward) {
  const std::int32_t dtype = call.logits.dtype;
  if (!is_floating(dtype)) {
    return fail(TUTTI_UNSUPPORTED, "cross_entropy: wanted floating logits, given ", dtype_text(dtype));
  }
  if (call.targets.dtype != TUTTI_I64) {
    return fail(TUTTI_UNSUPPORTED, "cross_entropy: wanted int64 targets, given ",
                dtype_text(call.targets.dtype));
  }
  if (call.weight.data != nullptr && !is_floating(call.weight.dtype)) {
    return fail(TUTTI_UNSUPPORTED, "cross_entropy: wanted floating class weights, given ",
                dtype_text(call.weight.dtype));
  }
  const std::int32_t number = dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
  const tutti_view* const rows[] = {backward ? &call.grad_losses : &call.losses,
                                    backward ? &call.log_sum_exp : &call.row_weights, &call.log_sum_exp};
  for (const tutti_view* row : rows) {
    if (row->data != nullptr && row->dtype != number) {
      return fail(TUTTI_UNSUPPORTED, "cross_entropy: values of rows of ", dtype_text(dtype), " logits are ",
                  dtype_text(number), ", given ", dtype_text(row->dtype));
    }
  }
  if (backward && call.grad_logits.dtype != dtype) {
    return fail(TUTTI_UNSUPPORTED, "cross_entropy backward: wanted a gradient of ", dtype_text(dtype),
                ", given ", dtype_text(call.grad_logits.dtype));
  }
  return TUTTI_OK;
}

tutti_status check_targets(const tutti_cross_entropy& call) {
  const std::int64_t* targets = data_of<const std::int64_t>(call.targets);
  const std::int64_t classes = call.logits.sizes[1];
  for (std::int64_t r = 0; r < call.logits.sizes[0]; ++r) {
    const std::int64_t target = targets[r * call.targets.strides[0]];
    if ((target < 0 || target >= classes) && target != call.ignore_index) {
      return fail(TUTTI_INVALID, "cross_entropy: target ", target, " of row ", r,
                  " is out of range: there are ", classes, " classes (ignore_index is ", call.ignore_index,
                  ")");
    }
  }
  return TUTTI_OK;
}

template <class Run>
tutti_status run_checked(const tutti_cross_entropy& call, bool backward, const Run& run) noexcept {
  return guarded([&] {
    if (const tutti_status status = check_dtypes(call, backward); status != TUTTI_OK) return status;
    if (const tutti_status status = check_targets(call); status != TUTTI_OK) return status;
    if (call.logits.sizes[0] == 0) return TUTTI_OK;
    if (call.logits.sizes[1] == 0) {
      return fail(TUTTI_INVALID, "cross_entropy: wanted at least one class, given logits ",
                  describe(call.logits));
    }
    if (call.logits.dtype == TUTTI_F64) {
      run(CrossEntropy<double>(call));
    } else {
      run(CrossEntropy<float>(call));
    }
    return TUTTI_OK;
  });
}

}  // namespace

tutti_status cross_entropy_forward(const tutti_cross_entropy* call) noexcept {
  return run_checked(*call, false, [](const auto& cross_entropy) { cross_entropy.forward(); });
}
tutti_status cross_entropy_backward(const tutti_cross_entropy* call) noexcept {
  return run_checked(*call, true, [](const auto& cross_entropy) { cross_entropy.backward(); });
}

}  // namespace tutti::cpu
