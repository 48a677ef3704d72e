// SPDX-License-Identifier: Apache-2.0
// Entry points of the CPU's kernels, named as in the table of backend/backend.h, which documents them.
#pragma once

#include "backend/backend.h"

namespace tutti::cpu {

// pointwise.cpp: one entry a functor, in the order of functors/list.hpp
const tutti_pointwise_function* pointwise_entries() noexcept;

// copy.cpp fill.cpp arange.cpp random.cpp dropout.cpp
tutti_status random(const tutti_random* call) noexcept;
tutti_status dropout(const tutti_dropout* call) noexcept;
tutti_status copy(const tutti_copy* call) noexcept;
tutti_status fill(const tutti_fill* call) noexcept;
tutti_status arange(const tutti_arange* call) noexcept;

// optimizer.cpp
tutti_status sgd(const tutti_sgd* call) noexcept;
tutti_status adam(const tutti_adam* call) noexcept;
tutti_status list_norm(const tutti_list_norm* call) noexcept;
tutti_status list_scale(const tutti_list_scale* call) noexcept;

// matmul, convolution and pooling
tutti_status matmul(const tutti_matmul* call) noexcept;
tutti_status conv2d_forward(const tutti_conv2d* call) noexcept;
tutti_status conv2d_backward_data(const tutti_conv2d* call) noexcept;
tutti_status conv2d_backward_weight(const tutti_conv2d* call) noexcept;
tutti_status max_pool2d_forward(const tutti_pool2d* call) noexcept;
tutti_status max_pool2d_backward(const tutti_pool2d* call) noexcept;
tutti_status avg_pool2d_forward(const tutti_pool2d* call) noexcept;
tutti_status avg_pool2d_backward(const tutti_pool2d* call) noexcept;

// reductions, softmax family, normalisation and indexing
tutti_status reduce(const tutti_reduce* call) noexcept;
tutti_status arg_reduce(const tutti_arg_reduce* call) noexcept;
tutti_status softmax_forward(const tutti_softmax* call) noexcept;
tutti_status softmax_backward(const tutti_softmax* call) noexcept;
tutti_status cross_entropy_forward(const tutti_cross_entropy* call) noexcept;
tutti_status cross_entropy_backward(const tutti_cross_entropy* call) noexcept;
tutti_status batch_norm_forward(const tutti_batch_norm* call) noexcept;
tutti_status batch_norm_backward(const tutti_batch_norm* call) noexcept;
tutti_status index_select(const tutti_index* call) noexcept;
tutti_status index_add(const tutti_index* call) noexcept;

// memory.cpp, stream.cpp
const tutti_memory_functions& memory_functions() noexcept;
const tutti_stream_functions& stream_functions() noexcept;

}  // namespace tutti::cpu
