// SPDX-License-Identifier: Apache-2.0
// Dropout: element i in logical order is zeroed if its Philox number is below p * 2^32, else scaled by 1 / (1 - p).
// A dropped element is 0 whatever it was, infinities and NaN included.
#include <cmath>

#include "kernels/cpu/isa/random.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/logical_blocks.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

// All dropped (p = 1) or none (p = 0): no numbers needed.
tutti_status drop_all(const tutti_dropout* call) {
  const tutti_fill zeros{call->stream, {0.0, 0}, call->out};
  return fill(&zeros);
}
tutti_status drop_none(const tutti_dropout* call) {
  if (call->out.data == call->in.data) return TUTTI_OK;
  const tutti_copy same{call->stream, call->out, call->in};
  return copy(&same);
}

void run(const tutti_dropout* call, std::uint64_t threshold) {
  const RandomLoops& loops = random_loops();
  const auto last = static_cast<std::uint32_t>(threshold - 1);
  const double scale = 1.0 / (1.0 - call->p);
  const bool wide = call->out.dtype == TUTTI_F64;
  const LogicalBlocks<2> blocks({&call->out, &call->in});
  blocks.for_each([&](std::int64_t first, std::int64_t count) {
    alignas(64) std::uint32_t bits[kBlock + 32];
    const PhiloxCounters at{call->philox.seed, call->philox.stream,
                            call->philox.offset + static_cast<std::uint64_t>(first / 4)};
    loops.bits(bits, at, (count + 3) / 4);
    Block values;
    const void* in = blocks.direct(1, first);
    if (in == nullptr) {
      blocks.load(1, first, count, values.bytes);
      in = values.bytes;
    }
    char* direct_out = blocks.direct(0, first);
    void* out = direct_out != nullptr ? static_cast<void*>(direct_out) : values.bytes;
    if (wide) {
      loops.drop_f64(static_cast<double*>(out), static_cast<const double*>(in), bits, count, last, scale);
    } else {
      loops.drop_f32(static_cast<float*>(out), static_cast<const float*>(in), bits, count, last,
                     static_cast<float>(scale));
    }
    if (direct_out == nullptr) blocks.store(0, first, count, values.bytes);
  });
}

}  // namespace

tutti_status dropout(const tutti_dropout* call) noexcept {
  return guarded([call] {
    if (!is_floating(call->out.dtype) || call->in.dtype != call->out.dtype) {
      return fail(TUTTI_UNSUPPORTED, "dropout: wanted one floating dtype for input and result, given ",
                  dtype_text(call->in.dtype), " and ", dtype_text(call->out.dtype));
    }
    if (!(call->p >= 0.0 && call->p <= 1.0)) {
      return fail(TUTTI_INVALID, "dropout: wanted a probability in [0, 1], given ", call->p);
    }
    if (numel(call->out) == 0) return TUTTI_OK;
    const auto threshold = static_cast<std::uint64_t>(std::ldexp(call->p, 32));
    if (threshold >= std::uint64_t{1} << 32U) return drop_all(call);
    if (threshold == 0) return drop_none(call);
    run(call, threshold);
    return TUTTI_OK;
  });
}

}  // namespace tutti::cpu
