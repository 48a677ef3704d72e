// SPDX-License-Identifier: Apache-2.0
// Pooling: checks, images brought into N, H, W, C order, and rows dealt to the team.
#include <algorithm>

#include "core/parallel_for.hpp"
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/isa/pool2d_loops.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

using onednn::Purpose;

namespace {

constexpr std::int64_t kLargestSmallWindow = 255;  // its places and "none" fit u8
constexpr std::int64_t kChunk = 1 << 14;           // elements of x worth a chunk

bool shapes_fit(const tutti_pool2d& call) {
  const tutti_view &x = call.x, &y = call.y;
  if (x.ndim != 4 || y.ndim != 4 || x.sizes[0] != y.sizes[0] || x.sizes[1] != y.sizes[1]) return false;
  for (int d = 0; d < 2; ++d) {
    if (call.kernel[d] < 1 || call.stride[d] < 1 || call.padding[d] < 0 || call.dilation[d] < 1) return false;
    if (call.padding[d] > call.kernel[d] / 2) return false;
    // Each window begins inside the image or its left padding, so that none is empty.
    if (y.sizes[2 + d] > 0 && (y.sizes[2 + d] - 1) * call.stride[d] >= x.sizes[2 + d] + call.padding[d])
      return false;
  }
  return true;
}

bool average_fits(const tutti_pool2d& call) { return call.dilation[0] == 1 && call.dilation[1] == 1; }

bool indices_fit(const tutti_pool2d& call) {
  const std::int64_t window = static_cast<std::int64_t>(call.kernel[0]) * call.kernel[1];
  return call.indices.dtype == (window <= kLargestSmallWindow ? TUTTI_U8 : TUTTI_I32) &&
         same_sizes(call.indices, call.y);
}

void check(const tutti_pool2d& call, const char* name, bool fits) {
  if (!shapes_fit(call) || !fits) {
    throw KernelError(
        TUTTI_INVALID,
        concat(name, ": sizes do not fit: x ", describe(call.x), ", y ", describe(call.y), ", kernel ",
               call.kernel[0], "x", call.kernel[1], ", stride ", call.stride[0], "x", call.stride[1],
               ", padding ", call.padding[0], "x", call.padding[1], ", dilation ", call.dilation[0], "x",
               call.dilation[1], call.indices.data ? ", indices " + describe(call.indices) : std::string()));
  }
  if (!is_floating(call.x.dtype) || call.x.dtype != call.y.dtype) {
    throw KernelError(TUTTI_UNSUPPORTED, concat(name, ": wanted x and y of one floating dtype, given x ",
                                                dtype_text(call.x.dtype), ", y ", dtype_text(call.y.dtype)));
  }
}

PoolShape shape_of(const tutti_pool2d& call) {
  PoolShape shape{};
  shape.c = call.x.sizes[1], shape.h = call.x.sizes[2], shape.w = call.x.sizes[3];
  shape.oh = call.y.sizes[2], shape.ow = call.y.sizes[3];
  for (int d = 0; d < 2; ++d) {
    shape.kernel[d] = call.kernel[d];
    shape.stride[d] = call.stride[d];
    shape.padding[d] = call.padding[d];
    shape.dilation[d] = call.dilation[d];
  }
  shape.include_padding = call.count_include_pad != 0;
  shape.divisor = call.divisor_override;
  shape.relu_gradient = call.relu_gradient != 0;
  return shape;
}

// Runs loop over `rows` rows in chunks that read or write about kChunk elements of x.
template <class Rows>
void run_rows(const PoolShape& shape, std::int64_t rows, std::int64_t rows_of_x, void (*loop)(const Rows&),
              const Rows& all) {
  const std::int64_t elements = std::max<std::int64_t>(1, rows_of_x * shape.w * shape.c);
  parallel_for(0, rows, std::max<std::int64_t>(1, kChunk / elements),
               [&](std::int64_t begin, std::int64_t end) {
                 Rows part = all;
                 part.begin = begin;
                 part.end = end;
                 loop(part);
               });
}

void max_forward(const tutti_pool2d& call) {
  check(call, "max_pool2d", indices_fit(call));
  if (numel(call.y) == 0) return;
  const PoolShape shape = shape_of(call);
  const tutti_view x = channels_last_input(call.x, call.x.dtype, Purpose::kLeft);
  const tutti_view y = channels_last_result(call.y, call.y.dtype, Purpose::kResult);
  const tutti_view indices = channels_last_result(call.indices, call.indices.dtype, Purpose::kRight);
  run_rows(shape, call.y.sizes[0] * shape.oh, shape.stride[0],
           pool_loops().max_forward[call.x.dtype][call.indices.dtype != TUTTI_U8],
           MaxPoolRows{&shape, x.data, y.data, indices.data, 0, 0});
  store_result(call.y, y);
  store_result(call.indices, indices);
}

void max_backward(const tutti_pool2d& call) {
  check(call, "max_pool2d_backward", indices_fit(call));
  if (numel(call.x) == 0) return;
  const PoolShape shape = shape_of(call);
  const tutti_view y = channels_last_input(call.y, call.y.dtype, Purpose::kLeft);
  const tutti_view indices = channels_last_input(call.indices, call.indices.dtype, Purpose::kRight);
  const tutti_view x = channels_last_result(call.x, call.x.dtype, Purpose::kResult);
  run_rows(shape, call.x.sizes[0] * shape.h, 1,
           pool_loops().max_backward[call.x.dtype][call.indices.dtype != TUTTI_U8],
           MaxPoolRows{&shape, y.data, x.data, indices.data, 0, 0});
  store_result(call.x, x);
}

void average_forward(const tutti_pool2d& call) {
  check(call, "avg_pool2d", average_fits(call));
  if (numel(call.y) == 0) return;
  const PoolShape shape = shape_of(call);
  const tutti_view x = channels_last_input(call.x, call.x.dtype, Purpose::kLeft);
  const tutti_view y = channels_last_result(call.y, call.y.dtype, Purpose::kResult);
  run_rows(shape, call.y.sizes[0] * shape.oh, shape.stride[0], pool_loops().average_forward[call.x.dtype],
           AveragePoolRows{&shape, x.data, y.data, 0, 0});
  store_result(call.y, y);
}

void average_backward(const tutti_pool2d& call) {
  check(call, "avg_pool2d_backward", average_fits(call));
  if (numel(call.x) == 0) return;
  const PoolShape shape = shape_of(call);
  const tutti_view y = channels_last_input(call.y, call.y.dtype, Purpose::kLeft);
  const tutti_view x = channels_last_result(call.x, call.x.dtype, Purpose::kResult);
  run_rows(shape, call.x.sizes[0] * shape.h, 1, pool_loops().average_backward[call.x.dtype],
           AveragePoolRows{&shape, y.data, x.data, 0, 0});
  store_result(call.x, x);
}

}  // namespace

tutti_status max_pool2d_forward(const tutti_pool2d* call) noexcept {
  return guarded([&] { max_forward(*call); });
}
tutti_status max_pool2d_backward(const tutti_pool2d* call) noexcept {
  return guarded([&] { max_backward(*call); });
}
tutti_status avg_pool2d_forward(const tutti_pool2d* call) noexcept {
  return guarded([&] { average_forward(*call); });
}
tutti_status avg_pool2d_backward(const tutti_pool2d* call) noexcept {
  return guarded([&] { average_backward(*call); });
}

}  // namespace tutti::cpu
