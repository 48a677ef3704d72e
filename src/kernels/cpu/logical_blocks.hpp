// SPDX-License-Identifier: Apache-2.0
// Blocks of a view's elements in logical (row-major) order, for kernels whose values depend on the element's
// index.
#pragma once

#include "core/parallel_for.hpp"
#include "kernels/cpu/blocks.hpp"

namespace tutti::cpu {

// Blocks of at most kBlock elements that start at multiples of four. Contiguous elements of a compute type
// can be worked on in place (direct); others go through a block of the compute type (load, store).
template <int N>
class LogicalBlocks {
 public:
  explicit LogicalBlocks(const tutti_view* const (&views)[N])
      : count_(numel(*views[0])), loop_(coalesce(views, LoopOrder::kLogical)) {
    for (int i = 0; i < N; ++i) {
      dtypes_[i] = views[i]->dtype;
      contiguous_[i] = loop_.ndim == 1 && loop_.inner_stride(i) == element_size(dtypes_[i]);
    }
  }

  // body(first, count) for each block; the borders depend on the number of elements alone.
  template <class Body>
  void for_each(const Body& body) const {
    parallel_for(0, count_, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += kBlock) {
        body(first, end - first < kBlock ? end - first : kBlock);
      }
    });
  }

  // The elements in place, if they are contiguous and of their compute type; else null.
  char* direct(int view, std::int64_t first) const {
    if (!contiguous_[view] || compute_dtype(dtypes_[view]) != dtypes_[view]) return nullptr;
    return loop_.data[view] + first * element_size(dtypes_[view]);
  }

  // To and from a block of the compute type.
  void load(int view, std::int64_t first, std::int64_t count, void* block) const {
    const std::int64_t size = element_size(compute_dtype(dtypes_[view]));
    char* target = static_cast<char*>(block);
    for_each_piece(loop_, first, first + count, [&](char* const* data, std::int64_t n) {
      load_block(convert_loops(), target, dtypes_[view], data[view], loop_.inner_stride(view), n);
      target += n * size;
    });
  }
  void store(int view, std::int64_t first, std::int64_t count, const void* block) const {
    const std::int64_t size = element_size(compute_dtype(dtypes_[view]));
    const char* source = static_cast<const char*>(block);
    for_each_piece(loop_, first, first + count, [&](char* const* data, std::int64_t n) {
      store_block(convert_loops(), data[view], loop_.inner_stride(view), dtypes_[view], source, n);
      source += n * size;
    });
  }

 private:
  std::int64_t count_;
  StridedLoop<N> loop_;
  std::int32_t dtypes_[N];
  bool contiguous_[N];
};

}  // namespace tutti::cpu
