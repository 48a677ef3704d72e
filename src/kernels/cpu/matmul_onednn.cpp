// SPDX-License-Identifier: Apache-2.0
// Runs oneDNN's matrix product over parts of the result. The parts' borders depend on the shape alone and
// each part is one single-threaded call, so the bits don't depend on the number of threads.
//
//        n
//   +----+----+--+       Few rows: parts are columns of the result.
//   |part|part|  |       Many: strips of rows, cut into columns as well until there are about kLeastParts; b is
// m +----+----+--+       re-packed once for all strips, where each would re-pack it otherwise. A weight is packed
//   |part|part|  |       from its second use on too, and stays packed until it changes.
//   +----+----+--+
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/integers.hpp"
#include "core/parallel_for.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/onednn/packed_weights.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

namespace {

using namespace onednn;

constexpr std::int64_t kLeastColumns = 128;
constexpr std::int64_t kLeastParts = 8;
constexpr std::int64_t kBatchWork = 1 << 18;  // multiplications worth a task, for whole matrices of a batch
constexpr std::int64_t kPackElements = 1 << 14;  // below, oneDNN re-packs b faster than a call of ours could

enum KeyKind : std::int64_t { kProduct = 1, kPack = 2 };

// How one product is cut.
struct Grid {
  std::int64_t rows, columns;  // of a whole part; the last may be smaller
  std::int64_t row_parts, column_parts;
};

// What is worth a part depends on the speed of the multipliers. Measured on one core.
struct Thresholds {
  std::int64_t split_rows;  // from so many rows on, strips of part_rows rows
  std::int64_t part_rows;
  std::int64_t part_work;  // multiplications worth a part of their own
};

Thresholds thresholds_of(std::int32_t dtype) {
  if (dtype == TUTTI_F32) return {384, 128, 1 << 24};
  return {512, 256, 1 << 26};
}

Grid grid_of(const MatmulProblem& one) {
  Grid grid{one.m, one.n, 1, 1};
  const Thresholds limit = thresholds_of(one.dtype);
  if (one.m * one.n * one.k > limit.part_work) {
    std::int64_t columns = 0;
    if (one.m >= limit.split_rows) {
      grid.rows = limit.part_rows;
      columns = one.n / std::max<std::int64_t>(1, kLeastParts * grid.rows / one.m);
    }
    columns = std::max({columns, kLeastColumns, limit.part_work / (grid.rows * one.k)});
    grid.columns = std::min(one.n, round_up(columns, kLeastColumns));
  }
  grid.row_parts = divide_up(one.m, grid.rows);
  grid.column_parts = divide_up(one.n, grid.columns);
  return grid;
}

// One call of oneDNN: what the primitive depends on.
struct Part {
  std::int32_t dtype, out_dtype, bias_dtype;  // bias_dtype -1: none
  PostOps post_ops;
  std::int64_t m, n, k;
  std::int64_t a_row, a_column, b_row, b_column, out_row;
  std::int64_t packed_rows;  // 0: b as it is; else in the layout that oneDNN prefers for so many rows
};

Key key_of(const Part& part, KeyKind kind) {
  return {{kind, part.dtype | part.out_dtype << 8 | (part.bias_dtype + 1) << 16,
           part.post_ops.gelu | part.post_ops.accumulate << 1, part.m, part.n, part.k, part.a_row,
           part.a_column, part.b_row, part.b_column, part.out_row, part.packed_rows}};
}

Part part_of(const MatmulProblem& one) {
  return {one.dtype,
          one.out_dtype,
          one.bias ? one.bias_dtype : -1,
          {one.epilogue == TUTTI_EPILOGUE_GELU, one.accumulate},
          one.m,
          one.n,
          one.k,
          one.a.row,
          one.a.column,
          one.b.row,
          one.b.column,
          one.out.row,
          0};
}

dnnl::matmul::primitive_desc describe_part(const Part& part, std::int64_t m, const Desc& b) {
  const Desc a({m, part.k}, data_type(part.dtype), Dims{part.a_row, part.a_column});
  const Desc out({m, part.n}, data_type(part.out_dtype), Dims{part.out_row, 1});
  if (part.bias_dtype < 0) return matmul_desc(a, b, nullptr, out, part.post_ops);
  const Desc bias({1, part.n}, data_type(part.bias_dtype), Dims{part.n, 1});
  return matmul_desc(a, b, &bias, out, part.post_ops);
}

// b's layout for parts of packed_rows rows; smaller last parts use the same. Asked for one thread, wherever it is called from:
// what oneDNN prefers depends on the number of threads.
Desc packed_layout(const Part& part) {
  const SerialScope serial;
  const Desc any({part.k, part.n}, data_type(part.dtype), dnnl::memory::format_tag::any);
  Part plain = part;
  plain.post_ops = {};
  if (plain.a_row == 1) plain.a_column = part.packed_rows;
  return describe_part(plain, part.packed_rows, any).weights_desc();
}

Executable& product(const Part& part) {
  return cached(key_of(part, kProduct), [&] {
    const Desc b = part.packed_rows != 0
                       ? packed_layout(part)
                       : Desc({part.k, part.n}, data_type(part.dtype), Dims{part.b_row, part.b_column});
    const auto description = describe_part(part, part.m, b);
    const dnnl::matmul primitive(description);
    if (part.bias_dtype < 0) {
      return std::make_unique<Executable>(
          description, primitive,
          std::vector<Executable::Argument>{{DNNL_ARG_SRC, description.src_desc()},
                                            {DNNL_ARG_WEIGHTS, description.weights_desc()},
                                            {DNNL_ARG_DST, description.dst_desc()}});
    }
    return std::make_unique<Executable>(
        description, primitive,
        std::vector<Executable::Argument>{{DNNL_ARG_SRC, description.src_desc()},
                                          {DNNL_ARG_WEIGHTS, description.weights_desc()},
                                          {DNNL_ARG_DST, description.dst_desc()},
                                          {DNNL_ARG_BIAS, description.bias_desc()}});
  });
}

// A copy, so that it may run on oneDNN's own team.
Executable& pack(const Part& part) {
  Key key = key_of(part, kPack);
  key.words[12] = omp_get_max_threads();
  return cached(key, [&] {
    const Desc plain({part.k, part.n}, data_type(part.dtype), Dims{part.b_row, part.b_column});
    return make_reorder(plain, packed_layout(part));
  });
}

const char* advance(const void* data, std::int64_t elements, std::int32_t dtype) {
  return static_cast<const char*>(data) + elements * element_size(dtype);
}

// Packed column parts lie one after the other; all but the last have the same size.
struct PackedB {
  const char* data = nullptr;
  std::int64_t part_bytes = 0;
};

// A part whose operands are dense, with b packed.
Part packed_part(const MatmulProblem& one, const Grid& grid, std::int64_t rows, std::int64_t columns) {
  Part part = part_of(one);
  part.m = rows;
  part.n = columns;
  part.a_row = one.a.column == 1 ? one.k : 1;
  part.a_column = one.a.column == 1 ? 1 : rows;
  part.out_row = columns;
  part.packed_rows = grid.rows;
  return part;
}

Part column_part(const MatmulProblem& one, const Grid& grid, std::int64_t column_index) {
  return packed_part(one, grid, grid.rows, std::min(grid.columns, one.n - column_index * grid.columns));
}

std::int64_t packed_bytes(const Part& part) {
  return round_up(static_cast<std::int64_t>(pack(part).desc_of(DNNL_ARG_TO).get_size()), kAlignment);
}

void pack_all(const MatmulProblem& one, const Grid& grid, std::int64_t part_bytes, void* memory) {
  for (std::int64_t j = 0; j < grid.column_parts; ++j) {
    const char* b = advance(one.b.data, j * grid.columns * one.b.column, one.dtype);
    pack(column_part(one, grid, j)).run({b, static_cast<char*>(memory) + j * part_bytes});
  }
}

void copy_rows(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride, std::int64_t rows,
               std::int64_t bytes) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::memcpy(out + r * out_stride, in + r * in_stride, static_cast<std::size_t>(bytes));
  }
}

// A matrix without gaps between its rows (or columns): itself, or a copy in this thread's workspace.
const char* without_gaps(const char* data, std::int64_t rows, std::int64_t columns, std::int64_t& row,
                         std::int64_t& column, std::int64_t size, Purpose purpose) {
  const bool by_rows = column == 1;
  std::int64_t& stride = by_rows ? row : column;
  const std::int64_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
  if (stride == length || lines == 1) {
    stride = length;
    return data;
  }
  char* copy = static_cast<char*>(workspace(purpose, static_cast<std::size_t>(lines * length * size)));
  copy_rows(copy, length * size, data, stride * size, lines, length * size);
  stride = length;
  return copy;
}

// Whether copying strided parts of b, a and the result costs less than oneDNN loses on strides: its brgemm kernels take none, and
// what runs in their place has, in bf16, half their speed.
bool are_worth_copies(const Part& part) {
  return part.m >= (part.dtype == TUTTI_F32 ? 256 : 128) && part.n >= 128 && part.k >= 256;
}

void run_part(const MatmulProblem& one, const Grid& grid, const PackedB& packed, std::int64_t index) {
  const std::int64_t row = index / grid.column_parts * grid.rows;
  const std::int64_t column_index = index % grid.column_parts, column = column_index * grid.columns;
  Part part = part_of(one);
  part.m = std::min(grid.rows, one.m - row);
  part.n = std::min(grid.columns, one.n - column);
  const std::int64_t size = element_size(one.dtype), out_size = element_size(one.out_dtype);
  const char* a = advance(one.a.data, row * one.a.row, one.dtype);
  const char* b = advance(one.b.data, column * one.b.column, one.dtype);
  char* const out = const_cast<char*>(advance(one.out.data, row * one.out.row + column, one.out_dtype));
  char* target = out;
  if (packed.data || are_worth_copies(part)) {
    a = without_gaps(a, part.m, part.k, part.a_row, part.a_column, size, Purpose::kPartLeft);
    if (packed.data) {
      part.packed_rows = grid.rows;
      part.b_row = part.b_column = 0;
      b = packed.data + column_index * packed.part_bytes;
    } else {
      b = without_gaps(b, part.k, part.n, part.b_row, part.b_column, size, Purpose::kPartRight);
    }
    if (part.out_row != part.n && part.m > 1) {
      target = static_cast<char*>(
          workspace(Purpose::kPartResult, static_cast<std::size_t>(part.m * part.n * out_size)));
      if (one.accumulate)
        copy_rows(target, part.n * out_size, out, one.out.row * out_size, part.m, part.n * out_size);
    }
    part.out_row = part.n;
  }
  Executable& executable = product(part);
  one.bias ? executable.run({a, b, target, advance(one.bias, column, one.bias_dtype)})
           : executable.run({a, b, target});
  if (one.epilogue == TUTTI_EPILOGUE_RELU) {
    for (std::int64_t i = 0; i < part.m; ++i)
      relu(target + i * part.out_row * out_size, part.n, one.out_dtype);
  }
  if (target != out)
    copy_rows(out, one.out.row * out_size, target, part.n * out_size, part.m, part.n * out_size);
}

// Whether packing leaves the bits of a part alone: oneDNN's brgemm kernels walk k in order whatever b's layout. Then a
// weight may be packed from its second use on.
bool packing_keeps_bits(const MatmulProblem& one, const Part& packed) {
  const SerialScope serial;
  Part plain = packed;
  plain.packed_rows = 0;
  if (are_worth_copies(plain)) {
    (one.b.column == 1 ? plain.b_row : plain.b_column) = one.b.column == 1 ? plain.n : plain.k;
  } else {
    plain.a_row = one.a.row;
    plain.a_column = one.a.column;
    plain.out_row = one.out.row;
  }
  return product(packed).is_brgemm() && product(plain).is_brgemm();
}

// b packed for this call, or kept with its weight; no data if it is used as it is.
PackedB packed_b(const MatmulProblem& one, const Grid& grid, std::shared_ptr<const void>& kept) {
  PackedB packed;
  const bool needed = grid.row_parts > 1;
  if (one.n * one.k < kPackElements || !(needed || one.slot)) return packed;
  const Part whole = column_part(one, grid, 0), last = column_part(one, grid, grid.column_parts - 1);
  // The last part may be too narrow for the kernels of the others.
  if (!needed && !(packing_keeps_bits(one, whole) && packing_keeps_bits(one, last))) return packed;
  std::optional<SerialScope> serial;
  if (omp_in_parallel()) serial.emplace();
  packed.part_bytes = packed_bytes(whole);
  const auto bytes =
      static_cast<std::size_t>((grid.column_parts - 1) * packed.part_bytes + packed_bytes(last));
  const auto fill = [&](void* memory) { pack_all(one, grid, packed.part_bytes, memory); };
  if (one.slot) {
    tutti_weight weight{};
    weight.slot = one.slot;
    weight.version = one.version;
    Key layout = key_of(whole, kPack);
    layout.words[12] = one.n;
    layout.words[13] =
        reinterpret_cast<std::intptr_t>(one.b.data);  // a slot's weight may be read through several views
    kept = packed_copy(weight, layout, bytes, needed ? PackWhen::kFirstUse : PackWhen::kSecondUse, fill);
    packed.data = static_cast<const char*>(kept.get());
  } else {
    void* memory = workspace(Purpose::kPacked, bytes);
    fill(memory);
    packed.data = static_cast<const char*>(memory);
  }
  return packed;
}

void run_one(const MatmulProblem& one, const Grid& grid) {
  std::shared_ptr<const void> kept;
  const PackedB packed = packed_b(one, grid, kept);
  parallel_for(0, grid.row_parts * grid.column_parts, 1, [&](std::int64_t begin, std::int64_t end) {
    const SerialScope serial;
    for (std::int64_t i = begin; i < end; ++i) run_part(one, grid, packed, i);
  });
}

}  // namespace

void matmul_onednn(const MatmulProblem& problem) {
  const Grid grid = grid_of(problem);
  const std::int64_t batches = problem.batches();
  if (batches == 1) return run_one(problem, grid);
  if (grid.row_parts * grid.column_parts >
      1) {  // large matrices: one after the other, each on the whole team
    for (std::int64_t i = 0; i < batches; ++i) run_one(batch_element(problem, i), grid);
    return;
  }
  const std::int64_t work = std::max<std::int64_t>(1, problem.m * problem.n * problem.k);
  parallel_for(0, batches, std::max<std::int64_t>(1, kBatchWork / work),
               [&](std::int64_t begin, std::int64_t end) {
                 const SerialScope serial;
                 for (std::int64_t i = begin; i < end; ++i) run_part(batch_element(problem, i), grid, {}, 0);
               });
}

}  // namespace tutti::cpu
