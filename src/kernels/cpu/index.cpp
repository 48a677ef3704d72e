// SPDX-License-Identifier: Apache-2.0
// index_select and index_add along one dim. Both walk [outer dims] x [indices] x [a row of the inner dims]; a row that is
// contiguous is copied or added as a whole. index_add adds to each element in the order of the indices, whoever does it:
// threads share out the outer positions and parts of rows, or, with short rows, the range of indices that they serve.
#include <algorithm>
#include <cstring>

#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/index_loops.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/numbers.hpp"
#include "kernels/cpu/status.hpp"
#include "tutti/core/threads.hpp"

namespace tutti::cpu {
namespace {

constexpr std::int64_t kTaskBytes = 65536;
constexpr std::int64_t kShortRow = 64;  // elements

// The operand with the indices' dim ("many") and the one that it names places in ("place"), both without that dim.
struct Walk {
  Walk(const tutti_index& call, const tutti_view& by_index, const tutti_view& by_place) {
    const bool has_dim = by_index.ndim > 0;
    const int dim = call.dim;
    places = has_dim ? by_place.sizes[dim] : 1;
    count = call.indices.ndim == 0 ? 1 : call.indices.sizes[0];
    index_stride = call.indices.ndim == 0 ? 0 : call.indices.strides[0];
    size = element_size(by_index.dtype);
    many_stride = has_dim ? by_index.strides[dim] * size : 0;
    place_stride = has_dim ? by_place.strides[dim] * size : 0;
    indices = &call.indices;
    tutti_view many = by_index;
    tutti_view place = by_place;
    if (has_dim) many.sizes[dim] = place.sizes[dim] = 1;
    const tutti_view* const views[] = {&many, &place};
    rest = coalesce<2>(views);
    positions = numel(many);
    contiguous = rest.inner() > 1 && rest.inner_stride(0) == size && rest.inner_stride(1) == size;
  }

  std::int64_t index(std::int64_t k) const {
    return indices->dtype == TUTTI_I64
               ? data_of<const std::int64_t>(*indices)[k * index_stride]
               : static_cast<std::int64_t>(data_of<const std::int32_t>(*indices)[k * index_stride]);
  }

  std::int64_t places, count, index_stride, size, many_stride, place_stride, positions;
  const tutti_view* indices;
  StridedLoop<2> rest;
  bool contiguous;
};

tutti_status check(const tutti_index& call, const Walk& walk, const char* name) {
  if (call.in.dtype != call.out.dtype) {
    return fail(TUTTI_UNSUPPORTED, name, ": wanted one dtype, given ", dtype_text(call.in.dtype), " and ",
                dtype_text(call.out.dtype));
  }
  if (call.indices.dtype != TUTTI_I64 && call.indices.dtype != TUTTI_I32) {
    return fail(TUTTI_UNSUPPORTED, name, ": wanted int64 or int32 indices, given ",
                dtype_text(call.indices.dtype));
  }
  for (std::int64_t k = 0; k < walk.count; ++k) {
    const std::int64_t index = walk.index(k);
    if (index < 0 || index >= walk.places) {
      return fail(TUTTI_INVALID, name, ": index ", index, " at position ", k, " is out of range: dim ",
                  call.dim, " has size ", walk.places);
    }
  }
  return TUTTI_OK;
}

template <int kSize>
void copy_elements(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride,
                   std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(out + i * out_stride, in + i * in_stride, kSize);
}

void copy_row(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride, std::int64_t count,
              std::int64_t size) {
  switch (size) {
    case 8: return copy_elements<8>(out, out_stride, in, in_stride, count);
    case 4: return copy_elements<4>(out, out_stride, in, in_stride, count);
    case 2: return copy_elements<2>(out, out_stride, in, in_stride, count);
    default: return copy_elements<1>(out, out_stride, in, in_stride, count);
  }
}

void select(const Walk& walk) {
  const std::int64_t inner = walk.rest.inner();
  const std::int64_t grain = std::max<std::int64_t>(1, kTaskBytes / (inner * walk.size));
  parallel_for(0, walk.rest.rows() * walk.count, grain, [&](std::int64_t begin, std::int64_t end) {
    RowIterator<2> row(walk.rest, begin / walk.count);
    std::int64_t k = begin % walk.count;
    for (std::int64_t i = begin; i < end; ++i) {
      char* out = row.data()[0] + k * walk.many_stride;
      const char* in = row.data()[1] + walk.index(k) * walk.place_stride;
      if (walk.contiguous) {
        std::memcpy(out, in, static_cast<std::size_t>(inner * walk.size));
      } else {
        copy_row(out, walk.rest.inner_stride(0), in, walk.rest.inner_stride(1), inner, walk.size);
      }
      if (++k == walk.count) {
        k = 0;
        row.next();
      }
    }
  });
}

// All indices that name places in [first, last), for the columns [begin, end) of one row of the rest.
void add_rows(const Walk& walk, AddRow add, char* const* data, std::int64_t begin, std::int64_t end,
              std::int64_t first, std::int64_t last) {
  const std::int64_t many_step = walk.rest.inner_stride(0);
  const std::int64_t place_step = walk.rest.inner_stride(1);
  const bool all = first == 0 && last == walk.places;
  for (std::int64_t k = 0; k < walk.count; ++k) {
    const std::int64_t place = walk.index(k);
    if (!all && (place < first || place >= last)) continue;
    add(data[1] + place * walk.place_stride + begin * place_step, place_step / walk.size,
        data[0] + k * walk.many_stride + begin * many_step, many_step / walk.size, end - begin);
  }
}

void add(const Walk& walk, std::int32_t dtype) {
  const AddRow function = index_loops().add[dtype];
  const std::int64_t inner = walk.rest.inner();
  const std::int64_t rows = walk.rest.rows();
  // A task: some columns of one row for all indices; for short rows, a range of places. Neither changes the order of an
  // element's additions, so the cut may depend on the number of threads.
  const bool by_places = inner < 2 * kShortRow && walk.count * inner * walk.size > kTaskBytes;
  const std::int64_t width = by_places ? inner : std::max(kShortRow, kTaskBytes / (walk.size * walk.count));
  const std::int64_t pieces =
      by_places ? std::min<std::int64_t>(get_num_threads(), walk.places) : (inner + width - 1) / width;
  parallel_for(0, rows * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const RowIterator<2> row(walk.rest, task / pieces);
      const std::int64_t piece = task % pieces;
      if (by_places) {
        add_rows(walk, function, row.data(), 0, inner, piece * walk.places / pieces,
                 (piece + 1) * walk.places / pieces);
      } else {
        add_rows(walk, function, row.data(), piece * width, std::min(inner, (piece + 1) * width), 0,
                 walk.places);
      }
    }
  });
}

}  // namespace

tutti_status index_select(const tutti_index* call) noexcept {
  return guarded([&] {
    const Walk walk(*call, call->out, call->in);
    const tutti_status status = check(*call, walk, "index_select");
    if (status == TUTTI_OK && walk.positions > 0 && walk.count > 0) select(walk);
    return status;
  });
}

tutti_status index_add(const tutti_index* call) noexcept {
  return guarded([&] {
    const Walk walk(*call, call->in, call->out);
    const tutti_status status = check(*call, walk, "index_add");
    if (status == TUTTI_OK && walk.positions > 0 && walk.count > 0) add(walk, call->in.dtype);
    return status;
  });
}

}  // namespace tutti::cpu
