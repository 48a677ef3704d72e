// SPDX-License-Identifier: Apache-2.0
// Matrix product: checks, merges the batch, brings operands into a form that a route takes, and picks the
// route.
#include "kernels/cpu/matmul.hpp"

#include <algorithm>

#include "kernels/cpu/isa/matmul_kernels.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

using onednn::Purpose;

MatmulProblem batch_element(const MatmulProblem& problem, std::int64_t index) {
  MatmulProblem one = problem;
  std::int64_t a = 0, b = 0, out = 0;
  for (int d = problem.batch_ndim - 1; d >= 0; --d) {
    const std::int64_t i = index % problem.batch_sizes[d];
    index /= problem.batch_sizes[d];
    a += i * problem.a_batch[d];
    b += i * problem.b_batch[d];
    out += i * problem.out_batch[d];
  }
  one.batch_ndim = 0;
  one.a.data = static_cast<char*>(problem.a.data) + a * element_size(problem.dtype);
  one.b.data = static_cast<char*>(problem.b.data) + b * element_size(problem.dtype);
  one.out.data = static_cast<char*>(problem.out.data) + out * element_size(problem.out_dtype);
  return one;
}

namespace {

// Below this many multiplications the library's own f32 kernel beats a call of oneDNN.
constexpr std::int64_t kTiny = 2048;

bool is_onednn_dtype(std::int32_t dtype) {
  return dtype == TUTTI_F32 || dtype == TUTTI_BF16 || dtype == TUTTI_F16;
}

void check(const tutti_matmul& call) {
  const tutti_view &a = call.a, &b = call.b.view, &out = call.out;
  const int n = out.ndim;
  bool fits = n >= 2 && a.ndim == n && b.ndim == n;
  for (int d = 0; fits && d < n - 2; ++d) fits = a.sizes[d] == out.sizes[d] && b.sizes[d] == out.sizes[d];
  fits = fits && a.sizes[n - 2] == out.sizes[n - 2] && b.sizes[n - 1] == out.sizes[n - 1] &&
         a.sizes[n - 1] == b.sizes[n - 2];
  if (fits && call.bias.data) fits = call.bias.ndim == 1 && call.bias.sizes[0] == out.sizes[n - 1];
  if (!fits) {
    throw KernelError(
        TUTTI_INVALID,
        concat("matmul: wanted a [..., m, k], b [..., k, n], out [..., m, n], bias [n], given a ",
               describe(a), ", b ", describe(b), ", out ", describe(out),
               call.bias.data ? ", bias " + describe(call.bias) : std::string()));
  }
  const bool same =
      a.dtype == b.dtype && (!call.bias.data || call.bias.dtype == a.dtype || call.bias.dtype == out.dtype);
  const bool wide_result = out.dtype == TUTTI_F32 && (a.dtype == TUTTI_BF16 || a.dtype == TUTTI_F16);
  if (!same || (out.dtype != a.dtype && !wide_result) || a.dtype == TUTTI_BOOL) {
    throw KernelError(
        TUTTI_UNSUPPORTED,
        concat("matmul: wanted operands of one dtype (out may be float32 for half precisions), given a ",
               dtype_text(a.dtype), ", b ", dtype_text(b.dtype), ", out ", dtype_text(out.dtype)));
  }
  if (!is_floating(a.dtype) && call.epilogue == TUTTI_EPILOGUE_GELU) {
    throw KernelError(TUTTI_UNSUPPORTED, concat("matmul: no gelu for ", dtype_text(a.dtype)));
  }
}

// Batch dims of the views: those of size 1 vanish, neighbours that all operands walk through evenly merge.
void set_batch(MatmulProblem& problem, const tutti_view& a, const tutti_view& b, const tutti_view& out) {
  int& n = problem.batch_ndim;
  for (int d = 0; d < out.ndim - 2; ++d) {
    const std::int64_t size = out.sizes[d];
    if (size == 1) continue;
    const bool merges = n > 0 && problem.a_batch[n - 1] == size * a.strides[d] &&
                        problem.b_batch[n - 1] == size * b.strides[d] &&
                        problem.out_batch[n - 1] == size * out.strides[d];
    if (!merges) problem.batch_sizes[n++] = 1;
    problem.batch_sizes[n - 1] *= size;
    problem.a_batch[n - 1] = a.strides[d];
    problem.b_batch[n - 1] = b.strides[d];
    problem.out_batch[n - 1] = out.strides[d];
  }
  // One b for all: the batch is more rows of one product.
  if (n == 1 && problem.b_batch[0] == 0 && problem.a_batch[0] == problem.m * problem.a.row &&
      problem.out_batch[0] == problem.m * problem.out.row) {
    problem.m *= problem.batch_sizes[0];
    n = 0;
  }
}

MatmulProblem make_problem(const tutti_matmul& call) {
  const tutti_view &a = call.a, &b = call.b.view, &out = call.out;
  const int d = out.ndim;
  MatmulProblem problem;
  problem.dtype = a.dtype;
  problem.out_dtype = out.dtype;
  problem.m = out.sizes[d - 2];
  problem.n = out.sizes[d - 1];
  problem.k = a.sizes[d - 1];
  problem.a = {a.data, a.strides[d - 2], a.strides[d - 1]};
  problem.b = {b.data, b.strides[d - 2], b.strides[d - 1]};
  problem.out = {out.data, out.strides[d - 2], out.strides[d - 1]};
  problem.bias = call.bias.data;
  problem.bias_dtype = call.bias.dtype;
  problem.bias_stride = problem.n > 1 && call.bias.data ? call.bias.strides[0] : 1;
  problem.epilogue = call.epilogue;
  problem.accumulate = call.beta != 0.0;
  problem.slot = call.b.slot;
  problem.version = call.b.version;
  set_batch(problem, a, b, out);
  return problem;
}

// ---- copies into workspace ----------------------------------------------------------------------------------------

// A view [batch..., rows, columns] of an operand.
tutti_view operand_view(const MatmulProblem& problem, const MatrixView& matrix,
                        const std::int64_t* batch_strides, std::int32_t dtype, std::int64_t rows,
                        std::int64_t columns) {
  tutti_view view{};
  view.data = matrix.data;
  view.dtype = dtype;
  view.ndim = problem.batch_ndim + 2;
  for (int d = 0; d < problem.batch_ndim; ++d) {
    view.sizes[d] = problem.batch_sizes[d];
    view.strides[d] = batch_strides[d];
  }
  view.sizes[view.ndim - 2] = rows;
  view.sizes[view.ndim - 1] = columns;
  view.strides[view.ndim - 2] = matrix.row;
  view.strides[view.ndim - 1] = matrix.column;
  return view;
}

tutti_view contiguous_like(const tutti_view& view, std::int32_t dtype, Purpose purpose) {
  tutti_view copy = view;
  copy.dtype = dtype;
  std::int64_t count = 1;
  for (int d = view.ndim - 1; d >= 0; --d) {
    copy.strides[d] = view.strides[d] == 0 && d < view.ndim - 2 ? 0 : count;  // a broadcast batch stays one
    if (copy.strides[d] != 0) count *= view.sizes[d];
  }
  copy.data = onednn::workspace(purpose, static_cast<std::size_t>(count * element_size(dtype)));
  return copy;
}

void copy_view(const tutti_view& out, const tutti_view& in) {
  tutti_copy call{};
  call.out = out;
  call.in = in;
  // A broadcast batch dim has one copy.
  for (int d = 0; d < out.ndim; ++d) {
    if (out.strides[d] == 0) call.out.sizes[d] = call.in.sizes[d] = 1;
  }
  const tutti_status status = copy(&call);
  if (status != TUTTI_OK) throw KernelError(status, "matmul: an operand could not be copied");
}

// oneDNN takes rows or columns that are dense and don't overlap. A dim of size 1 gets the stride that helps.
bool make_dense(MatrixView& matrix, std::int64_t rows, std::int64_t columns) {
  if (columns == 1) matrix.column = 1;
  if (rows == 1 && columns > 1 && matrix.column == 1) matrix.row = columns;
  if (rows == 1 && matrix.column != 1) matrix.row = 1;
  return (matrix.column == 1 && matrix.row >= columns) || (matrix.row == 1 && matrix.column >= rows);
}

}  // namespace

void take_contiguous(const MatmulProblem& problem, MatrixView& matrix, std::int64_t* batch_strides,
                     std::int32_t from, std::int32_t to, std::int64_t rows, std::int64_t columns,
                     Purpose purpose) {
  const tutti_view view = operand_view(problem, matrix, batch_strides, from, rows, columns);
  const tutti_view copied = contiguous_like(view, to, purpose);
  copy_view(copied, view);
  for (int d = 0; d < problem.batch_ndim; ++d) batch_strides[d] = copied.strides[d];
  matrix = {copied.data, columns, 1};
}

void matmul_onednn_any_strides(MatmulProblem problem) {
  if (!make_dense(problem.a, problem.m, problem.k)) {
    take_contiguous(problem, problem.a, problem.a_batch, problem.dtype, problem.dtype, problem.m, problem.k,
                    Purpose::kLeft);
  }
  if (!make_dense(problem.b, problem.k, problem.n)) {
    take_contiguous(problem, problem.b, problem.b_batch, problem.dtype, problem.dtype, problem.k, problem.n,
                    Purpose::kRight);
    problem.slot = nullptr;
  }
  if (problem.bias && problem.bias_stride != 1) {
    const tutti_view bias{problem.bias, problem.bias_dtype, 1, {problem.n}, {problem.bias_stride}};
    const tutti_view dense = contiguous_like(bias, problem.bias_dtype, Purpose::kBias);
    copy_view(dense, bias);
    problem.bias = dense.data;
    problem.bias_stride = 1;
  }
  if (make_dense(problem.out, problem.m, problem.n) && problem.out.column == 1) {
    matmul_onednn(problem);
    return;
  }
  const MatmulProblem original = problem;
  const tutti_view out =
      operand_view(original, original.out, original.out_batch, problem.out_dtype, problem.m, problem.n);
  const tutti_view dense = contiguous_like(out, problem.out_dtype, Purpose::kResult);
  if (problem.accumulate) copy_view(dense, out);
  problem.out = {dense.data, problem.n, 1};
  for (int d = 0; d < problem.batch_ndim; ++d) problem.out_batch[d] = dense.strides[d];
  matmul_onednn(problem);
  copy_view(out, dense);
}

namespace {

// Half precisions on CPUs that can't multiply them: everything in f32, rounded once at the end.
void run_through_f32(const MatmulProblem& original, bool only_ours) {
  MatmulProblem problem = original;
  problem.dtype = problem.out_dtype = problem.bias_dtype = TUTTI_F32;
  problem.slot = nullptr;
  take_contiguous(original, problem.a, problem.a_batch, original.dtype, TUTTI_F32, problem.m, problem.k,
                  Purpose::kLeft);
  take_contiguous(original, problem.b, problem.b_batch, original.dtype, TUTTI_F32, problem.k, problem.n,
                  Purpose::kRight);
  if (problem.bias) {
    const tutti_view bias{original.bias, original.bias_dtype, 1, {problem.n}, {original.bias_stride}};
    const tutti_view dense = contiguous_like(bias, TUTTI_F32, Purpose::kBias);
    copy_view(dense, bias);
    problem.bias = dense.data;
    problem.bias_stride = 1;
  }
  const tutti_view out =
      operand_view(original, original.out, original.out_batch, original.out_dtype, problem.m, problem.n);
  const tutti_view dense = contiguous_like(out, TUTTI_F32, Purpose::kResult);
  if (problem.accumulate) copy_view(dense, out);
  problem.out = {dense.data, problem.n, 1};
  for (int d = 0; d < problem.batch_ndim; ++d) problem.out_batch[d] = dense.strides[d];
  only_ours ? matmul_blocked(problem) : matmul_onednn(problem);
  copy_view(out, dense);
}

bool multiplies_natively(std::int32_t dtype) {
  if (dtype == TUTTI_BF16) return onednn::capabilities().bf16;
  if (dtype == TUTTI_F16) return onednn::capabilities().f16;
  return true;
}

void run(const tutti_matmul& call) {
  check(call);
  if (numel(call.out) == 0) return;
  const MatmulProblem problem = make_problem(call);
  // Nothing to multiply, or a sum after a relu, which is ours alone.
  const bool only_ours = problem.k == 0 || (problem.accumulate && problem.epilogue == TUTTI_EPILOGUE_RELU);
  const bool tiny = problem.m * problem.n * problem.k <= kTiny;
  if (!is_onednn_dtype(problem.dtype) || (problem.dtype == TUTTI_F32 && (only_ours || tiny))) {
    matmul_blocked(problem);
  } else if (only_ours || !multiplies_natively(problem.dtype)) {
    run_through_f32(problem, only_ours);
  } else if (problem.dtype == TUTTI_F32 && call.precision > 0) {
    matmul_reduced_precision(problem, call.precision);
  } else {
    matmul_onednn_any_strides(problem);
  }
}

}  // namespace

tutti_status matmul(const tutti_matmul* call) noexcept {
  return guarded([&] { run(*call); });
}

}  // namespace tutti::cpu
