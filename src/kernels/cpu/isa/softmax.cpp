// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over rows and over columns, forward and backward.
//   forward   y = exp(x - m) / sum exp(x - m)       log: y = x - m - log(sum exp(x - m))       m = max x
//   backward  dx = y * (dy - sum(dy * y))           log: dx = dy - exp(y) * sum(dy)
// A row of -infinity gives NaN, as 0/0 would.
#include "kernels/cpu/isa/softmax_loops.hpp"

#include "kernels/cpu/isa/exp.hpp"
#include "kernels/cpu/isa/row_steps.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

constexpr double kInfinity = __builtin_inf();

// ---- rows ---------------------------------------------------------------------------------------------------------
template <class T>
TUTTI_INLINE void softmax_row(const T* in, T* out, int64_t n) {
  using N = typename Lanes<T>::Number;
  constexpr bool kKeepExp = sizeof(T) > 2;  // f16 and bf16 would round twice: they compute exp again
  const N greatest = greatest_of_row(in, n);
  const double sum = sum_of_row<N>(n, [&](int64_t i, const auto& access) {
    const auto value = exp_of(access.load(in + i, -static_cast<N>(kInfinity)) - greatest);
    if constexpr (kKeepExp) access.store(out + i, value);
    return value;
  });
  const N scale = static_cast<N>(1.0 / sum);
  for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
    if constexpr (kKeepExp) {
      access.store(out + i, access.load(out + i, N{0}) * scale);
    } else {
      access.store(out + i, exp_of(access.load(in + i, N{0}) - greatest) * scale);
    }
  });
}

template <class T>
TUTTI_INLINE void log_softmax_row(const T* in, T* out, int64_t n) {
  using N = typename Lanes<T>::Number;
  const N greatest = greatest_of_row(in, n);
  const double sum = sum_of_row<N>(n, [&](int64_t i, const auto& access) {
    return exp_of(access.load(in + i, -static_cast<N>(kInfinity)) - greatest);
  });
  const N log_sum = static_cast<N>(__builtin_log(sum));
  for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
    access.store(out + i, (access.load(in + i, N{0}) - greatest) - log_sum);
  });
}

template <class T>
void forward_row(const SoftmaxRows& call) {
  const T* in = static_cast<const T*>(call.in);
  T* out = static_cast<T*>(call.out);
  for (int64_t r = 0; r < call.rows; ++r, in += call.in_stride, out += call.out_stride) {
    if (call.log) {
      log_softmax_row(in, out, call.columns);
    } else {
      softmax_row(in, out, call.columns);
    }
  }
}

template <class T>
void backward_row(const SoftmaxRows& call) {
  using N = typename Lanes<T>::Number;
  const T* y = static_cast<const T*>(call.in);
  const T* grad = static_cast<const T*>(call.grad);
  T* out = static_cast<T*>(call.out);
  const int64_t n = call.columns;
  for (int64_t r = 0; r < call.rows;
       ++r, y += call.in_stride, grad += call.grad_stride, out += call.out_stride) {
    if (call.log) {
      const N sum = static_cast<N>(
          sum_of_row<N>(n, [&](int64_t i, const auto& access) { return access.load(grad + i, N{0}); }));
      for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
        access.store(out + i, access.load(grad + i, N{0}) - exp_of(access.load(y + i, N{0})) * sum);
      });
    } else {
      const N dot = static_cast<N>(sum_of_row<N>(n, [&](int64_t i, const auto& access) {
        return access.load(grad + i, N{0}) * access.load(y + i, N{0});
      }));
      for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
        access.store(out + i, access.load(y + i, N{0}) * (access.load(grad + i, N{0}) - dot));
      });
    }
  }
}

// ---- columns: strips of kVectors vectors whose states stay in registers -------------------------------------------
constexpr int64_t kSumRows =
    64;  // rows whose terms are added up before they join the total: a shorter chain of roundings

// Sum over the rows of term(r, v), v = 0 to kVectors - 1.
template <class V, int kVectors, class Term>
TUTTI_INLINE void sum_of_columns(int64_t rows, V* total, const Term& term) {
  for (int v = 0; v < kVectors; ++v) total[v] = V{};
  for (int64_t begin = 0; begin < rows; begin += kSumRows) {
    V partial[kVectors] = {};
    const int64_t end = rows - begin < kSumRows ? rows : begin + kSumRows;
    for (int64_t r = begin; r < end; ++r) {
      for (int v = 0; v < kVectors; ++v) partial[v] += term(r, v);
    }
    for (int v = 0; v < kVectors; ++v) total[v] += partial[v];
  }
}

// Reads and writes strips; kWhole false: one vector of `count` columns.
template <class T, bool kWhole>
struct Strip {
  using L = Lanes<T>;
  int64_t count;
  TUTTI_INLINE typename L::Vector load(const T* data, int v) const {
    if constexpr (kWhole) {
      return L::load(data + v * L::kWidth);
    } else {
      return L::load(data, count, typename L::Number{0});
    }
  }
  TUTTI_INLINE void store(T* data, int v, typename L::Vector value) const {
    if constexpr (kWhole) {
      L::store(data + v * L::kWidth, value);
    } else {
      L::store(data, value, count);
    }
  }
};

template <class T, int kVectors, bool kWhole>
TUTTI_INLINE void forward_strip(const SoftmaxRows& call, int64_t first, Strip<T, kWhole> strip) {
  using N = typename Lanes<T>::Number;
  using V = typename Lanes<T>::Vector;
  const T* in = static_cast<const T*>(call.in) + first;
  T* out = static_cast<T*>(call.out) + first;
  V greatest[kVectors];
  for (int v = 0; v < kVectors; ++v) greatest[v] = broadcast<V>(-static_cast<N>(kInfinity));
  for (int64_t r = 0; r < call.rows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      greatest[v] = greater_of(strip.load(in + r * call.in_stride, v), greatest[v]);
  }
  V sum[kVectors];
  sum_of_columns<V, kVectors>(call.rows, sum, [&](int64_t r, int v) {
    return exp_of(strip.load(in + r * call.in_stride, v) - greatest[v]);
  });
  if (call.log) {
    for (int v = 0; v < kVectors; ++v) {
      for (int i = 0; i < Lanes<T>::kWidth; ++i) {
        sum[v][i] = static_cast<N>(__builtin_log(static_cast<double>(sum[v][i])));
      }
    }
  } else {
    for (int v = 0; v < kVectors; ++v) sum[v] = N{1} / sum[v];
  }
  for (int64_t r = 0; r < call.rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const V x = strip.load(in + r * call.in_stride, v) - greatest[v];
      strip.store(out + r * call.out_stride, v, call.log ? x - sum[v] : exp_of(x) * sum[v]);
    }
  }
}

template <class T, int kVectors, bool kWhole>
TUTTI_INLINE void backward_strip(const SoftmaxRows& call, int64_t first, Strip<T, kWhole> strip) {
  using V = typename Lanes<T>::Vector;
  const T* in = static_cast<const T*>(call.in) + first;
  const T* grad = static_cast<const T*>(call.grad) + first;
  T* out = static_cast<T*>(call.out) + first;
  const auto y = [&](int64_t r, int v) { return strip.load(in + r * call.in_stride, v); };
  const auto dy = [&](int64_t r, int v) { return strip.load(grad + r * call.grad_stride, v); };
  V sum[kVectors];
  if (call.log) {
    sum_of_columns<V, kVectors>(call.rows, sum, dy);
  } else {
    sum_of_columns<V, kVectors>(call.rows, sum, [&](int64_t r, int v) { return dy(r, v) * y(r, v); });
  }
  for (int64_t r = 0; r < call.rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const V result = call.log ? dy(r, v) - exp_of(y(r, v)) * sum[v] : y(r, v) * (dy(r, v) - sum[v]);
      strip.store(out + r * call.out_stride, v, result);
    }
  }
}

template <class T, bool kBackward>
void columns(const SoftmaxRows& call) {
  constexpr int64_t kWidth = Lanes<T>::kWidth;
  constexpr int kVectors = 4;
  const auto run = [&]<int kCount, bool kWhole>(int64_t first, Strip<T, kWhole> strip) {
    if constexpr (kBackward) {
      backward_strip<T, kCount>(call, first, strip);
    } else {
      forward_strip<T, kCount>(call, first, strip);
    }
  };
  int64_t c = 0;
  for (; c + kVectors * kWidth <= call.columns; c += kVectors * kWidth) {
    run.template operator()<kVectors>(c, Strip<T, true>{kWidth});
  }
  for (; c + kWidth <= call.columns; c += kWidth) run.template operator()<1>(c, Strip<T, true>{kWidth});
  if (c < call.columns) run.template operator()<1>(c, Strip<T, false>{call.columns - c});
}

template <class... Ts>
constexpr SoftmaxLoops make_loops() {
  return {{forward_row<Ts>...}, {columns<Ts, false>...}, {backward_row<Ts>...}, {columns<Ts, true>...}};
}

}  // namespace

constinit const SoftmaxLoops kSoftmaxLoops = make_loops<double, float, Half, BFloat16>();

}  // namespace tutti::cpu::TUTTI_ISA
