// SPDX-License-Identifier: Apache-2.0
// References of matrix products: plain loops in float64.
#include <algorithm>

#include "ops/op_row.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti::testing {

namespace {

using In = std::span<const Tensor>;
using Arrays = std::span<const Array>;
using Shape = std::vector<std::int64_t>;

// [m, k] times [k, n].
Array product(const Array& a, const Array& b) {
  const std::int64_t m = a.sizes[0], k = a.sizes[1], n = b.sizes[1];
  Array c = Array::of({m, n});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l) c.at(i * n + j) += a.at(i * k + l) * b.at(l * n + j);
    }
  }
  return c;
}

Array batched_product(const Array& a, const Array& b) {
  const Shape a_batch(a.sizes.begin(), a.sizes.end() - 2), b_batch(b.sizes.begin(), b.sizes.end() - 2);
  const Shape batch = broadcast_sizes(a_batch, b_batch);
  const std::int64_t m = a.sizes[a.sizes.size() - 2], k = a.sizes.back(), n = b.sizes.back();
  Shape sizes = batch;
  sizes.push_back(m);
  sizes.push_back(n);
  Array c = Array::of(sizes);
  const auto from_a = broadcast_indices(Array::of(a_batch), batch),
             from_b = broadcast_indices(Array::of(b_batch), batch);
  for (std::size_t i = 0; i < from_a.size(); ++i) {
    const auto part = [](const Array& x, std::int64_t index, std::int64_t rows, std::int64_t columns) {
      const auto start = x.values.begin() + index * rows * columns;
      return Array{{rows, columns}, {start, start + rows * columns}};
    };
    const Array one = product(part(a, from_a[i], m, k), part(b, from_b[i], k, n));
    std::copy(one.values.begin(), one.values.end(), c.values.begin() + static_cast<std::int64_t>(i) * m * n);
  }
  return c;
}

Array linear_reference(Arrays in) {
  const Array& x = in[0];
  const Array& w = in[1];
  const std::int64_t out = w.sizes[0], width = w.sizes[1];
  Shape sizes = x.sizes;
  sizes.back() = out;
  Array y = Array::of(sizes);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    y.at(i) = in.size() > 2 ? in[2].at(i % out) : 0;
    for (std::int64_t l = 0; l < width; ++l) y.at(i) += x.at(i / out * width + l) * w.at(i % out * width + l);
  }
  return y;
}

}  // namespace

std::vector<OpRow> matmul_rows() {
  std::vector<OpRow> rows;
  const std::vector<std::vector<Input>> cases = {{{{3, 5}}, {{5, 4}}},          {{{1, 1}}, {{1, 1}}},
                                                 {{{17, 33}}, {{33, 9}}},       {{{2, 3, 4}}, {{2, 4, 5}}},
                                                 {{{2, 1, 3, 4}}, {{5, 4, 2}}}, {{{3, 0}}, {{0, 4}}},
                                                 {{{0, 3}}, {{3, 4}}},          {{{3, 4}}, {{2, 4, 5}}}};
  rows.push_back({"matmul",
                  [](In in) { return matmul(in[0], in[1]); },
                  [](Arrays in) { return batched_product(in[0], in[1]); },
                  cases,
                  Takes::kNumeric,
                  true,
                  2e-6,
                  {{{129, 200}}, {{200, 130}}}});
  rows.push_back({"matmul-vectors",
                  [](In in) { return matmul(in[0], in[1]); },
                  [](Arrays in) {
                    Array a = in[0], b = in[1];
                    const bool first = a.sizes.size() == 1, second = b.sizes.size() == 1;
                    if (first) a.sizes.insert(a.sizes.begin(), 1);
                    if (second) b.sizes.push_back(1);
                    Array c = batched_product(a, b);
                    if (second) c.sizes.pop_back();
                    if (first) c.sizes.erase(c.sizes.end() - (second ? 1 : 2));
                    return c;
                  },
                  {{{{5}}, {{5}}},
                   {{{3, 5}}, {{5}}},
                   {{{5}}, {{5, 2}}},
                   {{{2, 3, 5}}, {{5}}},
                   {{{0}}, {{0}}},
                   {{{0, 5}}, {{5}}}},
                  Takes::kFloating,
                  true,
                  2e-6,
                  {{{300, 501}}, {{501}}}});
  rows.push_back({"linear",
                  [](In in) { return linear(in[0], in[1], in[2]); },
                  linear_reference,
                  {{{{3, 5}}, {{4, 5}}, {{4}}},
                   {{{2, 3, 7}}, {{1, 7}}, {{1}}},
                   {{{5}}, {{2, 5}}, {{2}}},
                   {{{0, 5}}, {{4, 5}}, {{4}}},
                   {{{33, 65}}, {{17, 65}}, {{17}}}},
                  Takes::kFloating,
                  true,
                  2e-6,
                  {{{128, 200}}, {{130, 200}}, {{130}}}});
  rows.push_back({"linear-no-bias",
                  [](In in) { return linear(in[0], in[1]); },
                  linear_reference,
                  {{{{3, 5}}, {{4, 5}}}, {{{0, 5}}, {{4, 5}}}, {{{3, 0}}, {{4, 0}}}},
                  Takes::kFloating,
                  true,
                  2e-6,
                  {{{128, 200}}, {{130, 200}}}});
  return rows;
}

}  // namespace tutti::testing
