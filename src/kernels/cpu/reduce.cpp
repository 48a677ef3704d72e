// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of dims.
//
// The dims of the input are sorted by stride and merged, so that a plan has an innermost reduced axis, an
// innermost kept axis and what is left outside of them. A tile is a block of kept positions; all that is
// reduced into it is cut into parts of about kPartElements elements, if there are too few tiles to share out.
// Tiles and parts depend on the shape and strides alone, and parts are added in order: the bits do not depend
// on the number of threads.
#include <algorithm>
#include <limits>

#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/reduce_loops.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/numbers.hpp"
#include "kernels/cpu/onednn/workspace.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

constexpr std::int64_t kMostStates = 1024;  // kept positions of a tile
constexpr std::int64_t kTileElements = 16384;
constexpr std::int64_t kPartElements = 131072;
constexpr std::int64_t kEnoughTiles = 64;

// One partial result: `number` for floating dtypes, `integer` for the others.
union State {
  double number;
  std::int64_t integer;
};

struct Axis {
  std::int64_t size = 1;
  std::int64_t in_stride = 0;
  std::int64_t out_stride = 0;
};

struct Plan {
  Axis kept, reduced;  // innermost ones
  Axis outer_kept[TUTTI_MAX_DIMS], outer_reduced[TUTTI_MAX_DIMS];
  int outer_kept_count = 0, outer_reduced_count = 0;
  std::int64_t outer_kept_size = 1, outer_reduced_size = 1;
  bool by_rows = false;  // the reduced axis lies inside the kept one

  std::int64_t tile = 1;           // kept positions of a tile
  std::int64_t tiles = 1;          // tiles along the kept axis
  std::int64_t segment = 1;        // elements of the reduced axis handled at once
  std::int64_t segments = 1;       // segments of the reduced axis
  std::int64_t units_of_part = 1;  // (outer reduced position, segment) pairs of a part
  std::int64_t parts = 1;
};

int loop_of(std::int32_t op) {
  constexpr int kLoops[TUTTI_REDUCTIONS] = {kLoopSum,  kLoopSum,  kLoopAmax,
                                            kLoopAmin, kLoopProd, kLoopSumSquares};
  return kLoops[op];
}

State identity(std::int32_t op, bool floating) {
  State state;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case TUTTI_AMAX:
      if (floating)
        state.number = -kInfinity;
      else
        state.integer = std::numeric_limits<std::int64_t>::min();
      break;
    case TUTTI_AMIN:
      if (floating)
        state.number = kInfinity;
      else
        state.integer = std::numeric_limits<std::int64_t>::max();
      break;
    case TUTTI_PROD:
      if (floating)
        state.number = 1.0;
      else
        state.integer = 1;
      break;
    default: state.integer = 0;  // also the bits of 0.0
  }
  return state;
}

template <class Number>
Number join(std::int32_t op, Number a, Number b) {
  const auto is_nan = [](Number x) { return x != x; };
  switch (op) {
    case TUTTI_AMAX: return b > a || is_nan(b) ? b : a;
    case TUTTI_AMIN: return b < a || is_nan(b) ? b : a;
    case TUTTI_PROD:
      if constexpr (std::is_integral_v<Number>) {
        return static_cast<Number>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      } else {
        return a * b;
      }
    default:
      if constexpr (std::is_integral_v<Number>) {
        return static_cast<Number>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      } else {
        return a + b;
      }
  }
}

// Writes finished states; `reduced` is the number of elements behind each of them.
void write_results(const tutti_reduce& call, State* states, std::int64_t count, void* out,
                   std::int64_t stride, std::int64_t reduced) {
  const bool floating = is_floating(call.in.dtype);
  if (call.op == TUTTI_MEAN) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double sum = floating ? states[i].number : static_cast<double>(states[i].integer);
      states[i].number = sum / static_cast<double>(reduced);
    }
  }
  if (floating || call.op == TUTTI_MEAN) {
    write_numbers(call.out.dtype, out, stride, count, &states->number);
  } else {
    write_numbers(call.out.dtype, out, stride, count, &states->integer);
  }
}

// Axes from the inside (smallest stride) out; broadcast axes are outermost.
int sorted_axes(const tutti_reduce& call, Axis* axes, bool* is_reduced) {
  int count = 0;
  for (int d = call.in.ndim - 1; d >= 0; --d) {
    if (call.in.sizes[d] == 1) continue;
    const Axis axis{call.in.sizes[d], call.in.strides[d], call.out.strides[d]};
    const bool reduced = ((call.dims >> d) & 1U) != 0U;
    const auto key = [](std::int64_t stride) {
      if (stride == 0) return std::numeric_limits<std::int64_t>::max();
      return stride < 0 ? -stride : stride;
    };
    int position = count;
    for (; position > 0 && key(axes[position - 1].in_stride) > key(axis.in_stride); --position) {
      axes[position] = axes[position - 1];
      is_reduced[position] = is_reduced[position - 1];
    }
    axes[position] = axis;
    is_reduced[position] = reduced;
    ++count;
  }
  int merged = 0;
  for (int i = 1; i < count; ++i) {
    Axis& inner = axes[merged];
    const bool fits = is_reduced[i] == is_reduced[merged] &&
                      axes[i].in_stride == inner.in_stride * inner.size &&
                      (is_reduced[i] || axes[i].out_stride == inner.out_stride * inner.size);
    if (fits) {
      inner.size *= axes[i].size;
    } else {
      ++merged;
      axes[merged] = axes[i];
      is_reduced[merged] = is_reduced[i];
    }
  }
  return count == 0 ? 0 : merged + 1;
}

void cut_into_tiles(Plan& plan) {
  const std::int64_t room =
      std::max<std::int64_t>(1, plan.by_rows ? kTileElements / plan.reduced.size : kMostStates);
  plan.tile = std::min({plan.kept.size, room, kMostStates});
  plan.tiles = (plan.kept.size + plan.tile - 1) / plan.tile;
  plan.segment = plan.reduced.size;
  plan.units_of_part = plan.outer_reduced_size;
  if (plan.tiles * plan.outer_kept_size < kEnoughTiles) {
    // Multiples of the loops' own blocks, so that only the last segment has a remainder.
    const std::int64_t block = plan.by_rows ? 4096 : 128;
    const std::int64_t most = std::max(block, kPartElements / plan.tile / block * block);
    if (plan.reduced.size > most) {
      plan.segment = most;
      plan.units_of_part = 1;
    } else {
      plan.units_of_part = std::max<std::int64_t>(1, most / plan.reduced.size);
    }
  }
  plan.segments = (plan.reduced.size + plan.segment - 1) / plan.segment;
  const std::int64_t units = plan.segments * plan.outer_reduced_size;
  plan.parts = (units + plan.units_of_part - 1) / plan.units_of_part;
}

Plan make_plan(const tutti_reduce& call) {
  Axis axes[TUTTI_MAX_DIMS];
  bool is_reduced[TUTTI_MAX_DIMS];
  const int count = sorted_axes(call, axes, is_reduced);
  Plan plan;
  plan.by_rows = count > 0 && is_reduced[0];
  bool has_kept = false;
  bool has_reduced = false;
  for (int i = 0; i < count; ++i) {
    bool& has = is_reduced[i] ? has_reduced : has_kept;
    if (!has) {
      (is_reduced[i] ? plan.reduced : plan.kept) = axes[i];
      has = true;
    } else if (is_reduced[i]) {
      plan.outer_reduced[plan.outer_reduced_count++] = axes[i];
      plan.outer_reduced_size *= axes[i].size;
    } else {
      plan.outer_kept[plan.outer_kept_count++] = axes[i];
      plan.outer_kept_size *= axes[i].size;
    }
  }
  cut_into_tiles(plan);
  return plan;
}

// Element offset of a position that counts through the axes, the first one fastest.
std::int64_t offset_of(std::int64_t position, const Axis* axes, int count, std::int64_t Axis::*stride) {
  std::int64_t offset = 0;
  for (int i = 0; i < count; ++i) {
    offset += position % axes[i].size * axes[i].*stride;
    position /= axes[i].size;
  }
  return offset;
}

class Reduction {
 public:
  Reduction(const tutti_reduce& call, const Plan& plan)
      : call_(call),
        plan_(plan),
        in_size_(element_size(call.in.dtype)),
        out_size_(element_size(call.out.dtype)),
        rows_(reduce_loops().rows[loop_of(call.op)][call.in.dtype]),
        columns_(reduce_loops().columns[loop_of(call.op)][call.in.dtype]) {}

  void run() {
    const std::int64_t tiles = plan_.tiles * plan_.outer_kept_size;
    const std::int64_t tile_elements = plan_.tile * plan_.reduced.size * plan_.outer_reduced_size;
    if (plan_.parts == 1) {
      parallel_for(0, tiles, std::max<std::int64_t>(1, 2 * kTileElements / tile_elements),
                   [&](std::int64_t begin, std::int64_t end) {
                     State states[kMostStates];
                     for (std::int64_t tile = begin; tile < end; ++tile) {
                       reduce_part(tile, 0, states);
                       write_tile(tile, states);
                     }
                   });
      return;
    }
    const auto states_of_all = static_cast<std::size_t>(tiles * plan_.parts * plan_.tile);
    auto* partial =
        static_cast<State*>(onednn::workspace(onednn::Purpose::kReduction, states_of_all * sizeof(State)));
    parallel_for(0, tiles * plan_.parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        reduce_part(i / plan_.parts, i % plan_.parts, partial + i * plan_.tile);
      }
    });
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      State* states = partial + tile * plan_.parts * plan_.tile;
      for (std::int64_t part = 1; part < plan_.parts; ++part)
        join_states(states, states + part * plan_.tile, tile_count(tile));
      write_tile(tile, states);
    }
  }

 private:
  std::int64_t tile_begin(std::int64_t tile) const { return tile % plan_.tiles * plan_.tile; }
  std::int64_t tile_count(std::int64_t tile) const {
    return std::min(plan_.tile, plan_.kept.size - tile_begin(tile));
  }

  void reduce_part(std::int64_t tile, std::int64_t part, State* states) const {
    const std::int64_t count = tile_count(tile);
    std::fill_n(states, count, identity(call_.op, is_floating(call_.in.dtype)));
    const std::int64_t base =
        offset_of(tile / plan_.tiles, plan_.outer_kept, plan_.outer_kept_count, &Axis::in_stride) +
        tile_begin(tile) * plan_.kept.in_stride;
    const std::int64_t begin = part * plan_.units_of_part;
    const std::int64_t end = std::min(begin + plan_.units_of_part, plan_.segments * plan_.outer_reduced_size);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first = unit % plan_.segments * plan_.segment;
      const std::int64_t length = std::min(plan_.segment, plan_.reduced.size - first);
      const std::int64_t offset =
          base + first * plan_.reduced.in_stride +
          offset_of(unit / plan_.segments, plan_.outer_reduced, plan_.outer_reduced_count, &Axis::in_stride);
      const void* data = data_of<const char>(call_.in) + offset * in_size_;
      if (plan_.by_rows) {
        rows_(data, count, plan_.kept.in_stride, length, plan_.reduced.in_stride, states);
      } else {
        columns_(data, length, plan_.reduced.in_stride, count, plan_.kept.in_stride, states);
      }
    }
  }

  void join_states(State* states, const State* more, std::int64_t count) const {
    const bool floating = is_floating(call_.in.dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      if (floating) {
        states[i].number = join(call_.op, states[i].number, more[i].number);
      } else {
        states[i].integer = join(call_.op, states[i].integer, more[i].integer);
      }
    }
  }

  void write_tile(std::int64_t tile, State* states) const {
    const std::int64_t offset =
        offset_of(tile / plan_.tiles, plan_.outer_kept, plan_.outer_kept_count, &Axis::out_stride) +
        tile_begin(tile) * plan_.kept.out_stride;
    write_results(call_, states, tile_count(tile), data_of<char>(call_.out) + offset * out_size_,
                  plan_.kept.out_stride, plan_.reduced.size * plan_.outer_reduced_size);
  }

  const tutti_reduce& call_;
  const Plan& plan_;
  std::int64_t in_size_, out_size_;
  ReduceRows rows_;
  ReduceColumns columns_;
};

constexpr const char* kNames[TUTTI_REDUCTIONS] = {"sum", "mean", "amax", "amin", "prod", "sum_squares"};

// The result of nothing: 0, 1 or NaN in every element of out.
tutti_status write_empty(const tutti_reduce& call) {
  if (call.op == TUTTI_AMAX || call.op == TUTTI_AMIN) {
    return fail(TUTTI_INVALID, kNames[call.op], ": wanted at least one element to reduce, given ",
                describe(call.in));
  }
  const tutti_view* const views[] = {&call.out};
  const StridedLoop<1> loop = coalesce<1>(views);
  for_each_piece(loop, 0, numel(call.out), [&](char* const* data, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      State state = identity(call.op, is_floating(call.in.dtype));
      write_results(call, &state, 1, data[0] + i * loop.inner_stride(0), 1, 0);
    }
  });
  return TUTTI_OK;
}

}  // namespace

tutti_status reduce(const tutti_reduce* call) noexcept {
  const bool floating_in = is_floating(call->in.dtype);
  if (floating_in != is_floating(call->out.dtype) &&
      (floating_in || call->op == TUTTI_AMAX || call->op == TUTTI_AMIN)) {
    return fail(TUTTI_UNSUPPORTED, kNames[call->op], ": no kernel from ", dtype_text(call->in.dtype), " to ",
                dtype_text(call->out.dtype));
  }
  if (call->op == TUTTI_MEAN && !is_floating(call->out.dtype)) {
    return fail(TUTTI_UNSUPPORTED, "mean: wanted a floating dtype for the result, given ",
                dtype_text(call->out.dtype));
  }
  const std::int64_t results = numel(call->out);
  if (results == 0) return TUTTI_OK;
  const std::int64_t elements = numel(call->in);
  if (elements == 0) return write_empty(*call);
  if (results == 1 && elements <= kTileElements && is_contiguous(call->in)) {
    State state = identity(call->op, floating_in);
    reduce_loops().rows[loop_of(call->op)][call->in.dtype](call->in.data, 1, 0, elements, 1, &state);
    write_results(*call, &state, 1, call->out.data, 1, elements);
    return TUTTI_OK;
  }
  return guarded([&] {
    const Plan plan = make_plan(*call);
    Reduction(*call, plan).run();
  });
}

}  // namespace tutti::cpu
