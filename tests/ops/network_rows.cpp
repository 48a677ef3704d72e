// SPDX-License-Identifier: Apache-2.0
// References of convolutions, pooling, normalization and losses: plain loops in float64.
#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_row.hpp"
#include "tutti/core/random.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti::testing {

namespace {

using In = std::span<const Tensor>;
using Arrays = std::span<const Array>;
using Shape = std::vector<std::int64_t>;

struct Geometry {
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation = 1, groups = 1;
};

std::int64_t extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                    std::int64_t dilation) {
  return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

// Calls f(output index, input index or -1 for padding, kernel index) for every window position of every plane.
template <class F>
Shape windows(const Shape& x, std::int64_t kh, std::int64_t kw, const Geometry& g, const F& f) {
  const std::int64_t h = extent(x[2], kh, g.stride_h, g.pad_h, g.dilation),
                     w = extent(x[3], kw, g.stride_w, g.pad_w, g.dilation);
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (std::int64_t o = 0; o < h * w; ++o) {
      for (std::int64_t k = 0; k < kh * kw; ++k) {
        const std::int64_t row = o / w * g.stride_h - g.pad_h + k / kw * g.dilation;
        const std::int64_t column = o % w * g.stride_w - g.pad_w + k % kw * g.dilation;
        const bool inside = row >= 0 && row < x[2] && column >= 0 && column < x[3];
        f(plane * h * w + o, inside ? plane * x[2] * x[3] + row * x[3] + column : -1, k);
      }
    }
  }
  return {x[0], x[1], h, w};
}

Array conv_reference(Arrays in, const Geometry& g) {
  const Array& x = in[0];
  const Array& w = in[1];
  const std::int64_t channels = x.sizes[1], outputs = w.sizes[0], per_group = w.sizes[1], kh = w.sizes[2],
                     kw = w.sizes[3];
  const std::int64_t h = extent(x.sizes[2], kh, g.stride_h, g.pad_h, g.dilation),
                     width = extent(x.sizes[3], kw, g.stride_w, g.pad_w, g.dilation);
  Array y = Array::of({x.sizes[0], outputs, h, width});
  for (std::int64_t i = 0; i < y.numel(); ++i)
    y.at(i) = in.size() > 2 ? in[2].at(i / (h * width) % outputs) : 0;
  const std::int64_t out_per_group = outputs / g.groups;
  windows(x.sizes, kh, kw, g, [&](std::int64_t o, std::int64_t from, std::int64_t k) {
    if (from < 0) return;
    const std::int64_t plane = o / (h * width), image = plane / channels, channel = plane % channels;
    const std::int64_t group = channel / per_group;
    for (std::int64_t c = group * out_per_group; c < (group + 1) * out_per_group; ++c) {
      y.at((image * outputs + c) * h * width + o % (h * width)) +=
          x.at(from) * w.at((c * per_group + channel % per_group) * kh * kw + k);
    }
  });
  return y;
}

Array max_pool_reference(const Array& x, std::int64_t kh, std::int64_t kw, const Geometry& g) {
  Array y = Array::of({x.sizes[0], x.sizes[1], extent(x.sizes[2], kh, g.stride_h, g.pad_h, g.dilation),
                       extent(x.sizes[3], kw, g.stride_w, g.pad_w, g.dilation)});
  std::fill(y.values.begin(), y.values.end(), -std::numeric_limits<double>::infinity());
  windows(x.sizes, kh, kw, g, [&](std::int64_t o, std::int64_t from, std::int64_t) {
    if (from >= 0) y.at(o) = std::max(y.at(o), x.at(from));
  });
  return y;
}

Array avg_pool_reference(const Array& x, std::int64_t kh, std::int64_t kw, const Geometry& g,
                         bool count_pad) {
  Array y = Array::of({x.sizes[0], x.sizes[1], extent(x.sizes[2], kh, g.stride_h, g.pad_h, 1),
                       extent(x.sizes[3], kw, g.stride_w, g.pad_w, 1)});
  Array counts = y;
  windows(x.sizes, kh, kw, g, [&](std::int64_t o, std::int64_t from, std::int64_t) {
    if (from >= 0) y.at(o) += x.at(from);
    if (from >= 0 || count_pad) counts.at(o) += 1;
  });
  for (std::int64_t i = 0; i < y.numel(); ++i) y.at(i) /= counts.at(i);
  return y;
}

// x [N, C, ...], weight, bias.
Array batch_norm_reference(Arrays in, double eps, bool training, const Array& mean, const Array& var) {
  const Array& x = in[0];
  const std::int64_t channels = x.sizes[1];
  const std::int64_t inner = x.sizes[0] * channels == 0 ? 1 : x.numel() / (x.sizes[0] * channels);
  Array y = x;
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0, count = 0;
    const auto in_channel = [&](std::int64_t i) { return i / inner % channels == c; };
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      if (in_channel(i)) sum += x.at(i), count += 1;
    }
    const double center = training ? sum / count : mean.at(c);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      if (in_channel(i)) squares += (x.at(i) - center) * (x.at(i) - center);
    }
    const double scale = 1 / std::sqrt((training ? squares / count : var.at(c)) + eps);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      if (in_channel(i)) y.at(i) = (x.at(i) - center) * scale * in[1].at(c) + in[2].at(c);
    }
  }
  return y;
}

Array softmax_reference(const Array& x, std::size_t dim, bool log) {
  const double lowest = -std::numeric_limits<double>::infinity();
  const Array top = fold(x, 1U << dim, true, lowest, [](double a, double b) { return std::max(a, b); });
  const Array shifted = zip(x, top, [](double a, double b) { return a - b; });
  const Array total = fold(map(shifted, [](double v) { return std::exp(v); }), 1U << dim, true, 0,
                           [](double a, double b) { return a + b; });
  if (log) return zip(shifted, total, [](double a, double b) { return a - std::log(b); });
  return zip(shifted, total, [](double a, double b) { return std::exp(a) / b; });
}

// Mean over rows of logits [N, C], targets [N]; the last term of the sum is the smoothing's.
Array cross_entropy_reference(Arrays in, double smoothing, std::int64_t ignored, const Array* weight,
                              Reduction reduction) {
  const Array& x = in[0];
  const Array log_p = softmax_reference(x, 1, true);
  const std::int64_t classes = x.sizes[1];
  Array losses = Array::of({x.sizes[0]});
  double total = 0, denominator = 0;
  for (std::int64_t n = 0; n < x.sizes[0]; ++n) {
    const auto target = static_cast<std::int64_t>(in[1].at(n));
    if (target == ignored) continue;
    const auto weight_of = [&](std::int64_t c) { return weight != nullptr ? weight->at(c) : 1.0; };
    double smooth = 0;
    for (std::int64_t c = 0; c < classes; ++c) smooth -= weight_of(c) * log_p.at(n * classes + c);
    losses.at(n) = -(1 - smoothing) * weight_of(target) * log_p.at(n * classes + target) +
                   smoothing / static_cast<double>(classes) * smooth;
    total += losses.at(n);
    denominator += weight_of(target);
  }
  if (reduction == Reduction::kNone) return losses;
  return {{}, {reduction == Reduction::kSum ? total : total / denominator}};
}

// Mean over rows of logits and probabilities [N, C].
Array probabilities_reference(Arrays in, double smoothing, const Array& weight) {
  const Array log_p = softmax_reference(in[0], 1, true);
  const std::int64_t classes = in[0].sizes[1];
  double total = 0;
  for (std::int64_t i = 0; i < log_p.numel(); ++i) {
    const double q = (1 - smoothing) * in[1].at(i) + smoothing / static_cast<double>(classes);
    total -= weight.at(i % classes) * q * log_p.at(i);
  }
  return {{}, {total / static_cast<double>(in[0].sizes[0])}};
}

// Number i of the sequence that starts at `state`, straight from Random123.
std::uint32_t philox_number(const PhiloxState& state, std::uint64_t i) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); };
  const std::uint64_t counter = state.offset + i / 4;
  const r123::Philox4x32::ctr_type block =
      r123::Philox4x32()({{low(counter), high(counter), low(state.stream), high(state.stream)}},
                         {{low(state.seed), high(state.seed)}});
  return block[i % 4];
}

void add_image_rows(std::vector<OpRow>& rows) {
  const auto conv = [&](const char* name, const Geometry& g, std::vector<std::vector<Input>> cases,
                        std::vector<Input> large) {
    const Conv2dFunctionOptions options{
        .stride = {static_cast<int>(g.stride_h), static_cast<int>(g.stride_w)},
        .padding = {static_cast<int>(g.pad_h), static_cast<int>(g.pad_w)},
        .dilation = static_cast<int>(g.dilation),
        .groups = static_cast<int>(g.groups)};
    rows.push_back(
        {name, [options](In in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options); },
         [g](Arrays in) { return conv_reference(in, g); }, std::move(cases), Takes::kFloating, true, 4e-6,
         std::move(large)});
  };
  conv("conv2d", {},
       {{{{2, 3, 7, 6}}, {{4, 3, 3, 2}}, {{4}}},
        {{{1, 1, 5, 5}}, {{2, 1, 1, 1}}, {{2}}},
        {{{0, 3, 7, 6}}, {{4, 3, 3, 2}}, {{4}}}},
       {{{9, 32, 14, 14}}, {{64, 32, 3, 3}}, {{64}}});
  conv("conv2d-padded", {1, 1, 1, 1, 1, 1},
       {{{{2, 1, 8, 8}}, {{16, 1, 3, 3}}, {{16}}},
        {{{3, 17, 5, 5}}, {{5, 17, 3, 3}}, {{5}}},
        {{{0, 1, 8, 8}}, {{16, 1, 3, 3}}, {{16}}}},
       {{{32, 1, 28, 28}}, {{32, 1, 3, 3}}, {{32}}});
  conv("conv2d-strided", {2, 3, 1, 2, 1, 1},
       {{{{2, 3, 9, 11}}, {{4, 3, 3, 5}}}, {{{0, 3, 9, 11}}, {{4, 3, 3, 5}}}},
       {{{8, 16, 29, 31}}, {{16, 16, 3, 5}}});
  conv("conv2d-dilated", {1, 1, 2, 2, 2, 1},
       {{{{2, 3, 9, 8}}, {{4, 3, 3, 3}}, {{4}}}, {{{0, 3, 9, 8}}, {{4, 3, 3, 3}}, {{4}}}},
       {{{8, 16, 28, 28}}, {{16, 16, 3, 3}}, {{16}}});
  conv("conv2d-groups", {1, 1, 1, 1, 1, 2},
       {{{{2, 4, 6, 5}}, {{6, 2, 3, 3}}, {{6}}}, {{{0, 4, 6, 5}}, {{6, 2, 3, 3}}, {{6}}}},
       {{{8, 32, 14, 14}}, {{32, 16, 3, 3}}, {{32}}});
  conv("conv2d-depthwise", {1, 1, 1, 1, 1, 4},
       {{{{2, 4, 6, 5}}, {{4, 1, 3, 3}}, {{4}}}, {{{0, 4, 6, 5}}, {{4, 1, 3, 3}}, {{4}}}},
       {{{64, 4, 28, 28}}, {{4, 1, 3, 3}}, {{4}}});
  rows.push_back({"max_pool2d",
                  [](In in) { return max_pool2d(in[0], {.kernel_size = 2}); },
                  [](Arrays in) {
                    return max_pool_reference(in[0], 2, 2, {2, 2, 0, 0, 1, 1});
                  },
                  {{{{2, 3, 6, 8}}}, {{{1, 17, 5, 7}}}, {{{0, 3, 4, 4}}}},
                  Takes::kFloating,
                  true,
                  0,
                  {{{9, 33, 28, 28}}}});
  rows.push_back(
      {"max_pool2d-overlapping",
       [](In in) {
         return max_pool2d(in[0], {.kernel_size = {3, 2}, .stride = {2, 1}, .padding = 1, .dilation = 1});
       },
       [](Arrays in) {
         return max_pool_reference(in[0], 3, 2, {2, 1, 1, 1, 1, 1});
       },
       {{{{2, 3, 6, 8}}}, {{{1, 16, 5, 7}}}, {{{0, 3, 6, 8}}}},
       Takes::kFloating,
       true,
       0,
       {{{9, 33, 28, 28}}}});
  rows.push_back({"max_pool2d-dilated",
                  [](In in) { return max_pool2d(in[0], {.kernel_size = 2, .stride = 1, .dilation = 2}); },
                  [](Arrays in) {
                    return max_pool_reference(in[0], 2, 2, {1, 1, 0, 0, 2, 1});
                  },
                  {{{{2, 3, 6, 8}}}, {{{0, 3, 6, 8}}}},
                  Takes::kFloating,
                  true,
                  0,
                  {{{9, 33, 28, 28}}}});
  rows.push_back({"avg_pool2d",
                  [](In in) { return avg_pool2d(in[0], {.kernel_size = 2}); },
                  [](Arrays in) {
                    return avg_pool_reference(in[0], 2, 2, {2, 2, 0, 0, 1, 1}, true);
                  },
                  {{{{2, 3, 6, 8}}}, {{{1, 17, 5, 7}}}, {{{0, 3, 6, 8}}}},
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{9, 33, 28, 28}}}});
  rows.push_back({"avg_pool2d-unpadded-count",
                  [](In in) {
                    return avg_pool2d(
                        in[0], {.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false});
                  },
                  [](Arrays in) {
                    return avg_pool_reference(in[0], 3, 3, {2, 2, 1, 1, 1, 1}, false);
                  },
                  {{{{2, 3, 6, 7}}}, {{{0, 3, 6, 7}}}},
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{9, 33, 28, 28}}}});
  rows.push_back({"avg_pool2d-padded-count",
                  [](In in) { return avg_pool2d(in[0], {.kernel_size = 3, .stride = 2, .padding = 1}); },
                  [](Arrays in) {
                    return avg_pool_reference(in[0], 3, 3, {2, 2, 1, 1, 1, 1}, true);
                  },
                  {{{{2, 3, 6, 7}}}, {{{0, 3, 6, 7}}}},
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{9, 33, 28, 28}}}});
}

void add_norm_rows(std::vector<OpRow>& rows) {
  rows.push_back({"batch_norm",
                  [](In in) { return batch_norm(in[0], {}, {}, in[1], in[2], {.training = true}); },
                  [](Arrays in) { return batch_norm_reference(in, 1e-5, true, {}, {}); },
                  {{{{5, 3}}, {{3}, Values::kPositive}, {{3}}},
                   {{{4, 3, 7}}, {{3}, Values::kPositive}, {{3}}},
                   {{{2, 17, 3, 5}}, {{17}, Values::kPositive}, {{17}}},
                   {{{0, 3}}, {{3}, Values::kPositive}, {{3}}},
                   {{{0, 3, 4, 5}}, {{3}, Values::kPositive}, {{3}}}},
                  Takes::kFloating,
                  true,
                  2e-5,
                  {{{9, 33, 14, 14}}, {{33}, Values::kPositive}, {{33}}}});
  rows.push_back(
      {"batch_norm-eval",
       [](In in) { return batch_norm(in[0], in[3], in[4], in[1], in[2], {.training = false, .eps = 1e-3}); },
       [](Arrays in) { return batch_norm_reference(in, 1e-3, false, in[3], in[4]); },
       {{{{5, 3}}, {{3}}, {{3}}, {{3}, Values::kNormal, 0, true}, {{3}, Values::kPositive, 0, true}},
        {{{2, 4, 3, 5}}, {{4}}, {{4}}, {{4}, Values::kNormal, 0, true}, {{4}, Values::kPositive, 0, true}},
        {{{0, 3}}, {{3}}, {{3}}, {{3}, Values::kNormal, 0, true}, {{3}, Values::kPositive, 0, true}}},
       Takes::kFloating,
       true,
       1e-5,
       {{{9, 33, 14, 14}},
        {{33}},
        {{33}},
        {{33}, Values::kNormal, 0, true},
        {{33}, Values::kPositive, 0, true}}});
  rows.push_back({"dropout",
                  [](In in) {
                    Generator generator(1234, 5);
                    return dropout(in[0], 0.3, true, &generator);
                  },
                  [](Arrays in) {
                    Array y = in[0];
                    for (std::int64_t i = 0; i < y.numel(); ++i) {
                      const bool dropped = philox_number({1234, 5, 0}, static_cast<std::uint64_t>(i)) <
                                           std::floor(std::ldexp(0.3, 32));
                      y.at(i) = dropped ? 0 : y.at(i) / 0.7;
                    }
                    return y;
                  },
                  unary_cases(),
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{70, 1001}}}});
}

void add_softmax_rows(std::vector<OpRow>& rows) {
  const std::vector<std::vector<Input>> cases = {{{{3, 5}}}, {{{2, 3, 17}}}, {{{1, 129}}}, {{{0, 4}}}};
  for (const bool log : {false, true}) {
    const std::string name = log ? "log_softmax" : "softmax";
    rows.push_back({name,
                    [log](In in) { return log ? log_softmax(in[0], -1) : softmax(in[0], -1); },
                    [log](Arrays in) { return softmax_reference(in[0], in[0].sizes.size() - 1, log); },
                    cases,
                    Takes::kFloating,
                    true,
                    4e-6,
                    {{{300, 257}}}});
    rows.push_back({name + "-middle",
                    [log](In in) { return log ? log_softmax(in[0], 1) : softmax(in[0], 1); },
                    [log](Arrays in) { return softmax_reference(in[0], 1, log); },
                    {{{{2, 5, 3}}}, {{{4, 3, 2, 2}}}, {{{0, 5, 3}}}, {{{2, 0, 3}}}},
                    Takes::kFloating,
                    true,
                    4e-6,
                    {{{30, 33, 65}}}});
  }
  const std::vector<std::vector<Input>> targets = {{{{5, 4}}, {{5}, Values::kIndex, 4}},
                                                   {{{33, 10}}, {{33}, Values::kIndex, 10}},
                                                   {{{0, 4}}, {{0}, Values::kIndex, 4}}};
  const std::vector<Input> large = {{{700, 65}}, {{700}, Values::kIndex, 65}};
  const auto loss = [&](const char* name, CrossEntropyOptions options, bool weighted) {
    rows.push_back({name,
                    [options, weighted](In in) {
                      CrossEntropyOptions o = options;
                      if (weighted) o.weight = in[2];
                      return cross_entropy(in[0], in[1], o);
                    },
                    [options, weighted](Arrays in) {
                      return cross_entropy_reference(in, options.label_smoothing, options.ignore_index,
                                                     weighted ? &in[2] : nullptr, options.reduction);
                    },
                    targets, Takes::kFloating, true, 4e-6, large});
    if (weighted) {
      for (auto& one : rows.back().cases) one.push_back({{one[0].sizes[1]}, Values::kPositive, 0, true});
      rows.back().large.push_back({{65}, Values::kPositive, 0, true});
    }
  };
  loss("cross_entropy", {}, false);
  loss("cross_entropy-sum-smoothed", {.reduction = Reduction::kSum, .label_smoothing = 0.1}, false);
  loss("cross_entropy-none-ignored", {.ignore_index = 1, .reduction = Reduction::kNone}, false);
  loss("cross_entropy-weighted", {.ignore_index = 2, .label_smoothing = 0.2}, true);
  rows.push_back(
      {"cross_entropy-probabilities",
       [](In in) { return cross_entropy(in[0], in[1], {.weight = in[2], .label_smoothing = 0.2}); },
       [](Arrays in) { return probabilities_reference(in, 0.2, in[2]); },
       {{{{5, 4}}, {{5, 4}, Values::kPositive}, {{4}, Values::kPositive, 0, true}},
        {{{33, 10}}, {{33, 10}, Values::kPositive}, {{10}, Values::kPositive, 0, true}},
        {{{0, 4}}, {{0, 4}, Values::kPositive}, {{4}, Values::kPositive, 0, true}}},
       Takes::kFloating,
       true,
       4e-6,
       {{{700, 65}}, {{700, 65}, Values::kPositive}, {{65}, Values::kPositive, 0, true}}});
}

}  // namespace

std::vector<OpRow> network_rows() {
  std::vector<OpRow> rows;
  add_image_rows(rows);
  add_norm_rows(rows);
  add_softmax_rows(rows);
  return rows;
}

}  // namespace tutti::testing
