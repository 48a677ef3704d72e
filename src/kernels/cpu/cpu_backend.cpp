// SPDX-License-Identifier: Apache-2.0
// The CPU's table of functions.
#include "backend/backend.h"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/functors/list.hpp"
#include "tutti/core/version.hpp"

namespace tutti::cpu {
namespace {

tutti_kernel_functions kernel_functions() noexcept {
  tutti_kernel_functions kernels{};
  kernels.pointwise = pointwise_entries();
  kernels.pointwise_count = functors::Pointwise::kSize;
  kernels.reduce = &reduce;
  kernels.arg_reduce = &arg_reduce;
  kernels.matmul = &matmul;
  kernels.conv2d_forward = &conv2d_forward;
  kernels.conv2d_backward_data = &conv2d_backward_data;
  kernels.conv2d_backward_weight = &conv2d_backward_weight;
  kernels.max_pool2d_forward = &max_pool2d_forward;
  kernels.max_pool2d_backward = &max_pool2d_backward;
  kernels.avg_pool2d_forward = &avg_pool2d_forward;
  kernels.avg_pool2d_backward = &avg_pool2d_backward;
  kernels.softmax_forward = &softmax_forward;
  kernels.softmax_backward = &softmax_backward;
  kernels.cross_entropy_forward = &cross_entropy_forward;
  kernels.cross_entropy_backward = &cross_entropy_backward;
  kernels.batch_norm_forward = &batch_norm_forward;
  kernels.batch_norm_backward = &batch_norm_backward;
  kernels.random = &random;
  kernels.dropout = &dropout;
  kernels.copy = &copy;
  kernels.fill = &fill;
  kernels.arange = &arange;
  kernels.index_select = &index_select;
  kernels.index_add = &index_add;
  kernels.sgd = &sgd;
  kernels.adam = &adam;
  kernels.list_norm = &list_norm;
  kernels.list_scale = &list_scale;
  return kernels;
}

}  // namespace
}  // namespace tutti::cpu

const tutti_backend* tutti_cpu_backend() {
  static const tutti_backend backend{TUTTI_BACKEND_VERSION,
                                     static_cast<std::int32_t>(sizeof(tutti_backend)),
                                     tutti::version(),
                                     "cpu",
                                     &tutti::cpu::error_text,
                                     tutti::cpu::memory_functions(),
                                     tutti::cpu::stream_functions(),
                                     tutti::cpu::kernel_functions()};
  return &backend;
}
