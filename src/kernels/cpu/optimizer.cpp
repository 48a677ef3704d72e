// SPDX-License-Identifier: Apache-2.0
// Optimizers over many arrays in one pass. The arrays are looked at as one long range that is cut into chunks
// of equal size, whatever the arrays' borders: a thousand small arrays are one chunk, a large one many.
//
// Formulas: torch/optim/sgd.py and adam.py. eps is added after the bias-corrected square root; amsgrad keeps
// the greatest of the uncorrected averages. f16 and bf16 arrays are computed in f32.
#include <algorithm>
#include <cmath>

#include "core/parallel_for.hpp"
#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/isa/optimizer.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

constexpr std::int64_t kChunk = 65536;
constexpr std::int64_t kMaxChunks = 1024;

struct Plan {
  std::int64_t total = 0;
  std::int64_t chunk = kChunk;  // depends on the sizes alone

  explicit Plan(const tutti_tensor_list& list) {
    for (std::int64_t i = 0; i < list.count; ++i) total += list.numels[i];
    chunk = std::max(kChunk, (total + kMaxChunks - 1) / kMaxChunks);
  }
};

// body(array, begin, count) for the pieces of arrays in [begin, end) of the long range.
template <class Body>
void for_each_array(const tutti_tensor_list& list, std::int64_t begin, std::int64_t end, const Body& body) {
  std::int64_t array = 0;
  std::int64_t start = 0;
  while (begin >= start + list.numels[array]) start += list.numels[array++];
  while (begin < end) {
    const std::int64_t piece_end = std::min(end, start + list.numels[array]);
    if (piece_end > begin) body(array, begin - start, piece_end - begin);
    begin = std::max(begin, piece_end);
    start += list.numels[array++];
  }
}

tutti_status check_dtype(const char* kernel, const tutti_tensor_list& list) {
  if (is_floating(list.dtype)) return TUTTI_OK;
  return fail(TUTTI_UNSUPPORTED, kernel, ": wanted arrays of a floating dtype, given ",
              dtype_text(list.dtype));
}

char* element(void* const* arrays, std::int64_t array, std::int64_t index, std::int64_t size) {
  return arrays == nullptr ? nullptr : static_cast<char*>(arrays[array]) + index * size;
}

// update(arrays, count) on all pieces; half-precision arrays come as f32 blocks.
template <class Update>
void for_each_piece_of(const tutti_tensor_list& list, const Update& update) {
  const Plan plan(list);
  const std::int64_t size = element_size(list.dtype);
  const bool half = compute_dtype(list.dtype) != list.dtype;
  const ConvertLoops& convert = convert_loops();
  parallel_for(0, plan.total, plan.chunk, [&](std::int64_t chunk_begin, std::int64_t chunk_end) {
    for_each_array(
        list, chunk_begin, chunk_end, [&](std::int64_t array, std::int64_t begin, std::int64_t count) {
          char* operands[5] = {
              element(list.params, array, begin, size), element(list.grads, array, begin, size),
              element(list.state1, array, begin, size), element(list.state2, array, begin, size),
              element(list.state3, array, begin, size)};
          if (!half) {
            update(OptimizerArrays{operands[0], operands[1], operands[2], operands[3], operands[4]}, count);
            return;
          }
          alignas(64) float blocks[5][kBlock];
          for (std::int64_t i = 0; i < count; i += kBlock) {
            const std::int64_t n = std::min(kBlock, count - i);
            for (int k = 0; k < 5; ++k) {
              if (operands[k] != nullptr)
                load_block(convert, blocks[k], list.dtype, operands[k] + i * size, size, n);
            }
            update(OptimizerArrays{blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]}, n);
            for (const int k : {0, 2, 3, 4}) {
              if (operands[k] != nullptr)
                store_block(convert, operands[k] + i * size, size, list.dtype, blocks[k], n);
            }
          }
        });
  });
}

int loop_index(const tutti_tensor_list& list) { return list.dtype == TUTTI_F64 ? 1 : 0; }

}  // namespace

tutti_status sgd(const tutti_sgd* call) noexcept {
  return guarded([call] {
    if (const tutti_status status = check_dtype("sgd", call->list); status != TUTTI_OK) return status;
    const bool has_momentum = call->momentum != 0.0 && call->list.state1 != nullptr;
    const SgdConstants constants{call->lr,
                                 call->momentum,
                                 1.0 - call->dampening,
                                 call->weight_decay,
                                 call->maximize != 0 ? -1.0 : 1.0,
                                 has_momentum,
                                 call->first_step != 0,
                                 call->nesterov != 0};
    const auto loop = optimizer_loops().sgd[loop_index(call->list)];
    for_each_piece_of(call->list, [&](const OptimizerArrays& arrays, std::int64_t count) {
      loop(arrays, count, constants);
    });
    return TUTTI_OK;
  });
}

tutti_status adam(const tutti_adam* call) noexcept {
  return guarded([call] {
    if (const tutti_status status = check_dtype("adam", call->list); status != TUTTI_OK) return status;
    const double step = static_cast<double>(call->step);
    const bool decoupled = call->decoupled != 0;
    AdamConstants constants{};
    constants.beta1 = call->beta1;
    constants.beta2 = call->beta2;
    constants.eps = call->eps;
    constants.sign = call->maximize != 0 ? -1.0 : 1.0;
    constants.step_size = call->lr / (1.0 - std::pow(call->beta1, step));
    constants.inverse_sqrt_bias = 1.0 / std::sqrt(1.0 - std::pow(call->beta2, step));
    constants.weight_decay = decoupled ? 0.0 : call->weight_decay;
    constants.keep = decoupled ? 1.0 - call->lr * call->weight_decay : 1.0;
    constants.amsgrad = call->amsgrad != 0;
    const auto loop = optimizer_loops().adam[loop_index(call->list)];
    for_each_piece_of(call->list, [&](const OptimizerArrays& arrays, std::int64_t count) {
      loop(arrays, count, constants);
    });
    return TUTTI_OK;
  });
}

tutti_status list_norm(const tutti_list_norm* call) noexcept {
  return guarded([call] {
    const tutti_tensor_list& list = call->list;
    if (const tutti_status status = check_dtype("list_norm", list); status != TUTTI_OK) return status;
    const Plan plan(list);
    const std::int64_t size = element_size(list.dtype);
    const bool half = compute_dtype(list.dtype) != list.dtype;
    const auto loop = optimizer_loops().sum_of_squares[loop_index(list)];
    double partial[kMaxChunks + 1] = {};
    parallel_for(0, plan.total, plan.chunk, [&](std::int64_t chunk_begin, std::int64_t chunk_end) {
      double sum = 0.0;
      for_each_array(list, chunk_begin, chunk_end,
                     [&](std::int64_t array, std::int64_t begin, std::int64_t count) {
                       const char* values = element(list.params, array, begin, size);
                       if (!half) {
                         sum += loop(values, count);
                         return;
                       }
                       alignas(64) float block[kBlock];
                       for (std::int64_t i = 0; i < count; i += kBlock) {
                         const std::int64_t n = std::min(kBlock, count - i);
                         load_block(convert_loops(), block, list.dtype, values + i * size, size, n);
                         sum += loop(block, n);
                       }
                     });
      partial[chunk_begin / plan.chunk] = sum;
    });
    double total = 0.0;
    for (const double sum : partial) total += sum;
    *call->sum_of_squares = total;
    return TUTTI_OK;
  });
}

tutti_status list_scale(const tutti_list_scale* call) noexcept {
  return guarded([call] {
    tutti_tensor_list list = call->list;
    if (const tutti_status status = check_dtype("list_scale", list); status != TUTTI_OK) return status;
    list.grads = list.state1 = list.state2 = list.state3 = nullptr;
    const auto loop = optimizer_loops().scale[loop_index(list)];
    for_each_piece_of(list, [&](const OptimizerArrays& arrays, std::int64_t count) {
      loop(arrays.param, count, call->factor);
    });
    return TUTTI_OK;
  });
}

}  // namespace tutti::cpu
