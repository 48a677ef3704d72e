// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/logical_blocks.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {

// Values are computed in f64 (floating dtypes) or i64 and converted as copy does.
tutti_status arange(const tutti_arange* call) noexcept {
  return guarded([call] {
    if (numel(call->out) == 0) return;
    const std::int32_t dtype = call->out.dtype;
    const bool floating = is_floating(dtype);
    const bool half = dtype == TUTTI_F16 || dtype == TUTTI_BF16;
    const std::int32_t computed = floating ? TUTTI_F64 : TUTTI_I64;
    const std::int32_t stored = compute_dtype(dtype);
    const LogicalBlocks<1> blocks({&call->out});
    blocks.for_each([&](std::int64_t first, std::int64_t count) {
      Block values;
      Block converted;
      if (floating) {
        double* out = reinterpret_cast<double*>(values.bytes);
        for (std::int64_t i = 0; i < count; ++i) {
          out[i] = call->start.f + static_cast<double>(first + i) * call->step.f;
          if (half) out[i] = tutti::detail::round_to_odd(out[i]);  // a float: the conversion to it is exact
        }
      } else {
        std::int64_t* out = reinterpret_cast<std::int64_t*>(values.bytes);
        // Unsigned: start may lie so far below 0 that the product alone has no place in 64 bits; the sum has.
        const auto start = static_cast<std::uint64_t>(call->start.i);
        const auto step = static_cast<std::uint64_t>(call->step.i);
        for (std::int64_t i = 0; i < count; ++i) {
          out[i] = static_cast<std::int64_t>(start + static_cast<std::uint64_t>(first + i) * step);
        }
      }
      const void* result = values.bytes;
      if (stored != computed) {
        convert_loops().convert[stored][computed](converted.bytes, values.bytes, count);
        result = converted.bytes;
      }
      blocks.store(0, first, count, result);
    });
  });
}

}  // namespace tutti::cpu
