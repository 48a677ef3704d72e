// SPDX-License-Identifier: Apache-2.0
#include "core/parallel_for.hpp"
#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {

tutti_status fill(const tutti_fill* call) noexcept {
  return guarded([call] {
    const std::int64_t count = numel(call->out);
    if (count == 0) return;
    const ScalarElement value = make_scalar(call->value, call->out.dtype);
    const std::int64_t size = element_size(call->out.dtype);
    const ConvertLoops& loops = convert_loops();
    const auto fill_contiguous = loops.fill[size_index(size)];
    if (count <= kGrain && is_contiguous(call->out)) {
      fill_contiguous(call->out.data, value.bytes, count);
      return;
    }
    const StridedLoop<1> loop = coalesce<1>({&call->out});
    Block block;
    const bool contiguous = loop.inner_stride(0) == size;
    if (!contiguous) fill_contiguous(block.bytes, value.bytes, kBlock);
    parallel_for(0, count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for_each_piece(loop, begin, end, [&](char* const* data, std::int64_t n) {
        if (contiguous) {
          fill_contiguous(data[0], value.bytes, n);
          return;
        }
        for (std::int64_t i = 0; i < n; i += kBlock) {
          const std::int64_t m = n - i < kBlock ? n - i : kBlock;
          loops.scatter[size_index(size)](data[0] + i * loop.inner_stride(0), loop.inner_stride(0),
                                          block.bytes, m);
        }
      });
    });
  });
}

}  // namespace tutti::cpu
