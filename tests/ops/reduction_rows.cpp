// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/op_row.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti::testing {

namespace {

using In = std::span<const Tensor>;
using Arrays = std::span<const Array>;

const std::vector<std::vector<Input>> kNonEmpty = {{{{}}},     {{{1}}},        {{{7}}},
                                                   {{{3, 5}}}, {{{2, 3, 17}}}, {{{129}}}};
const std::vector<std::vector<Input>> kThreeDims = {{{{2, 3, 17}}}, {{{5, 1, 4}}}, {{{1, 33, 2}}}};

std::vector<std::vector<Input>> with_empty(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<std::vector<Input>> cases = kThreeDims;
  for (const auto& sizes : shapes) cases.push_back({{sizes}});
  return cases;
}

double plus(double a, double b) { return a + b; }
double greater(double a, double b) { return a > b ? a : b; }

Array divide(Array x, double divisor) {
  for (double& value : x.values) value /= divisor;
  return x;
}

// Index of the first greatest element along `dim`.
Array arg_max(const Array& x, std::size_t dim, bool keepdim) {
  Array best = fold(x, 1U << dim, true, -std::numeric_limits<double>::infinity(), greater);
  Array index = best;
  for (double& value : index.values) value = -1;
  const std::vector<std::int64_t> to = broadcast_indices(best, x.sizes);
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < x.sizes.size(); ++d) inner *= x.sizes[d];
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto position = static_cast<double>(static_cast<std::int64_t>(i) / inner % x.sizes[dim]);
    if (x.values[i] == best.at(to[i]) && index.at(to[i]) < 0) index.at(to[i]) = position;
  }
  if (!keepdim) index.sizes.erase(index.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  return index;
}

}  // namespace

std::vector<OpRow> reduction_rows() {
  const double lowest = -std::numeric_limits<double>::infinity();
  std::vector<OpRow> rows;
  rows.push_back({"sum",
                  [](In in) { return sum(in[0]); },
                  [](Arrays in) { return fold(in[0], ~0U, false, 0, plus); },
                  unary_cases(),
                  Takes::kAll,
                  true,
                  4e-6,
                  {{{300, 1001}}}});
  rows.push_back({"sum-dims",
                  [](In in) {
                    return sum(in[0], {0, 2});
                  },
                  [](Arrays in) { return fold(in[0], 0b101U, false, 0, plus); },
                  {{{{2, 3, 17}}}, {{{5, 1, 4}}}, {{{0, 3, 2}}}, {{{2, 0, 2}}}},
                  Takes::kAll,
                  true,
                  4e-6,
                  {{{40, 30, 257}}}});
  rows.push_back({"sum-first",
                  [](In in) { return sum(in[0], {0}); },
                  [](Arrays in) { return fold(in[0], 1U, false, 0, plus); },
                  with_empty({{0, 3, 2}, {3, 0}}),
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{300, 1001}}}});
  rows.push_back({"sum-last-keepdim",
                  [](In in) { return sum(in[0], {-1}, true); },
                  [](Arrays in) { return fold(in[0], 1U << (in[0].sizes.size() - 1), true, 0, plus); },
                  with_empty({{2, 3, 0}, {0, 3}}),
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{300, 1001}}}});
  rows.push_back(
      {"mean",
       [](In in) { return mean(in[0]); },
       [](Arrays in) { return divide(fold(in[0], ~0U, false, 0, plus), static_cast<double>(in[0].numel())); },
       unary_cases(),  // the mean of nothing is NaN
       Takes::kFloating,
       true,
       4e-6,
       {{{300, 1001}}}});
  rows.push_back({"mean-dims",
                  [](In in) {
                    return mean(in[0], {1, 2}, true);
                  },
                  [](Arrays in) {
                    return divide(fold(in[0], 0b110U, true, 0, plus),
                                  static_cast<double>(in[0].sizes[1] * in[0].sizes[2]));
                  },
                  with_empty({{2, 0, 3}, {0, 3, 4}}),
                  Takes::kFloating,
                  true,
                  4e-6,
                  {{{40, 30, 257}}}});
  rows.push_back({"max",
                  [](In in) { return max(in[0]); },
                  [lowest](Arrays in) { return fold(in[0], ~0U, false, lowest, greater); },
                  kNonEmpty,
                  Takes::kAll,
                  true,
                  0,
                  {{{300, 1001}}},
                  true});
  rows.push_back({"amax",
                  [](In in) { return amax(in[0]); },
                  [lowest](Arrays in) { return fold(in[0], ~0U, false, lowest, greater); },
                  kNonEmpty,
                  Takes::kAll,
                  true,
                  0,
                  {{{300, 1001}}},
                  true});
  rows.push_back({"amax-dims",
                  [](In in) {
                    return amax(in[0], {0, 2});
                  },
                  [lowest](Arrays in) { return fold(in[0], 0b101U, false, lowest, greater); },
                  {{{{2, 3, 17}}}, {{{5, 1, 4}}}, {{{2, 0, 2}}}},
                  Takes::kAll,
                  true,
                  0,
                  {{{40, 30, 257}}}});
  rows.push_back({"amax-first-keepdim",
                  [](In in) { return amax(in[0], {0}, true); },
                  [lowest](Arrays in) { return fold(in[0], 1U, true, lowest, greater); },
                  with_empty({{3, 0}}),
                  Takes::kAll,
                  true,
                  0,
                  {{{300, 1001}}}});
  rows.push_back({"max-dim",
                  [](In in) { return max(in[0], 1).first; },
                  [lowest](Arrays in) { return fold(in[0], 0b10U, false, lowest, greater); },
                  with_empty({{0, 3, 2}}),
                  Takes::kAll,
                  true,
                  0,
                  {{{40, 30, 257}}}});
  rows.push_back({"max-dim-keepdim",
                  [](In in) { return max(in[0], -1, true).first; },
                  [lowest](Arrays in) { return fold(in[0], 0b100U, true, lowest, greater); },
                  with_empty({{2, 0, 3}}),
                  Takes::kAll,
                  true,
                  0,
                  {{{40, 30, 257}}}});
  rows.push_back({"max-dim-indices",
                  [](In in) { return max(in[0], 1).second; },
                  [](Arrays in) { return arg_max(in[0], 1, false); },
                  with_empty({{0, 3, 2}}),
                  Takes::kAll,
                  false,
                  0,
                  {{{40, 30, 257}}}});
  rows.push_back({"argmax",
                  [](In in) { return argmax(in[0]); },
                  [](Arrays in) {
                    const Array flat{{in[0].numel()}, in[0].values};
                    return arg_max(flat, 0, false);
                  },
                  kNonEmpty,
                  Takes::kNumeric,
                  false,
                  0,
                  {{{300, 1001}}},
                  true});
  rows.push_back({"argmax-dim",
                  [](In in) { return argmax(in[0], -2, true); },
                  [](Arrays in) { return arg_max(in[0], in[0].sizes.size() - 2, true); },
                  with_empty({{0, 3, 2}}),
                  Takes::kNumeric,
                  false,
                  0,
                  {{{40, 30, 257}}}});
  return rows;
}

}  // namespace tutti::testing
