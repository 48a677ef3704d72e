// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/isa/reduce_loops.hpp"

#include <cstddef>
#include <type_traits>

#include "kernels/cpu/isa/half_lanes.hpp"

namespace tutti::comm::TUTTI_ISA {

extern const ReduceLoops kReduceLoops;

namespace {

using namespace cpu::TUTTI_ISA;  // the half conversions

// Elements. Few, so that the processor already reads the next block while it writes this one, and a line that another core
// has written comes from its cache once, to be read and overwritten.
constexpr std::int64_t kBlock = 64;

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
[[gnu::always_inline]] inline void reduce_block(void* const* outs, int out_count, const void* const* ins,
                                                int in_count, std::int64_t begin, std::int64_t length,
                                                double divisor) {
  using A = typename Accumulator<T>::Type;
  alignas(64) A values[kBlock];
  load_block(values, static_cast<const T*>(ins[0]) + begin, length);
  for (int r = 1; r < in_count; ++r) combine_block<Op>(values, static_cast<const T*>(ins[r]) + begin, length);
  if constexpr (kMean) {
    const A by = static_cast<A>(divisor);
    for (std::int64_t i = 0; i < length; ++i) values[i] /= by;
  }
  for (int o = 0; o < out_count; ++o) store_block(static_cast<Out*>(outs[o]) + begin, values, length);
}

// Two inputs into two outputs, as two ranks have them: nothing but the block's result passes through memory of its own.
// Returns how many elements, in whole blocks, it has done.
template <class T, class Out, class Op, bool kMean>
[[gnu::always_inline]] inline std::int64_t reduce_pair(void* const* outs, const void* const* ins,
                                                       std::int64_t count, double divisor) {
  using A = typename Accumulator<T>::Type;
  const auto* a = static_cast<const T*>(ins[0]);
  const auto* b = static_cast<const T*>(ins[1]);
  auto* first = static_cast<Out*>(outs[0]);
  auto* second = static_cast<Out*>(outs[1]);
  std::int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    alignas(64) A values[kBlock];
    for (std::int64_t i = 0; i < kBlock; ++i)
      values[i] = Op::apply(static_cast<A>(load(a[begin + i])), static_cast<A>(load(b[begin + i])));
    if constexpr (kMean) {
      const A by = static_cast<A>(divisor);
      for (std::int64_t i = 0; i < kBlock; ++i) values[i] /= by;
    }
    store_block(first + begin, values, kBlock);
    store_block(second + begin, values, kBlock);
  }
  return begin;
}

template <class T, class Out, class Op, bool kMean>
void reduce(void* const* outs, int out_count, const void* const* ins, int in_count, std::int64_t count,
            double divisor) {
  std::int64_t begin = 0;
  if constexpr (!std::is_same_v<T, Float16Bits>) {
    if (in_count == 2 && out_count == 2) begin = reduce_pair<T, Out, Op, kMean>(outs, ins, count, divisor);
  }
  for (; begin + kBlock <= count; begin += kBlock)
    reduce_block<T, Out, Op, kMean>(outs, out_count, ins, in_count, begin, kBlock, divisor);
  if (begin < count)
    reduce_block<T, Out, Op, kMean>(outs, out_count, ins, in_count, begin, count - begin, divisor);
}

struct CacheLine {
  std::uint64_t words[8];
};

// Line by line: another core has written the stage, and one trip between the caches brings a line both to be read and to be
// overwritten.
void exchange(void* stage, void* done, std::size_t done_bytes, const void* next, std::size_t next_bytes) {
  auto* lines = static_cast<std::byte*>(stage);
  auto* to = static_cast<std::byte*>(done);
  const auto* from = static_cast<const std::byte*>(next);
  const std::size_t both = done_bytes < next_bytes ? done_bytes : next_bytes;
  std::size_t at = 0;
  for (; at + sizeof(CacheLine) <= both; at += sizeof(CacheLine)) {
    CacheLine out;
    CacheLine in;
    __builtin_memcpy(&out, lines + at, sizeof(CacheLine));
    __builtin_memcpy(&in, from + at, sizeof(CacheLine));
    __builtin_memcpy(to + at, &out, sizeof(CacheLine));
    __builtin_memcpy(lines + at, &in, sizeof(CacheLine));
  }
  if (done_bytes > at) __builtin_memcpy(to + at, lines + at, done_bytes - at);
  if (next_bytes > at) __builtin_memcpy(lines + at, from + at, next_bytes - at);
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
  loops.exchange = &exchange;
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
