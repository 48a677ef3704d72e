// SPDX-License-Identifier: Apache-2.0
// Steps over one contiguous row, for the softmax family and batch norm. A row fits a cache, so that only the
// first step reads memory. Sums run in four vectors over blocks of 4,096 elements, which are added in double.
#pragma once

#include "kernels/cpu/isa/lanes.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

constexpr int64_t kRowBlock = 4096;
constexpr int kUnroll = 4;

// How a step reads and writes its vector: a whole one, or the first `count` lanes with a fill in the others.
struct WholeVector {
  template <class T>
  TUTTI_INLINE auto load(const T* data, typename Lanes<T>::Number) const {
    return Lanes<T>::load(data);
  }
  template <class T>
  TUTTI_INLINE void store(T* data, typename Lanes<T>::Vector value) const {
    Lanes<T>::store(data, value);
  }
};
struct PartVector {
  int64_t count;
  template <class T>
  TUTTI_INLINE auto load(const T* data, typename Lanes<T>::Number fill) const {
    return Lanes<T>::load(data, count, fill);
  }
  template <class T>
  TUTTI_INLINE void store(T* data, typename Lanes<T>::Vector value) const {
    Lanes<T>::store(data, value, count);
  }
};

// Calls step(u, i, access) for each vector of [begin, end), with u = 0 to 3 in turn for independent partial
// results.
template <class N, class Step>
TUTTI_INLINE void for_each_vector(int64_t begin, int64_t end, const Step& step) {
  constexpr int kWidth = Lanes<N>::kWidth;
  int64_t i = begin;
  for (; i + kUnroll * kWidth <= end; i += kUnroll * kWidth) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) step(u, i + u * kWidth, WholeVector{});
  }
  for (; i + kWidth <= end; i += kWidth) step(0, i, WholeVector{});
  if (i < end) step(1, i, PartVector{end - i});
}

// Sum over a row of term(i, access), a vector whose lanes past the end are 0.
template <class N, class Term>
TUTTI_INLINE double sum_of_row(int64_t n, const Term& term) {
  using V = typename Lanes<N>::Vector;
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kRowBlock) {
    V partial[kUnroll] = {};
    for_each_vector<N>(begin, n - begin < kRowBlock ? n : begin + kRowBlock,
                       [&](int u, int64_t i, const auto& access) { partial[u] += term(i, access); });
    total += sum_lanes((partial[0] + partial[1]) + (partial[2] + partial[3]));
  }
  return total;
}

// The greatest element, NaN left out; -infinity if there is none.
template <class T>
TUTTI_INLINE typename Lanes<T>::Number greatest_of_row(const T* row, int64_t n) {
  using N = typename Lanes<T>::Number;
  using V = typename Lanes<T>::Vector;
  constexpr N kLeast = -static_cast<N>(__builtin_inf());
  const V least = broadcast<V>(kLeast);
  V partial[kUnroll] = {least, least, least, least};
  for_each_vector<N>(0, n, [&](int u, int64_t i, const auto& access) {
    partial[u] = greater_of(access.load(row + i, kLeast), partial[u]);
  });
  return greatest_lane(greater_of(greater_of(partial[0], partial[1]), greater_of(partial[2], partial[3])));
}

}  // namespace
}  // namespace tutti::cpu::TUTTI_ISA
