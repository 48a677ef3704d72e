// SPDX-License-Identifier: Apache-2.0
// What kernels ask of a view, and loops over several views of one shape with as few dimensions as possible.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "tutti/core/dtype.hpp"
#include "tutti/core/half.hpp"

namespace tutti::cpu {

inline std::int64_t element_size(std::int32_t dtype) noexcept {
  return static_cast<std::int64_t>(size_of(static_cast<DType>(dtype)));
}

inline bool is_floating(std::int32_t dtype) noexcept { return dtype <= TUTTI_BF16; }

inline std::int64_t numel(const tutti_view& view) noexcept {
  std::int64_t count = 1;
  for (int d = 0; d < view.ndim; ++d) count *= view.sizes[d];
  return count;
}

// True if the elements lie one after the other in row-major order; strides of dims of size 1 don't matter.
inline bool is_contiguous(const tutti_view& view) noexcept {
  std::int64_t expected = 1;
  for (int d = view.ndim - 1; d >= 0; --d) {
    if (view.sizes[d] == 1) continue;
    if (view.strides[d] != expected) return view.sizes[d] == 0;
    expected *= view.sizes[d];
  }
  return true;
}

// True if NCHW-shaped elements lie in N, H, W, C order.
inline bool is_channels_last(const tutti_view& view) noexcept {
  if (view.ndim != 4) return false;
  constexpr int kOrder[] = {1, 3, 2, 0};
  std::int64_t expected = 1;
  for (const int d : kOrder) {
    if (view.sizes[d] == 1) continue;
    if (view.strides[d] != expected) return false;
    expected *= view.sizes[d];
  }
  return true;
}

inline bool same_sizes(const tutti_view& a, const tutti_view& b) noexcept {
  if (a.ndim != b.ndim) return false;
  for (int d = 0; d < a.ndim; ++d) {
    if (a.sizes[d] != b.sizes[d]) return false;
  }
  return true;
}

template <class T>
T* data_of(const tutti_view& view) noexcept {
  return static_cast<T*>(view.data);
}

enum class LoopOrder {
  kAny,      // dims may be permuted so that the first view's strides fall
  kLogical,  // row-major order of the shape (random numbers depend on it)
};

// N views of one shape as a nest of loops: dims that all views walk through evenly are merged, dims of size 1
// are gone. There is always at least one dim. The last one is the innermost.
template <int N>
struct StridedLoop {
  int ndim = 1;
  std::int64_t sizes[TUTTI_MAX_DIMS];
  std::int64_t strides[N][TUTTI_MAX_DIMS];  // bytes
  char* data[N];

  std::int64_t inner() const noexcept { return sizes[ndim - 1]; }
  std::int64_t rows() const noexcept {
    std::int64_t count = 1;
    for (int d = 0; d + 1 < ndim; ++d) count *= sizes[d];
    return count;
  }
  std::int64_t inner_stride(int view) const noexcept { return strides[view][ndim - 1]; }
};

namespace detail {

template <int N>
void sort_dims(StridedLoop<N>& loop) noexcept {
  // Insertion sort by the first view's strides, then the second's, ...; stable, and views have at most eight
  // dims.
  const auto belongs_outside = [&](int a, int b) {
    for (int view = 0; view < N; ++view) {
      const std::int64_t sa = loop.strides[view][a] < 0 ? -loop.strides[view][a] : loop.strides[view][a];
      const std::int64_t sb = loop.strides[view][b] < 0 ? -loop.strides[view][b] : loop.strides[view][b];
      if (sa != sb && sa != 0 && sb != 0) return sa > sb;
    }
    return false;
  };
  for (int i = 1; i < loop.ndim; ++i) {
    for (int j = i; j > 0 && belongs_outside(j, j - 1); --j) {
      const auto swap = [j](std::int64_t* values) {
        const std::int64_t kept = values[j];
        values[j] = values[j - 1];
        values[j - 1] = kept;
      };
      swap(loop.sizes);
      for (int view = 0; view < N; ++view) swap(loop.strides[view]);
    }
  }
}

}  // namespace detail

template <int N>
StridedLoop<N> coalesce(const tutti_view* const (&views)[N], LoopOrder order = LoopOrder::kAny) noexcept {
  StridedLoop<N> loop;
  loop.ndim = 0;
  for (int view = 0; view < N; ++view) loop.data[view] = static_cast<char*>(views[view]->data);
  for (int d = 0; d < views[0]->ndim; ++d) {
    if (views[0]->sizes[d] == 1) continue;
    loop.sizes[loop.ndim] = views[0]->sizes[d];
    for (int view = 0; view < N; ++view) {
      loop.strides[view][loop.ndim] = views[view]->strides[d] * element_size(views[view]->dtype);
    }
    ++loop.ndim;
  }
  if (order == LoopOrder::kAny) detail::sort_dims(loop);
  int kept = 0;
  for (int d = 1; d < loop.ndim; ++d) {
    bool merges = true;
    for (int view = 0; view < N; ++view) {
      merges = merges && loop.strides[view][kept] == loop.strides[view][d] * loop.sizes[d];
    }
    if (merges) {
      loop.sizes[kept] *= loop.sizes[d];
    } else {
      loop.sizes[++kept] = loop.sizes[d];
    }
    for (int view = 0; view < N; ++view) loop.strides[view][kept] = loop.strides[view][d];
  }
  if (loop.ndim == 0) {
    loop.sizes[0] = 1;
    for (int view = 0; view < N; ++view) loop.strides[view][0] = element_size(views[view]->dtype);
  }
  loop.ndim = kept + 1;
  return loop;
}

// Walks the rows (all dims but the innermost) of a loop from any row on.
template <int N>
class RowIterator {
 public:
  RowIterator(const StridedLoop<N>& loop, std::int64_t row) noexcept : loop_(loop) {
    for (int view = 0; view < N; ++view) data_[view] = loop.data[view];
    for (int d = loop.ndim - 2; d >= 0; --d) {
      index_[d] = row % loop.sizes[d];
      row /= loop.sizes[d];
      for (int view = 0; view < N; ++view) data_[view] += index_[d] * loop.strides[view][d];
    }
  }
  char* const* data() const noexcept { return data_; }
  void next() noexcept {
    for (int d = loop_.ndim - 2; d >= 0; --d) {
      for (int view = 0; view < N; ++view) data_[view] += loop_.strides[view][d];
      if (++index_[d] < loop_.sizes[d]) return;
      index_[d] = 0;
      for (int view = 0; view < N; ++view) data_[view] -= loop_.strides[view][d] * loop_.sizes[d];
    }
  }

 private:
  const StridedLoop<N>& loop_;
  std::int64_t index_[TUTTI_MAX_DIMS];
  char* data_[N];
};

// Calls body(char* const* data, count) for the pieces of rows that make up the elements [begin, end) of a
// loop.
template <int N, class Body>
void for_each_piece(const StridedLoop<N>& loop, std::int64_t begin, std::int64_t end, const Body& body) {
  const std::int64_t inner = loop.inner();
  RowIterator<N> rows(loop, begin / inner);
  std::int64_t offset = begin % inner;
  while (begin < end) {
    const std::int64_t left = inner - offset;
    const std::int64_t count = left < end - begin ? left : end - begin;
    if (offset == 0) {
      body(rows.data(), count);
    } else {
      char* data[N];
      for (int view = 0; view < N; ++view) data[view] = rows.data()[view] + offset * loop.inner_stride(view);
      body(data, count);
    }
    begin += count;
    offset = 0;
    rows.next();
  }
}

}  // namespace tutti::cpu
