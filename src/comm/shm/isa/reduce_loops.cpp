// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/isa/reduce_loops.hpp"

#include <type_traits>

#include "kernels/cpu/isa/half_lanes.hpp"

namespace tutti::comm::TUTTI_ISA {

extern const ReduceLoops kReduceLoops;

namespace {

using namespace cpu::TUTTI_ISA;  // the half conversions

// Accumulators of a block stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

struct BoolByte {
  std::uint8_t value;
};

template <class T>
struct Accumulator {
  using Type = T;
};
template <>
struct Accumulator<Float16Bits> {
  using Type = float;
};
template <>
struct Accumulator<BFloat16Bits> {
  using Type = float;
};
template <>
struct Accumulator<BoolByte> {
  using Type = std::uint8_t;
};

[[gnu::always_inline]] inline float load(BFloat16Bits x) { return bfloat16_to_float(x.bits); }
[[gnu::always_inline]] inline std::uint8_t load(BoolByte x) { return x.value != 0 ? 1 : 0; }
template <class T>
[[gnu::always_inline]] inline T load(T x) {
  return x;
}

// ---- operations on accumulators ---------------------------------------------------------------------------------------
// Integers wrap: the arithmetic is done without sign, in at least 32 bits.

template <class A>
using Unsigned = std::conditional_t<sizeof(A) == 8, std::uint64_t, std::uint32_t>;

struct Sum {
  template <class A>
  [[gnu::always_inline]] static A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<Unsigned<A>>(a) + static_cast<Unsigned<A>>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <class A>
  [[gnu::always_inline]] static A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<Unsigned<A>>(a) * static_cast<Unsigned<A>>(b));
    } else {
      return a * b;
    }
  }
};
// NaN of either side wins.
struct Max {
  template <class A>
  [[gnu::always_inline]] static A apply(A a, A b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Min {
  template <class A>
  [[gnu::always_inline]] static A apply(A a, A b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

// ---- blocks -------------------------------------------------------------------------------------------------------------

template <class T, class A>
[[gnu::always_inline]] inline void store_block(T* out, const A* values, std::int64_t count) {
  if constexpr (std::is_same_v<T, Float16Bits>) {
    floats_to_halves(out, values, count);
  } else if constexpr (std::is_same_v<T, BFloat16Bits>) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = BFloat16Bits{float_to_bfloat16(values[i])};
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = BoolByte{values[i]};
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = values[i];
  }
}

template <class T, class A>
[[gnu::always_inline]] inline void load_block(A* values, const T* in, std::int64_t count) {
  if constexpr (std::is_same_v<T, Float16Bits>) {
    halves_to_floats(values, in, count);
  } else {
    for (std::int64_t i = 0; i < count; ++i) values[i] = load(in[i]);
  }
}

template <class Op, class T, class A>
[[gnu::always_inline]] inline void combine_block(A* values, const T* in, std::int64_t count) {
  if constexpr (std::is_same_v<T, Float16Bits>) {
    alignas(64) float widened[kBlock];
    halves_to_floats(widened, in, count);
    for (std::int64_t i = 0; i < count; ++i) values[i] = Op::apply(values[i], widened[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) values[i] = Op::apply(values[i], load(in[i]));
  }
}

template <class T, class Out, class Op, bool kMean>
void reduce(void* const* outs, int out_count, const void* const* ins, int in_count, std::int64_t count,
            double divisor) {
  using A = typename Accumulator<T>::Type;
  alignas(64) A values[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = count - begin < kBlock ? count - begin : kBlock;
    load_block(values, static_cast<const T*>(ins[0]) + begin, length);
    for (int r = 1; r < in_count; ++r)
      combine_block<Op>(values, static_cast<const T*>(ins[r]) + begin, length);
    if constexpr (kMean) {
      const A by = static_cast<A>(divisor);
      for (std::int64_t i = 0; i < length; ++i) values[i] /= by;
    }
    for (int o = 0; o < out_count; ++o) store_block(static_cast<Out*>(outs[o]) + begin, values, length);
  }
}

// In the order of ReduceOp: sum, mean, max, min, product.
template <class T, class Out>
constexpr void fill(ReduceLoops::Reduce (&row)[kReduceOps]) {
  row[0] = &reduce<T, Out, Sum, false>;
  row[1] = nullptr;
  if constexpr (std::is_floating_point_v<typename Accumulator<T>::Type>) row[1] = &reduce<T, Out, Sum, true>;
  row[2] = &reduce<T, Out, Max, false>;
  row[3] = &reduce<T, Out, Min, false>;
  row[4] = &reduce<T, Out, Product, false>;
}

// In the order of DType.
constexpr ReduceLoops make_loops() {
  ReduceLoops loops{};
  fill<double, double>(loops.reduce[0]);
  fill<float, float>(loops.reduce[1]);
  fill<Float16Bits, Float16Bits>(loops.reduce[2]);
  fill<BFloat16Bits, BFloat16Bits>(loops.reduce[3]);
  fill<std::int64_t, std::int64_t>(loops.reduce[4]);
  fill<std::int32_t, std::int32_t>(loops.reduce[5]);
  fill<std::int16_t, std::int16_t>(loops.reduce[6]);
  fill<std::int8_t, std::int8_t>(loops.reduce[7]);
  fill<std::uint8_t, std::uint8_t>(loops.reduce[8]);
  fill<BoolByte, BoolByte>(loops.reduce[9]);
  // bool has two values: its sum is "any", its product "all".
  loops.reduce[9][0] = loops.reduce[9][2];
  loops.reduce[9][4] = loops.reduce[9][3];
  fill<Float16Bits, float>(loops.widen[0]);
  fill<BFloat16Bits, float>(loops.widen[1]);
  return loops;
}

}  // namespace

constexpr ReduceLoops kReduceLoops = make_loops();

}  // namespace tutti::comm::TUTTI_ISA
