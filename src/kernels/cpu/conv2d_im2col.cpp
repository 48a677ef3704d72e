// SPDX-License-Identifier: Apache-2.0
// Convolutions in f64 by the library's own matrix product on columns: for gradient checks, so simple rather than fast.
//
//   columns [k, p]: k = (channel of the group, kernel row, kernel column), p = (output row, output column)
//   y^T [p, o] = columns^T weight^T        grad columns = weight^T grad_y        grad weight = grad_y columns^T
#include <cstring>

#include "core/parallel_for.hpp"
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/workspace.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

namespace {

using onednn::Purpose;

struct Sizes {
  std::int64_t inputs, outputs;  // channels of a group
  std::int64_t depth, positions;
};

Sizes sizes_of(const Convolution& c) {
  const std::int64_t inputs = c.c / c.groups;
  return {inputs, c.o / c.groups, inputs * c.kh * c.kw, c.oh * c.ow};
}

// Calls body(position, pixel) for each output position whose window has the pixel under kernel element (i, j).
template <class Body>
void for_each_pixel(const Convolution& c, std::int64_t i, std::int64_t j, const Body& body) {
  for (std::int64_t row = 0; row < c.oh; ++row) {
    const std::int64_t h = row * c.stride[0] - c.padding[0] + i * c.dilation[0];
    if (h < 0 || h >= c.h) continue;
    for (std::int64_t column = 0; column < c.ow; ++column) {
      const std::int64_t w = column * c.stride[1] - c.padding[1] + j * c.dilation[1];
      if (w >= 0 && w < c.w) body(row * c.ow + column, h * c.w + w);
    }
  }
}

// Columns of one group of one image; x points at the group's first channel.
void image_to_columns(const Convolution& c, const Sizes& s, const double* x, double* columns) {
  parallel_for(0, s.depth, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      double* row = columns + k * s.positions;
      const double* channel = x + k / (c.kh * c.kw);
      std::memset(row, 0, static_cast<std::size_t>(s.positions) * sizeof(double));
      for_each_pixel(c, k / c.kw % c.kh, k % c.kw, [&](std::int64_t position, std::int64_t pixel) {
        row[position] = channel[pixel * c.c];
      });
    }
  });
}

// The adjoint: adds columns into x, channel by channel.
void columns_to_image(const Convolution& c, const Sizes& s, const double* columns, double* x) {
  const std::int64_t window = c.kh * c.kw;
  parallel_for(0, s.inputs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin * window; k < end * window; ++k) {
      const double* row = columns + k * s.positions;
      double* channel = x + k / window;
      for_each_pixel(c, k / c.kw % c.kh, k % c.kw, [&](std::int64_t position, std::int64_t pixel) {
        channel[pixel * c.c] += row[position];
      });
    }
  });
}

double* columns_space(const Sizes& s) {
  return static_cast<double*>(
      onednn::workspace(Purpose::kColumns, static_cast<std::size_t>(s.depth * s.positions) * sizeof(double)));
}

// The weight of one group as [outputs, depth]: contiguous, copied if it isn't.
const double* dense_weight(const Convolution& c) {
  const tutti_view& view = c.weight.view;
  return data_of<double>(is_contiguous(view) ? view : contiguous_copy(view, TUTTI_F64, Purpose::kRightSplit));
}

MatmulProblem product(std::int64_t m, std::int64_t n, std::int64_t k) {
  MatmulProblem problem;
  problem.dtype = problem.out_dtype = problem.bias_dtype = TUTTI_F64;
  problem.m = m, problem.n = n, problem.k = k;
  return problem;
}

MatrixView matrix(const double* data, std::int64_t row, std::int64_t column) {
  return {const_cast<double*>(data), row, column};
}

}  // namespace

void conv2d_im2col_forward(const Convolution& conv) {
  const Sizes s = sizes_of(conv);
  const double* weight = dense_weight(conv);
  double* columns = columns_space(s);
  for (std::int64_t i = 0; i < conv.n * conv.groups; ++i) {
    const std::int64_t image = i / conv.groups, group = i % conv.groups;
    image_to_columns(conv, s, static_cast<const double*>(conv.x) + image * conv.x_image() + group * s.inputs,
                     columns);
    MatmulProblem y = product(s.positions, s.outputs, s.depth);
    y.a = matrix(columns, 1, s.positions);
    y.b = matrix(weight + group * s.outputs * s.depth, 1, s.depth);
    y.out = matrix(static_cast<double*>(conv.y) + image * conv.y_image() + group * s.outputs, conv.o, 1);
    if (conv.bias) y.bias = static_cast<double*>(conv.bias) + group * s.outputs;
    y.epilogue = conv.epilogue;
    matmul_blocked(y);
  }
}

void conv2d_im2col_backward_data(const Convolution& conv) {
  const Sizes s = sizes_of(conv);
  const double* weight = dense_weight(conv);
  double* columns = columns_space(s);
  std::memset(conv.x, 0, static_cast<std::size_t>(conv.n * conv.x_image()) * sizeof(double));
  for (std::int64_t i = 0; i < conv.n * conv.groups; ++i) {
    const std::int64_t image = i / conv.groups, group = i % conv.groups;
    MatmulProblem gradient = product(s.depth, s.positions, s.outputs);
    gradient.a = matrix(weight + group * s.outputs * s.depth, 1, s.depth);
    gradient.b = matrix(static_cast<double*>(conv.y) + image * conv.y_image() + group * s.outputs, 1, conv.o);
    gradient.out = matrix(columns, s.positions, 1);
    matmul_blocked(gradient);
    columns_to_image(conv, s, columns,
                     static_cast<double*>(conv.x) + image * conv.x_image() + group * s.inputs);
  }
}

void conv2d_im2col_backward_weight(const Convolution& conv, const WeightGradients& out) {
  const Sizes s = sizes_of(conv);
  double* columns = columns_space(s);
  for (std::int64_t i = 0; i < conv.n * conv.groups; ++i) {
    const std::int64_t image = i / conv.groups, group = i % conv.groups;
    image_to_columns(conv, s, static_cast<const double*>(conv.x) + image * conv.x_image() + group * s.inputs,
                     columns);
    MatmulProblem gradient = product(s.outputs, s.depth, s.positions);
    gradient.a = matrix(static_cast<double*>(conv.y) + image * conv.y_image() + group * s.outputs, 1, conv.o);
    gradient.b = matrix(columns, 1, s.positions);
    gradient.out = matrix(static_cast<double*>(out.weight) + group * s.outputs * s.depth, s.depth, 1);
    gradient.accumulate = image > 0;
    matmul_blocked(gradient);
  }
  if (!out.bias) return;
  auto* bias = static_cast<double*>(out.bias);
  const auto* grad_y = static_cast<const double*>(conv.y);
  std::memset(bias, 0, static_cast<std::size_t>(conv.o) * sizeof(double));
  for (std::int64_t pixel = 0; pixel < conv.n * s.positions; ++pixel) {
    for (std::int64_t o = 0; o < conv.o; ++o) bias[o] += grad_y[pixel * conv.o + o];
  }
}

}  // namespace tutti::cpu
