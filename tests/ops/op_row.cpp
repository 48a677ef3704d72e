// SPDX-License-Identifier: Apache-2.0
#include "ops/op_row.hpp"

#include <algorithm>

namespace tutti::testing {

std::vector<std::vector<Input>> unary_cases(Values values) {
  std::vector<std::vector<Input>> cases;
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {3, 5}, {2, 3, 17}, {33}, {0}, {2, 0, 3}}) {
    cases.push_back({{sizes, values}});
  }
  return cases;
}

std::vector<std::vector<Input>> binary_cases(Values first, Values second) {
  using Shape = std::vector<std::int64_t>;
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{}, {}},     {{7}, {7}},         {{3, 5}, {3, 5}},  {{4, 1, 7}, {5, 1}}, {{3, 5}, {}},
      {{}, {2, 3}}, {{2, 3, 17}, {17}}, {{2, 1}, {1, 33}}, {{0, 3}, {3}},       {{2, 0}, {1, 1}}};
  std::vector<std::vector<Input>> cases;
  for (const auto& [a, b] : shapes) cases.push_back({{a, first}, {b, second}});
  return cases;
}

std::vector<std::int64_t> broadcast_sizes(const std::vector<std::int64_t>& a,
                                          const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> sizes(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    sizes[sizes.size() - 1 - i] = left == 1 ? right : left;
  }
  return sizes;
}

std::vector<std::int64_t> broadcast_indices(const Array& x, const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  for (std::int64_t flat = 0; flat < count; ++flat) {
    std::int64_t rest = flat, index = 0, stride = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::int64_t position = rest % sizes[sizes.size() - 1 - i];
      rest /= sizes[sizes.size() - 1 - i];
      if (i < x.sizes.size()) {
        const std::int64_t extent = x.sizes[x.sizes.size() - 1 - i];
        index += (extent == 1 ? 0 : position) * stride;
        stride *= extent;
      }
    }
    indices[static_cast<std::size_t>(flat)] = index;
  }
  return indices;
}

Array map(const Array& x, const std::function<double(double)>& f) {
  Array y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f) {
  Array y = Array::of(broadcast_sizes(a.sizes, b.sizes));
  const std::vector<std::int64_t> from_a = broadcast_indices(a, y.sizes);
  const std::vector<std::int64_t> from_b = broadcast_indices(b, y.sizes);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = f(a.at(from_a[i]), b.at(from_b[i]));
  return y;
}

Array fold(const Array& x, std::uint32_t mask, bool keepdim, double start,
           const std::function<double(double, double)>& f) {
  std::vector<std::int64_t> kept = x.sizes;
  std::vector<std::int64_t> shown;
  for (std::size_t d = 0; d < kept.size(); ++d) {
    if ((mask >> d & 1U) != 0) {
      kept[d] = 1;
    } else {
      shown.push_back(kept[d]);
    }
  }
  Array y = Array::of(kept);
  std::fill(y.values.begin(), y.values.end(), start);
  const std::vector<std::int64_t> to = broadcast_indices(y, x.sizes);
  for (std::size_t i = 0; i < x.values.size(); ++i) y.at(to[i]) = f(y.at(to[i]), x.values[i]);
  if (!keepdim) y.sizes = shown;
  return y;
}

std::vector<OpRow> all_rows() {
  std::vector<OpRow> rows;
  for (auto* group : {&pointwise_rows, &reduction_rows, &shape_rows, &matmul_rows, &network_rows}) {
    for (OpRow& row : group()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tutti::testing
