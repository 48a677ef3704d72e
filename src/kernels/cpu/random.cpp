// SPDX-License-Identifier: Apache-2.0
// Random numbers. Element i in logical order depends on i and the Philox state alone. How many 32-bit numbers
// the caller must reserve: one an element, normal: rounded up to a pair; f64 uniform and normal and i64
// integers: twice that.
//
// Half-precision uniform numbers have as many bits as the dtype's significand (11, 8), so that none is
// rounded up to the upper bound. Integers are floor(bits * range / 2^32), or 2^64 with i64.
#include <cmath>
#include <limits>

#include "kernels/cpu/isa/random.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/logical_blocks.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

struct alignas(64) Numbers {
  std::uint32_t words[2 * kBlock + 32];
  const std::uint64_t* pairs() const { return reinterpret_cast<const std::uint64_t*>(words); }
};

// Numbers of elements [first, first + count), `each` an element; first is a multiple of four.
void draw(Numbers& numbers, const tutti_philox& philox, std::int64_t first, std::int64_t count, int each) {
  const std::int64_t words = (count + 1) / 2 * 2 * each;
  const PhiloxCounters at{philox.seed, philox.stream,
                          philox.offset + static_cast<std::uint64_t>(first * each / 4)};
  random_loops().bits(numbers.words, at, (words + 3) / 4);
}

// Elements of the compute dtype f32 or f64.
void draw_floating(const tutti_random* call, std::int64_t first, std::int64_t count, Block& block) {
  const RandomLoops& loops = random_loops();
  Numbers numbers;
  const bool wide = call->out.dtype == TUTTI_F64;
  draw(numbers, call->philox, first, count, wide ? 2 : 1);
  float* f32 = reinterpret_cast<float*>(block.bytes);
  double* f64 = reinterpret_cast<double*>(block.bytes);
  const float a = static_cast<float>(call->a);
  const float b = static_cast<float>(call->b);
  if (call->kind == TUTTI_NORMAL) {
    if (wide) {
      loops.normal_f64(f64, numbers.pairs(), count, call->a, call->b);
    } else {
      loops.normal_f32(f32, numbers.words, count, a, b);
    }
  } else if (wide) {
    const double top = call->b > call->a ? std::nextafter(call->b, call->a) : call->b;
    loops.uniform_f64(f64, numbers.pairs(), count, call->a, call->b, top);
  } else {
    const int shift = call->out.dtype == TUTTI_F32 ? 8 : call->out.dtype == TUTTI_F16 ? 21 : 24;
    const float top = b > a ? std::nextafter(b, a) : b;
    loops.uniform_f32(f32, numbers.words, count, a, b, top, shift);
  }
}

// Elements as i64 (randint) or bool (bernoulli).
void draw_integers(const tutti_random* call, std::int64_t first, std::int64_t count, Block& block) {
  const RandomLoops& loops = random_loops();
  Numbers numbers;
  if (call->kind == TUTTI_BERNOULLI) {
    bool* out = reinterpret_cast<bool*>(block.bytes);
    const auto threshold = static_cast<std::uint64_t>(std::ldexp(call->a, 32));
    draw(numbers, call->philox, first, count, 1);
    if (threshold == 0) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = false;
    } else {
      loops.at_most(out, numbers.words, count, static_cast<std::uint32_t>(threshold - 1));
    }
    return;
  }
  std::int64_t* out = reinterpret_cast<std::int64_t*>(block.bytes);
  const std::uint64_t range = static_cast<std::uint64_t>(call->high) - static_cast<std::uint64_t>(call->low);
  if (call->out.dtype == TUTTI_I64) {
    draw(numbers, call->philox, first, count, 2);
    loops.integers_64(out, numbers.pairs(), count, call->low, range);
  } else {
    draw(numbers, call->philox, first, count, 1);
    loops.integers_32(out, numbers.words, count, call->low, range);
  }
}

tutti_status check(const tutti_random* call) {
  const std::int32_t dtype = call->out.dtype;
  switch (call->kind) {
    case TUTTI_UNIFORM:
    case TUTTI_NORMAL:
      if (!is_floating(dtype)) {
        return fail(TUTTI_UNSUPPORTED, "random: uniform and normal numbers need a floating dtype, given ",
                    dtype_text(dtype));
      }
      return TUTTI_OK;
    case TUTTI_BERNOULLI:
      if (!(call->a >= 0.0 && call->a <= 1.0)) {
        return fail(TUTTI_INVALID, "bernoulli: wanted a probability in [0, 1], given ", call->a);
      }
      return TUTTI_OK;
    case TUTTI_RANDINT: {
      const std::uint64_t range =
          static_cast<std::uint64_t>(call->high) - static_cast<std::uint64_t>(call->low);
      if (call->high <= call->low || (dtype != TUTTI_I64 && range > (std::uint64_t{1} << 32U))) {
        return fail(TUTTI_INVALID,
                    "randint: wanted low < high (at most 2^32 apart, but for int64), given low ", call->low,
                    " and high ", call->high, " for ", dtype_text(dtype));
      }
      return TUTTI_OK;
    }
    default: return fail(TUTTI_UNSUPPORTED, "random: there is no distribution number ", call->kind);
  }
}

void run(const tutti_random* call) {
  const std::int32_t stored = compute_dtype(call->out.dtype);
  const bool floating = call->kind == TUTTI_UNIFORM || call->kind == TUTTI_NORMAL;
  const std::int32_t drawn = floating ? stored : call->kind == TUTTI_BERNOULLI ? TUTTI_BOOL : TUTTI_I64;
  const LogicalBlocks<1> blocks({&call->out});
  blocks.for_each([&](std::int64_t first, std::int64_t count) {
    Block values;
    if (floating) {
      draw_floating(call, first, count, values);
    } else {
      draw_integers(call, first, count, values);
    }
    if (drawn == stored) {
      blocks.store(0, first, count, values.bytes);
      return;
    }
    Block converted;
    convert_loops().convert[stored][drawn](converted.bytes, values.bytes, count);
    blocks.store(0, first, count, converted.bytes);
  });
}

}  // namespace

tutti_status random(const tutti_random* call) noexcept {
  return guarded([call] {
    const tutti_status status = check(call);
    if (status == TUTTI_OK && numel(call->out) > 0) run(call);
    return status;
  });
}

}  // namespace tutti::cpu
