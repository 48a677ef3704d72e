// SPDX-License-Identifier: Apache-2.0
#include "ops/op_row.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti::testing {

namespace {

using In = std::span<const Tensor>;
using Arrays = std::span<const Array>;
using Index = std::vector<std::int64_t>;

// out[i] = x[source(i)] over all multi-indices of `sizes`.
Array gather(const Array& x, Index sizes, const std::function<Index(const Index&)>& source) {
  Array y = Array::of(sizes);
  Index at(sizes.size(), 0);
  for (double& value : y.values) {
    const Index from = source(at);
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < from.size(); ++d) flat = flat * x.sizes[d] + from[d];
    value = x.at(flat);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
  return y;
}
Array reshaped(const Array& x, Index sizes) { return {std::move(sizes), x.values}; }

// Of one input [2, 3, 4], its empty forms and a large one, unless the op wants others.
struct Shapes {
  std::vector<Index> cases = {{2, 3, 4}, {2, 3, 0}, {3, 3, 4}};
  Index large = {60, 40, 52};
};
OpRow row(const char* name, std::function<Tensor(const Tensor&)> op,
          std::function<Array(const Array&)> reference, const Shapes& shapes = {}) {
  std::vector<std::vector<Input>> cases;
  for (const Index& sizes : shapes.cases) cases.push_back({{sizes}});
  return {name,
          [op](In in) { return op(in[0]); },
          [reference](Arrays in) { return reference(in[0]); },
          std::move(cases),
          Takes::kAll,
          true,
          0,
          {{shapes.large}}};
}

// Concatenation along dim of any number of arrays.
Array joined(Arrays parts, std::size_t dim) {
  Index sizes = parts[0].sizes;
  sizes[dim] = 0;
  for (const Array& part : parts) sizes[dim] += part.sizes[dim];
  Array y = Array::of(sizes);
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  std::int64_t start = 0;
  for (const Array& part : parts) {
    const std::int64_t run = part.sizes[dim] * inner;
    for (std::int64_t i = 0; i < part.numel(); ++i)
      y.at(i / run * sizes[dim] * inner + start + i % run) = part.at(i);
    start += run;
  }
  return y;
}

}  // namespace

std::vector<OpRow> shape_rows() {
  std::vector<OpRow> rows = {
      row(
          "view",
          [](const Tensor& x) {
            return x.contiguous().view({4, -1});
          },
          [](const Array& x) {
            return reshaped(x, {4, x.numel() / 4});
          },
          {.cases = {{2, 3, 4}, {2, 3, 0}}}),
      row(
          "reshape",
          [](const Tensor& x) {
            return x.reshape({4, -1});
          },
          [](const Array& x) {
            return reshaped(x, {4, x.numel() / 4});
          },
          {.cases = {{2, 3, 4}, {0, 3, 4}}}),
      row(
          "flatten", [](const Tensor& x) { return x.flatten(1); },
          [](const Array& x) {
            return reshaped(x, {x.sizes[0], x.sizes[1] * x.sizes[2]});
          }),
      row(
          "select", [](const Tensor& x) { return x.select(1, -1); },
          [](const Array& x) {
            return gather(x, {x.sizes[0], x.sizes[2]}, [last = x.sizes[1] - 1](const Index& i) {
              return Index{i[0], last, i[1]};
            });
          }),
      row(
          "operator[]", [](const Tensor& x) { return x[1]; },
          [](const Array& x) {
            return gather(x, {x.sizes[1], x.sizes[2]}, [](const Index& i) { return Index{1, i[0], i[1]}; });
          }),
      row(
          "slice", [](const Tensor& x) { return x.slice(2, 1, 4, 2); },
          [](const Array& x) {
            return gather(x, {x.sizes[0], x.sizes[1], 2}, [](const Index& i) {
              return Index{i[0], i[1], 1 + 2 * i[2]};
            });
          },
          {.cases = {{2, 3, 4}, {0, 3, 4}}}),
      row(
          "narrow", [](const Tensor& x) { return x.narrow(1, 1, 2); },
          [](const Array& x) {
            return gather(x, {x.sizes[0], 2, x.sizes[2]}, [](const Index& i) {
              return Index{i[0], 1 + i[1], i[2]};
            });
          }),
      row(
          "transpose", [](const Tensor& x) { return x.transpose(0, -1); },
          [](const Array& x) {
            return gather(x, {x.sizes[2], x.sizes[1], x.sizes[0]}, [](const Index& i) {
              return Index{i[2], i[1], i[0]};
            });
          }),
      row(
          "t", [](const Tensor& x) { return x.t(); },
          [](const Array& x) {
            return gather(x, {x.sizes[1], x.sizes[0]}, [](const Index& i) { return Index{i[1], i[0]}; });
          },
          {.cases = {{3, 5}, {0, 5}}, .large = {300, 401}}),
      row(
          "permute",
          [](const Tensor& x) {
            return x.permute({2, 0, 1});
          },
          [](const Array& x) {
            return gather(x, {x.sizes[2], x.sizes[0], x.sizes[1]}, [](const Index& i) {
              return Index{i[1], i[2], i[0]};
            });
          }),
      row(
          "expand",
          [](const Tensor& x) {
            return x.expand({40, -1, 4});
          },
          [](const Array& x) {
            return gather(x, {40, x.sizes[0], 4}, [](const Index& i) { return Index{i[1], 0}; });
          },
          {.cases = {{3, 1}, {0, 1}}, .large = {20000, 1}}),
      row(
          "squeeze", [](const Tensor& x) { return x.squeeze(); },
          [](const Array& x) { return reshaped(x, {x.sizes[1]}); },
          {.cases = {{1, 3, 1}, {1, 0, 1}}, .large = {1, 70000, 1}}),
      row(
          "squeeze-dim", [](const Tensor& x) { return x.squeeze(0); },
          [](const Array& x) {
            return reshaped(x, {x.sizes[1], 1});
          },
          {.cases = {{1, 3, 1}, {1, 0, 1}}, .large = {1, 70000, 1}}),
      row(
          "unsqueeze", [](const Tensor& x) { return x.unsqueeze(-1); },
          [](const Array& x) {
            return reshaped(x, {x.sizes[0], x.sizes[1], x.sizes[2], 1});
          }),
      row(
          "contiguous", [](const Tensor& x) { return x.transpose(0, 1).contiguous(); },
          [](const Array& x) {
            return gather(x, {x.sizes[1], x.sizes[0], x.sizes[2]}, [](const Index& i) {
              return Index{i[1], i[0], i[2]};
            });
          }),
      row(
          "contiguous-channels-last",
          [](const Tensor& x) { return x.contiguous(MemoryFormat::kChannelsLast); },
          [](const Array& x) { return x; },
          {.cases = {{2, 3, 4, 5}, {0, 3, 4, 5}, {2, 0, 4, 5}}, .large = {9, 33, 20, 21}}),
      row(
          "clone", [](const Tensor& x) { return x.clone(); }, [](const Array& x) { return x; }),
      row(
          "to", [](const Tensor& x) { return x.to(DType::kFloat64); }, [](const Array& x) { return x; }),
      row(
          "cpu", [](const Tensor& x) { return x.cpu(); }, [](const Array& x) { return x; }),
  };
  rows.push_back({"cat",
                  [](In in) {
                    return cat({in[0], in[1], in[2]}, 1);
                  },
                  [](Arrays in) { return joined(in, 1); },
                  {{{{2, 3}}, {{2, 1}}, {{2, 4}}},
                   {{{2, 0}}, {{2, 1}}, {{2, 4}}},
                   {{{3, 2, 2}}, {{3, 5, 2}}, {{3, 1, 2}}}},
                  Takes::kAll,
                  true,
                  0,
                  {{{300, 200}}, {{300, 33}}, {{300, 150}}}});
  rows.push_back({"stack",
                  [](In in) {
                    return stack({in[0], in[1]}, -1);
                  },
                  [](Arrays in) {
                    std::vector<Array> parts(in.begin(), in.end());
                    for (Array& part : parts) part.sizes.push_back(1);
                    return joined(parts, parts[0].sizes.size() - 1);
                  },
                  {{{{2, 3}}, {{2, 3}}}, {{{}}, {{}}}, {{{0, 2}}, {{0, 2}}}},
                  Takes::kAll,
                  true,
                  0,
                  {{{300, 201}}, {{300, 201}}}});
  rows.push_back({"index_select",
                  [](In in) { return index_select(in[0], 1, in[1]); },
                  [](Arrays in) {
                    Index sizes = in[0].sizes;
                    sizes[1] = in[1].numel();
                    return gather(in[0], sizes, [&](const Index& i) {
                      Index from = i;
                      from[1] = static_cast<std::int64_t>(in[1].at(i[1]));
                      return from;
                    });
                  },
                  {{{{2, 3, 4}}, {{7}, Values::kIndex, 3}},
                   {{{5, 4}}, {{3}, Values::kIndex, 4}},
                   {{{2, 3}}, {{0}, Values::kIndex, 3}}},
                  Takes::kAll,
                  true,
                  0,
                  {{{40, 300, 33}}, {{700}, Values::kIndex, 300}}});
  return rows;
}

}  // namespace tutti::testing
