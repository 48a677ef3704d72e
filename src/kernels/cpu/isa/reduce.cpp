// SPDX-License-Identifier: Apache-2.0
// Inner loops of reductions. Floating sums run in eight vectors of partial sums over blocks of 4,096 elements
// (rows) or in a vector a column over blocks of 128 rows; the blocks are added up in double. So the error of
// a float sum is that of about forty additions, and the order depends on the shape alone.
#include "kernels/cpu/isa/reduce_loops.hpp"

#include "kernels/cpu/isa/lanes.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

constexpr int64_t kRowBlock = 4096;
constexpr int64_t kShortRow = 12;
constexpr int64_t kColumnTile = 1024;
constexpr int64_t kColumnRows = 128;
constexpr int kUnroll = 8;

// An operation: map on each element, then reduce, which must be associative up to rounding.
struct Sum {
  static constexpr bool kVectorised = true;
  static constexpr double kIdentity = 0.0;
  static constexpr int64_t kIntegerIdentity = 0;
  template <class V>
  TUTTI_INLINE static V map(V x) {
    return x;
  }
  template <class V>
  TUTTI_INLINE static V reduce(V a, V b) {
    return a + b;
  }
};
struct SumSquares : Sum {
  template <class V>
  TUTTI_INLINE static V map(V x) {
    return x * x;
  }
};
struct Product : Sum {
  static constexpr bool kVectorised =
      false;  // in double: partial products of floats would over- and underflow
  [[maybe_unused]] static constexpr double kIdentity = 1.0;
  static constexpr int64_t kIntegerIdentity = 1;
  template <class V>
  TUTTI_INLINE static V reduce(V a, V b) {
    return a * b;
  }
};
struct Greatest : Sum {
  static constexpr double kIdentity = -__builtin_inf();
  static constexpr int64_t kIntegerIdentity = INT64_MIN;
  template <class V>
  TUTTI_INLINE static V reduce(V a, V b) {  // a NaN on either side stays
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Smallest : Sum {
  static constexpr double kIdentity = __builtin_inf();
  static constexpr int64_t kIntegerIdentity = INT64_MAX;
  template <class V>
  TUTTI_INLINE static V reduce(V a, V b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

// Integers wrap around like PyTorch's; unsigned arithmetic keeps that defined.
template <class Op>
TUTTI_INLINE int64_t step_integer(int64_t state, int64_t value) {
  const uint64_t a = static_cast<uint64_t>(state);
  const uint64_t b = static_cast<uint64_t>(value);
  if constexpr (Op::kIntegerIdentity == 0) {
    return static_cast<int64_t>(a + static_cast<uint64_t>(Op::map(b)));
  } else if constexpr (Op::kIntegerIdentity == 1) {
    return static_cast<int64_t>(a * b);
  } else {
    return Op::reduce(state, value);
  }
}

// ---- floating: vectors --------------------------------------------------------------------------------------------
template <class L, class Op>
TUTTI_INLINE double reduce_lanes(typename L::Vector value) {
  if constexpr (Op::kIdentity == 0.0) {
    return sum_lanes(value);
  } else {
    const auto join = [](auto a, auto b) { return Op::reduce(a, b); };
    return static_cast<double>(fold_lanes<typename L::Number, L::kWidth>(value, join));
  }
}

// At most kRowBlock elements.
template <class T, class Op>
TUTTI_INLINE double reduce_block(const T* data, int64_t n) {
  using L = Lanes<T>;
  using V = typename L::Vector;
  constexpr typename L::Number kFill = static_cast<typename L::Number>(Op::kIdentity);
  constexpr int64_t kStep = kUnroll * L::kWidth;
  V total = broadcast<V>(kFill);
  int64_t i = 0;
  if (n >= kStep) {
    V partial[kUnroll];
#pragma GCC unroll 8
    for (int u = 0; u < kUnroll; ++u) partial[u] = Op::map(L::load(data + u * L::kWidth));
    for (i = kStep; i + kStep <= n; i += kStep) {
#pragma GCC unroll 8
      for (int u = 0; u < kUnroll; ++u)
        partial[u] = Op::reduce(partial[u], Op::map(L::load(data + i + u * L::kWidth)));
    }
    total = Op::reduce(Op::reduce(Op::reduce(partial[0], partial[1]), Op::reduce(partial[2], partial[3])),
                       Op::reduce(Op::reduce(partial[4], partial[5]), Op::reduce(partial[6], partial[7])));
  }
  for (; i + L::kWidth <= n; i += L::kWidth) total = Op::reduce(total, Op::map(L::load(data + i)));
  if (i < n) total = Op::reduce(total, Op::map(L::load(data + i, n - i, kFill)));  // map keeps the identity
  return reduce_lanes<L, Op>(total);
}

// Too few elements for vectors: the rows themselves overlap in the pipeline.
template <class T, class Op>
TUTTI_INLINE double reduce_short_row(const T* data, int64_t n) {
  T total = static_cast<T>(Op::kIdentity);
  for (int64_t i = 0; i < n; ++i) total = Op::reduce(total, Op::map(data[i]));
  return static_cast<double>(total);
}

template <class T, class Op>
TUTTI_INLINE double reduce_row(const T* data, int64_t n) {
  if constexpr (sizeof(T) > 2) {
    if (n <= kShortRow) return reduce_short_row<T, Op>(data, n);
  }
  double total = Op::kIdentity;
  for (int64_t i = 0; i < n; i += kRowBlock) {
    total = Op::reduce(total, reduce_block<T, Op>(data + i, n - i < kRowBlock ? n - i : kRowBlock));
  }
  return total;
}

// Elements that lie apart are collected first.
template <class T, class Op>
[[gnu::noinline]] double reduce_spread_row(const T* data, int64_t n, int64_t stride) {
  constexpr int64_t kStage = 1024;
  T stage[kStage];
  double total = Op::kIdentity;
  for (int64_t begin = 0; begin < n; begin += kStage) {
    const int64_t count = n - begin < kStage ? n - begin : kStage;
    for (int64_t i = 0; i < count; ++i) stage[i] = data[(begin + i) * stride];
    total = Op::reduce(total, reduce_block<T, Op>(stage, count));
  }
  return total;
}

template <class T, class Op>
void rows_floating(const void* in, int64_t count, int64_t row_stride, int64_t n, int64_t stride,
                   void* states) {
  const T* data = static_cast<const T*>(in);
  double* state = static_cast<double*>(states);
  for (int64_t i = 0; i < count; ++i, data += row_stride) {
    const double row = stride == 1 ? reduce_row<T, Op>(data, n) : reduce_spread_row<T, Op>(data, n, stride);
    state[i] = Op::reduce(state[i], row);
  }
}

// One vector of columns of eight rows.
template <class T, class Op, class... Count>
TUTTI_INLINE typename Lanes<T>::Vector reduce_eight(const T* data, int64_t row_stride, Count... count) {
  using L = Lanes<T>;
  typename L::Vector v[kUnroll];
#pragma GCC unroll 8
  for (int u = 0; u < kUnroll; ++u) v[u] = Op::map(L::load(data + u * row_stride, count...));
  return Op::reduce(Op::reduce(Op::reduce(v[0], v[1]), Op::reduce(v[2], v[3])),
                    Op::reduce(Op::reduce(v[4], v[5]), Op::reduce(v[6], v[7])));
}

// At most kColumnRows rows and kColumnTile columns, eight rows at a time.
template <class T, class Op>
TUTTI_INLINE void columns_block(const T* data, int64_t rows, int64_t row_stride, int64_t n, double* state) {
  using L = Lanes<T>;
  using Number = typename L::Number;
  using V = typename L::Vector;
  using Own = Lanes<Number>;
  constexpr Number kFill = static_cast<Number>(Op::kIdentity);
  alignas(64) Number partial[kColumnTile];
  for (int64_t c = 0; c < n; c += L::kWidth) Own::store(partial + c, broadcast<V>(kFill));
  const int64_t whole = n - n % L::kWidth;
  int64_t r = 0;
  for (; r + kUnroll <= rows; r += kUnroll) {
    const T* group = data + r * row_stride;
    for (int64_t c = 0; c < whole; c += L::kWidth) {
      Own::store(partial + c, Op::reduce(Own::load(partial + c), reduce_eight<T, Op>(group + c, row_stride)));
    }
    if (whole < n) {
      const V rest = reduce_eight<T, Op>(group + whole, row_stride, n - whole, kFill);
      Own::store(partial + whole, Op::reduce(Own::load(partial + whole), rest));
    }
  }
  for (; r < rows; ++r) {
    const T* row = data + r * row_stride;
    for (int64_t c = 0; c < whole; c += L::kWidth) {
      Own::store(partial + c, Op::reduce(Own::load(partial + c), Op::map(L::load(row + c))));
    }
    if (whole < n) {
      const V rest = Op::map(L::load(row + whole, n - whole, kFill));
      Own::store(partial + whole, Op::reduce(Own::load(partial + whole), rest));
    }
  }
  for (int64_t c = 0; c < n; ++c) state[c] = Op::reduce(state[c], static_cast<double>(partial[c]));
}

template <class T, class Op>
[[gnu::noinline]] void columns_whole(const T* data, int64_t rows, int64_t row_stride, int64_t n,
                                     double* state) {
  for (int64_t c = 0; c < n; c += kColumnTile) {
    const int64_t count = n - c < kColumnTile ? n - c : kColumnTile;
    for (int64_t r = 0; r < rows; r += kColumnRows) {
      const int64_t block = rows - r < kColumnRows ? rows - r : kColumnRows;
      columns_block<T, Op>(data + r * row_stride + c, block, row_stride, count, state + c);
    }
  }
}

template <class T, class Op>
void columns_floating(const void* in, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                      void* states) {
  const T* data = static_cast<const T*>(in);
  double* state = static_cast<double*>(states);
  if (n > 1 && stride != 1) {
    for (int64_t c = 0; c < n; ++c) {
      state[c] = Op::reduce(state[c], reduce_spread_row<T, Op>(data + c * stride, rows, row_stride));
    }
    return;
  }
  constexpr int64_t kWide = 64;
  if (n < kWide / 2 && row_stride == n && rows >= 2 * (kWide / n)) {
    // Few columns: several rows make up one long row, and their sums are folded afterwards.
    const int64_t joined = kWide / n;
    double wide[kWide];
    for (int64_t c = 0; c < joined * n; ++c) wide[c] = Op::kIdentity;
    columns_whole<T, Op>(data, rows / joined, joined * n, joined * n, wide);
    for (int64_t c = 0; c < joined * n; ++c) state[c % n] = Op::reduce(state[c % n], wide[c]);
    data += rows / joined * joined * n;
    rows %= joined;
  }
  columns_whole<T, Op>(data, rows, row_stride, n, state);
}

// ---- integers and products: plain loops ---------------------------------------------------------------------------
template <class T, class Op>
struct Plain {
  using State = int64_t;
  TUTTI_INLINE static State step(State state, const T& value) {
    return step_integer<Op>(state, static_cast<int64_t>(value));
  }
};
template <Floating T, class Op>
struct Plain<T, Op> {
  using State = double;
  TUTTI_INLINE static State step(State state, const T& value) {
    return Op::reduce(state, Op::map(to_double(value)));
  }
};

template <class T, class Op>
void rows_plain(const void* in, int64_t count, int64_t row_stride, int64_t n, int64_t stride, void* states) {
  using P = Plain<T, Op>;
  const T* data = static_cast<const T*>(in);
  auto* state = static_cast<typename P::State*>(states);
  for (int64_t i = 0; i < count; ++i, data += row_stride) {
    typename P::State total = state[i];
    if (stride == 1) {
      for (int64_t k = 0; k < n; ++k) total = P::step(total, data[k]);
    } else {
      for (int64_t k = 0; k < n; ++k) total = P::step(total, data[k * stride]);
    }
    state[i] = total;
  }
}

template <class T, class Op>
void columns_plain(const void* in, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   void* states) {
  using P = Plain<T, Op>;
  const T* data = static_cast<const T*>(in);
  auto* state = static_cast<typename P::State*>(states);
  for (int64_t r = 0; r < rows; ++r, data += row_stride) {
    if (stride == 1) {
      for (int64_t c = 0; c < n; ++c) state[c] = P::step(state[c], data[c]);
    } else {
      for (int64_t c = 0; c < n; ++c) state[c] = P::step(state[c], data[c * stride]);
    }
  }
}

template <class Op, class... Ts>
constexpr void set_loops(ReduceLoops& loops, int op) {
  int dtype = 0;
  const auto set = [&]<class T>(const T*) {
    if constexpr (Floating<T> && Op::kVectorised) {
      loops.rows[op][dtype] = rows_floating<T, Op>;
      loops.columns[op][dtype] = columns_floating<T, Op>;
    } else {
      loops.rows[op][dtype] = rows_plain<T, Op>;
      loops.columns[op][dtype] = columns_plain<T, Op>;
    }
    ++dtype;
  };
  (set(static_cast<const Ts*>(nullptr)), ...);
}

template <class... Ts>
constexpr ReduceLoops make_loops() {
  ReduceLoops loops{};
  set_loops<Sum, Ts...>(loops, kLoopSum);
  set_loops<Greatest, Ts...>(loops, kLoopAmax);
  set_loops<Smallest, Ts...>(loops, kLoopAmin);
  set_loops<Product, Ts...>(loops, kLoopProd);
  set_loops<SumSquares, Ts...>(loops, kLoopSumSquares);
  return loops;
}

}  // namespace

constinit const ReduceLoops kReduceLoops =
    make_loops<double, float, Half, BFloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>();

}  // namespace tutti::cpu::TUTTI_ISA
