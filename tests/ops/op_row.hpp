// SPDX-License-Identifier: Apache-2.0
// What the table says about one op, and the plain float64 arrays that its references compute with.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tutti/tensor/tensor.hpp"

namespace tutti::testing {

// A row-major array of doubles: no strides, no library code.
struct Array {
  std::vector<std::int64_t> sizes;
  std::vector<double> values;

  std::int64_t numel() const {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) product *= size;
    return product;
  }
  static Array of(std::vector<std::int64_t> sizes) {
    Array array{std::move(sizes), {}};
    array.values.assign(static_cast<std::size_t>(array.numel()), 0.0);
    return array;
  }
  double& at(std::int64_t flat) { return values[static_cast<std::size_t>(flat)]; }
  double at(std::int64_t flat) const { return values[static_cast<std::size_t>(flat)]; }
};

// Where an input's values come from.
enum class Values {
  kNormal,    // about standard normal, no two alike
  kPositive,  // 0.5 to 3
  kBool,
  kIndex,  // int64 in [0, limit)
};
struct Input {
  std::vector<std::int64_t> sizes;
  Values values = Values::kNormal;
  std::int64_t limit = 0;
  bool constant = false;  // takes no part in backward
};

// Floating dtypes, these and integers, or bool as well.
enum class Takes { kFloating, kNumeric, kAll };

struct OpRow {
  std::string name;  // of the function or member, with what tells this row apart behind a dash: "sum-dims"
  std::function<Tensor(std::span<const Tensor>)> call;
  std::function<Array(std::span<const Array>)> reference;
  std::vector<std::vector<Input>> cases;
  Takes takes = Takes::kFloating;
  bool differentiable = true;
  double tolerance = 4e-6;        // of float32, relative to the largest magnitude of the result
  std::vector<Input> large = {};  // a case with work for several threads
  bool refuses_empty = false;     // a ShapeError for an empty input, which then has no case
};
inline void PrintTo(const OpRow& row, std::ostream* stream) { *stream << row.name; }

// All rows, in groups that stand in files of their own.
std::vector<OpRow> pointwise_rows();
std::vector<OpRow> reduction_rows();
std::vector<OpRow> shape_rows();
std::vector<OpRow> matmul_rows();
std::vector<OpRow> network_rows();
std::vector<OpRow> all_rows();

// Shapes for one and two inputs: odd sizes, broadcasts, empty, 0-dim.
std::vector<std::vector<Input>> unary_cases(Values values = Values::kNormal);
std::vector<std::vector<Input>> binary_cases(Values first = Values::kNormal, Values second = Values::kNormal);

Array map(const Array& x, const std::function<double(double)>& f);
Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f);  // broadcasts
// The row-major index of `x` broadcast to `sizes`, for each of its elements.
std::vector<std::int64_t> broadcast_indices(const Array& x, const std::vector<std::int64_t>& sizes);
std::vector<std::int64_t> broadcast_sizes(const std::vector<std::int64_t>& a,
                                          const std::vector<std::int64_t>& b);
// Folds over the dims of the mask; f(accumulator, element).
Array fold(const Array& x, std::uint32_t mask, bool keepdim, double start,
           const std::function<double(double, double)>& f);

}  // namespace tutti::testing
