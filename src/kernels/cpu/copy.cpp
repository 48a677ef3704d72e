// SPDX-License-Identifier: Apache-2.0
// Copies between views of any dtypes and strides.
//
// Conversions: floating to integer truncates towards zero; values beyond the range become its nearest end,
// NaN becomes 0. Any number to floating rounds once, to nearest even. Integer to integer wraps around. To bool: whether the
// value is not 0 (NaN is true). From bool: 0 or 1.
//
//   same dtype, both contiguous in the same order      memcpy in chunks
//   other dtype, both contiguous in the same order     one conversion loop
//   same dtype, the inner dims of in and out swapped   tiles of a cache line: transposes, channels-last to and from contiguous
//   otherwise                                          rows: gather, convert, scatter
#include <cstring>

#include "core/parallel_for.hpp"
#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

struct Dtypes {
  std::int32_t out;
  std::int32_t in;
};

// One row, any strides.
void copy_row(const ConvertLoops& loops, Dtypes dtypes, char* out, std::int64_t out_stride, const char* in,
              std::int64_t in_stride, std::int64_t count) {
  const std::int64_t out_size = element_size(dtypes.out);
  const std::int64_t in_size = element_size(dtypes.in);
  const bool same = dtypes.out == dtypes.in;
  const bool out_direct = out_stride == out_size;
  const bool in_direct = in_stride == in_size;
  if (same && out_direct && in_direct) {
    std::memcpy(out, in, static_cast<std::size_t>(count * out_size));
  } else if (same && out_direct) {
    loops.gather[size_index(in_size)](out, in, in_stride, count);
  } else if (same && in_direct) {
    loops.scatter[size_index(out_size)](out, out_stride, in, count);
  } else if (!same && out_direct && in_direct) {
    loops.convert[dtypes.out][dtypes.in](out, in, count);
  } else {
    Block gathered;
    Block converted;
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      const std::int64_t n = count - begin < kBlock ? count - begin : kBlock;
      const void* source = in + begin * in_stride;
      if (!in_direct) {
        loops.gather[size_index(in_size)](gathered.bytes, source, in_stride, n);
        source = gathered.bytes;
      }
      char* target = out + begin * out_stride;
      if (!same) {
        void* result = out_direct ? static_cast<void*>(target) : converted.bytes;
        loops.convert[dtypes.out][dtypes.in](result, source, n);
        source = result;
      }
      if (!out_direct) loops.scatter[size_index(out_size)](target, out_stride, source, n);
    }
  }
}

// The dim through which `in` runs contiguously, if it is not the innermost one of out; else -1.
int swapped_dim(const StridedLoop<2>& loop, std::int64_t size) {
  const int last = loop.ndim - 1;
  if (loop.strides[0][last] != size || loop.strides[1][last] == size || loop.strides[1][last] == 0) return -1;
  for (int d = 0; d < last; ++d) {
    if (loop.strides[1][d] == size && loop.sizes[d] > 1) return d;
  }
  return -1;
}

// Rows of the transpose are the elements along `dim`, columns those along the innermost dim.
void transpose_dims(StridedLoop<2> loop, int dim, std::int64_t size) {
  const std::int64_t rows = loop.sizes[dim];
  const std::int64_t columns = loop.inner();
  const std::int64_t out_stride = loop.strides[0][dim];
  const std::int64_t in_stride = loop.inner_stride(1);
  // What is left are the outer dims, innermost dim of size 1 so that a row iterator walks them all.
  const int last = loop.ndim - 1;
  for (int d = dim; d + 1 < last; ++d) {
    loop.sizes[d] = loop.sizes[d + 1];
    for (auto& strides : loop.strides) strides[d] = strides[d + 1];
  }
  loop.ndim = last;
  loop.sizes[last - 1] = 1;
  const std::int64_t tile = 64 / size;
  const std::int64_t strip = tile * 4;
  const std::int64_t strips = (rows + strip - 1) / strip;
  const std::int64_t grain = kGrain / (strip * columns) > 0 ? kGrain / (strip * columns) : 1;
  const auto transpose = convert_loops().transpose[size_index(size)];
  parallel_for(0, loop.rows() * strips, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const RowIterator<2> outer(loop, item / strips);
      const std::int64_t row = item % strips * strip;
      const std::int64_t count = rows - row < strip ? rows - row : strip;
      transpose(outer.data()[0] + row * out_stride, out_stride, outer.data()[1] + row * size, in_stride,
                count, columns);
    }
  });
}

void copy_views(const tutti_copy* call) {
  const std::int64_t count = numel(call->out);
  if (count == 0) return;
  const Dtypes dtypes{call->out.dtype, call->in.dtype};
  const ConvertLoops& loops = convert_loops();
  const std::int64_t out_size = element_size(dtypes.out);
  const std::int64_t in_size = element_size(dtypes.in);
  if (count <= kGrain && is_contiguous(call->out) && is_contiguous(call->in)) {
    copy_row(loops, dtypes, data_of<char>(call->out), out_size, data_of<char>(call->in), in_size, count);
    return;
  }
  const StridedLoop<2> loop = coalesce<2>({&call->out, &call->in});
  if (dtypes.out == dtypes.in) {
    if (const int dim = swapped_dim(loop, out_size); dim >= 0) {
      transpose_dims(loop, dim, out_size);
      return;
    }
  }
  parallel_for(0, count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_piece(loop, begin, end, [&](char* const* data, std::int64_t n) {
      copy_row(loops, dtypes, data[0], loop.inner_stride(0), data[1], loop.inner_stride(1), n);
    });
  });
}

}  // namespace

tutti_status copy(const tutti_copy* call) noexcept {
  return guarded([call] { copy_views(call); });
}

}  // namespace tutti::cpu
