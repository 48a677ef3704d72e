// SPDX-License-Identifier: Apache-2.0
// Pointwise kernels: out = f(in...). The inner loops (isa/pointwise_*.cpp) take contiguous arrays of one
// compute type.
//
//   all contiguous, few elements    one call of the inner loop, no other work
//   otherwise                       dims are merged; rows whose operands are contiguous (or, for functors of
//   two inputs,
//                                   one of them a single element) go to the inner loop as they are, other
//                                   rows through blocks on the stack
#include <type_traits>

#include "core/parallel_for.hpp"
#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/isa/pointwise.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/pointwise_rows.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

struct FunctorInfo {
  const char* name;
  int inputs;
  functors::Result result;
};

template <int N>
void run_strided(const PointwiseOperands& operands, const tutti_view* const (&views)[N]) {
  const StridedLoop<N> loop = coalesce(views);
  using Tiles = PointwiseTiles<N>;
  if (const int dim = Tiles::find_dim(operands, loop); dim >= 0) {
    const Tiles tiles(operands, loop, dim);
    const std::int64_t grain = tiles.strip_elements() >= kGrain ? 1 : kGrain / tiles.strip_elements();
    parallel_for(0, tiles.strips(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t strip = begin; strip < end; ++strip) tiles.run(strip);
    });
    return;
  }
  const PointwiseRows<N> rows(operands, loop);
  parallel_for(0, numel(*views[0]), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_piece(loop, begin, end, [&](char* const* data, std::int64_t count) { rows.run(data, count); });
  });
}

// Checks dtypes and finds the loops.
tutti_status resolve(const FunctorInfo& functor, const PointwiseRow& row, const tutti_pointwise* call,
                     PointwiseOperands& operands) {
  const bool where = functor.result == functors::Result::kWhere;
  operands.inputs = functor.inputs;
  operands.params = call->params;
  operands.out_dtype = call->out.dtype;
  int typed = where ? 1 : 0;
  if (typed == call->scalar_input) ++typed;
  operands.dtype =
      typed < functor.inputs ? call->in[typed].dtype : call->out.dtype;  // where(mask, 1, x): the dtype of x
  for (int i = 0; i < functor.inputs; ++i) {
    const std::int32_t wanted = where && i == 0 ? static_cast<std::int32_t>(TUTTI_BOOL) : operands.dtype;
    operands.in_dtypes[i] = wanted;
    if (i != call->scalar_input && call->in[i].dtype != wanted) {
      return fail(TUTTI_UNSUPPORTED, functor.name, ": wanted ", dtype_text(wanted), " as input ", i,
                  ", given ", dtype_text(call->in[i].dtype));
    }
  }
  const std::int32_t out_wanted =
      functor.result == functors::Result::kBool ? static_cast<std::int32_t>(TUTTI_BOOL) : operands.dtype;
  if (call->out.dtype != out_wanted) {
    return fail(TUTTI_UNSUPPORTED, functor.name, ": wanted ", dtype_text(out_wanted), " as result, given ",
                dtype_text(call->out.dtype));
  }
  operands.loops = &row.dtypes[operands.dtype];
  if (operands.loops->contiguous == nullptr) {
    return fail(TUTTI_UNSUPPORTED, functor.name, ": there is no kernel for ", dtype_text(operands.dtype));
  }
  return TUTTI_OK;
}

// All operands contiguous, or one of two a number, and few elements: no dims to merge, no threads.
bool run_small(const PointwiseOperands& operands, const tutti_pointwise* call, const void* scalar,
               std::int64_t count) {
  if (count > kGrain || compute_dtype(operands.dtype) != operands.dtype || !is_contiguous(call->out))
    return false;
  PointwiseLoop loop = operands.loops->contiguous;
  const void* in[3] = {};
  for (int i = 0; i < operands.inputs; ++i) {
    if (i == call->scalar_input) {
      loop = i == 0 ? operands.loops->first_scalar : operands.loops->second_scalar;
      if (loop == nullptr) return false;
      in[i] = scalar;
      continue;
    }
    if (!is_contiguous(call->in[i])) return false;
    in[i] = call->in[i].data;
  }
  loop(call->out.data, in, count, operands.params);
  return true;
}

tutti_status run(const FunctorInfo& functor, const PointwiseRow& row, const tutti_pointwise* call) {
  PointwiseOperands operands;
  if (const tutti_status status = resolve(functor, row, call, operands); status != TUTTI_OK) return status;
  const std::int64_t count = numel(call->out);
  if (count == 0) return TUTTI_OK;
  ScalarElement scalar;
  if (call->scalar_input >= 0) scalar = make_scalar(call->scalar, operands.in_dtypes[call->scalar_input]);
  if (run_small(operands, call, scalar.bytes, count)) return TUTTI_OK;

  const tutti_view* in[3] = {&call->in[0], &call->in[1], &call->in[2]};
  tutti_view scalar_view;
  if (call->scalar_input >= 0) {
    scalar_view = call->out;
    scalar_view.data = scalar.bytes;
    scalar_view.dtype = operands.in_dtypes[call->scalar_input];
    for (int d = 0; d < scalar_view.ndim; ++d) scalar_view.strides[d] = 0;
    in[call->scalar_input] = &scalar_view;
  }
  switch (functor.inputs) {
    case 1: run_strided<2>(operands, {&call->out, in[0]}); break;
    case 2: run_strided<3>(operands, {&call->out, in[0], in[1]}); break;
    default: run_strided<4>(operands, {&call->out, in[0], in[1], in[2]}); break;
  }
  return TUTTI_OK;
}

template <class F>
const PointwiseRow& row_of() {
  constexpr auto is_in = []<class... Fs>(functors::TypeList<Fs...>) {
    return (std::is_same_v<F, Fs> || ...);
  };
  if constexpr (is_in(functors::Arithmetic{})) {
    return arithmetic_loops().functors[functors::index_in<F>(functors::Arithmetic{})];
  } else if constexpr (is_in(functors::Activations{})) {
    return activation_loops().functors[functors::index_in<F>(functors::Activations{})];
  } else {
    return comparison_loops().functors[functors::index_in<F>(functors::Comparisons{})];
  }
}

template <class F>
tutti_status pointwise(const tutti_pointwise* call) {
  static constexpr FunctorInfo kInfo{F::kName, F::kInputs, F::kResult};
  return guarded([call] { return run(kInfo, row_of<F>(), call); });
}

template <class... Fs>
const tutti_pointwise_function* make_entries(functors::TypeList<Fs...>) {
  static constexpr tutti_pointwise_function kEntries[] = {&pointwise<Fs>...};
  return kEntries;
}

}  // namespace

const tutti_pointwise_function* pointwise_entries() noexcept { return make_entries(functors::Pointwise{}); }

}  // namespace tutti::cpu
