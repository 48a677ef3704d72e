// SPDX-License-Identifier: Apache-2.0
// Inner loops of argmax and argmin.
#include "kernels/cpu/isa/lanes.hpp"
#include "kernels/cpu/isa/reduce_loops.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

// A NaN beats every number and the first one stays.
template <bool kSmallest, class V>
TUTTI_INLINE bool beats(V value, V best) {
  const bool better = kSmallest ? value < best : value > best;
  return (better | (value != value)) & (best == best);
}

template <class T>
struct ArgState {
  using State = int64_t;
  TUTTI_INLINE static State of(const T& value) { return static_cast<int64_t>(value); }
};
template <Floating T>
struct ArgState<T> {
  using State = double;
  TUTTI_INLINE static State of(const T& value) { return to_double(value); }
};

template <class T, bool kSmallest>
void arg_columns(const void* in, int64_t rows, int64_t row_stride, int64_t n, int64_t stride, int64_t first,
                 void* states, int64_t* positions) {
  using A = ArgState<T>;
  const T* data = static_cast<const T*>(in);
  auto* best = static_cast<typename A::State*>(states);
  for (int64_t r = 0; r < rows; ++r, data += row_stride) {
    for (int64_t c = 0; c < n; ++c) {
      const typename A::State value = A::of(data[c * stride]);
      const bool better = beats<kSmallest>(value, best[c]);
      best[c] = better ? value : best[c];
      positions[c] = better ? first + r : positions[c];
    }
  }
}

template <class T>
int64_t find_value(const void* in, int64_t n, int64_t stride, const void* state) {
  using A = ArgState<T>;
  using State = typename A::State;
  const T* data = static_cast<const T*>(in);
  const State wanted = *static_cast<const State*>(state);
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = n - begin < kBlock ? n : begin + kBlock;
    int found = 0;  // without a branch an element, so that the block vectorises
    for (int64_t i = begin; i < end; ++i) {
      const State value = A::of(data[i * stride]);
      found |= (value == wanted) | ((value != value) & (wanted != wanted));
    }
    if (found == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      const State value = A::of(data[i * stride]);
      if (value == wanted || (value != value && wanted != wanted)) return i;
    }
  }
  return n;
}

template <class... Ts>
constexpr ArgReduceLoops make_loops() {
  return {{{arg_columns<Ts, false>...}, {arg_columns<Ts, true>...}}, {find_value<Ts>...}};
}

}  // namespace

constinit const ArgReduceLoops kArgReduceLoops =
    make_loops<double, float, Half, BFloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>();

}  // namespace tutti::cpu::TUTTI_ISA
