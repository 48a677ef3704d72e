// SPDX-License-Identifier: Apache-2.0
#include "tutti/tensor/factories.hpp"

#include <cmath>
#include <cstring>

#include "backend/registry.hpp"
#include "device/devices.hpp"
#include "tensor/layout.hpp"
#include "tensor/raw.hpp"
#include "tensor/storage.hpp"

namespace tutti {

namespace {

Tensor filled(Tensor tensor, Scalar value, const char* op) {
  raw::fill(tensor, value, op);
  return tensor;
}

// Smallest i with start + i * step at or beyond end.
std::int64_t arange_count(Scalar start, Scalar end, Scalar step) {
  const bool floating = start.is_floating_point() || end.is_floating_point() || step.is_floating_point();
  const double first = start.to_double();
  const double last = end.to_double();
  const double by = step.to_double();
  TUTTI_CHECK(std::isfinite(first) && std::isfinite(last) && std::isfinite(by), ValueError,
              "arange: start, end and step must be finite, given ", first, ", ", last, ", ", by);
  TUTTI_CHECK(by != 0, ValueError, "arange: the step must not be 0");
  TUTTI_CHECK(by > 0 ? last >= first : last <= first, ValueError, "arange: a step of ", by,
              " does not lead from ", first, " to ", last);
  if (floating) {
    const double count = std::ceil((last - first) / by);
    TUTTI_CHECK(count < 0x1p62, ValueError, "arange: ", first, " to ", last, " by ", by,
                " are too many elements");
    return static_cast<std::int64_t>(count);
  }
  for (const Scalar number : {start, end, step}) raw::check_number("arange", DType::kInt64, number);
  // Unsigned: the distance may exceed 63 bits.
  const auto low = static_cast<std::uint64_t>(by > 0 ? start.to_int64() : end.to_int64());
  const auto high = static_cast<std::uint64_t>(by > 0 ? end.to_int64() : start.to_int64());
  const auto size = static_cast<std::uint64_t>(step.to_int64());
  const std::uint64_t distance = high - low;
  const std::uint64_t stride = by > 0 ? size : 0 - size;
  const std::uint64_t count = distance / stride + (distance % stride != 0 ? 1 : 0);
  TUTTI_CHECK(count < (std::uint64_t{1} << 62U), ValueError, "arange: ", first, " to ", last, " by ", by,
              " are too many elements");
  return static_cast<std::int64_t>(count);
}

// ValueError if an integer dtype can't hold all values as they are computed: whole steps from the whole part of start on.
void check_arange_values(Scalar start, Scalar step, std::int64_t count, DType dtype) {
  if (count == 0 || is_floating_point(dtype)) return;
  raw::check_number("arange", dtype, start);
  if (count == 1) return;
  raw::check_number("arange", DType::kInt64, step);
  __extension__ using Wide =
      __int128;  // start may lie so far below 0 that the steps alone have no place in 64 bits
  const Wide last = start.to_int64() + static_cast<Wide>(count - 1) * step.to_int64();
  const auto narrow = static_cast<std::int64_t>(last);
  raw::check_number("arange", dtype, narrow == last ? Scalar(narrow) : Scalar(static_cast<double>(last)));
}

DType arange_dtype(Scalar start, Scalar end, Scalar step) {
  const bool floating = start.is_floating_point() || end.is_floating_point() || step.is_floating_point();
  return floating ? DType::kFloat32 : DType::kInt64;
}

DType dtype_of_number(Scalar value) {
  switch (value.kind()) {
    case Scalar::Kind::kBool: return DType::kBool;
    case Scalar::Kind::kInteger: return DType::kInt64;
    case Scalar::Kind::kFloating: break;
  }
  return DType::kFloat32;
}

}  // namespace

Tensor raw::allocate(const Dims& sizes, DType dtype, Device device, const char* op) {
  const std::int64_t numel = detail::checked_numel(sizes, op);
  detail::Storage* storage = detail::allocate_storage(device, detail::checked_bytes(numel, dtype, op));
  return detail::make_tensor(storage, storage->data, dtype, sizes, contiguous_strides(sizes), numel, true);
}

Tensor empty(const Dims& sizes, DType dtype, Device device) {
  return raw::allocate(sizes, dtype, device, "empty");
}

Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype, Device device) {
  TUTTI_CHECK(sizes.size() == strides.size(), ShapeError, "empty_strided: sizes ", sizes, " and strides ",
              strides, " differ in length");
  const std::int64_t numel = detail::checked_numel(sizes, "empty_strided");
  const std::int64_t elements = detail::checked_extent(sizes, strides, "empty_strided");
  detail::Storage* storage =
      detail::allocate_storage(device, detail::checked_bytes(elements, dtype, "empty_strided"));
  return detail::make_tensor(storage, storage->data, dtype, sizes, strides, numel,
                             detail::is_row_major(sizes, strides));
}

Tensor zeros(const Dims& sizes, DType dtype, Device device) {
  return filled(raw::allocate(sizes, dtype, device, "zeros"), 0, "zeros");
}
Tensor ones(const Dims& sizes, DType dtype, Device device) {
  return filled(raw::allocate(sizes, dtype, device, "ones"), 1, "ones");
}
Tensor full(const Dims& sizes, Scalar value, DType dtype, Device device) {
  return filled(raw::allocate(sizes, dtype, device, "full"), value, "full");
}

Tensor arange(Scalar end) { return arange(0, end, 1); }

Tensor arange(Scalar start, Scalar end, Scalar step) {
  return arange(start, end, step, arange_dtype(start, end, step));
}

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype, Device device) {
  TUTTI_CHECK(dtype != DType::kBool, DTypeError, "arange: no sequence of bool");
  const std::int64_t count = arange_count(start, end, step);
  check_arange_values(start, step, count, dtype);
  const Tensor result = raw::allocate({count}, dtype, device, "arange");
  if (result.numel() == 0) return result;
  tutti_arange call;
  call.stream = current_stream(device).handle();
  call.start = raw::scalar_of(start, dtype);
  call.step = raw::scalar_of(step, dtype);
  raw::fill_view(call.out, result);
  const tutti_backend& backend = backend_of(device);
  backend::check(backend, backend.kernels.arange(&call), "arange");
  return result;
}

Tensor linspace(double start, double end, std::int64_t steps, DType dtype, Device device) {
  TUTTI_CHECK(steps >= 0, ValueError, "linspace: steps can't be negative, given ", steps);
  TUTTI_CHECK(dtype != DType::kBool, DTypeError, "linspace: no sequence of bool");
  const Tensor values = raw::allocate({steps}, DType::kFloat64, {}, "linspace");
  auto* out = reinterpret_cast<double*>(values.impl()->data);
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  // From both ends, so that the last value is `end` itself.
  for (std::int64_t i = 0; i < steps; ++i) {
    out[i] = i < steps - steps / 2 ? start + step * static_cast<double>(i)
                                   : end - step * static_cast<double>(steps - 1 - i);
  }
  if (dtype == DType::kFloat64 && device.is_cpu()) return values;
  Tensor result = empty({steps}, dtype, device);
  raw::copy(result, values);
  return result;
}

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, Device device) {
  if (columns == -1) columns = rows;
  Tensor result = filled(raw::allocate({rows, columns}, dtype, device, "eye"), 0, "eye");
  // The step down the diagonal can't overflow where there is one.
  if (result.numel() > 0) raw::fill(raw::as_strided(result, {std::min(rows, columns)}, {columns + 1}), 1);
  return result;
}

Tensor empty_like(const Tensor& other) {
  if (other.is_contiguous()) return empty(other.sizes(), other.dtype(), other.device());
  return empty_strided(other.sizes(), raw::dense_strides(other), other.dtype(), other.device());
}

Tensor zeros_like(const Tensor& other) { return filled(empty_like(other), 0, "zeros_like"); }
Tensor ones_like(const Tensor& other) { return filled(empty_like(other), 1, "ones_like"); }
Tensor full_like(const Tensor& other, Scalar value) { return filled(empty_like(other), value, "full_like"); }

Tensor scalar_tensor(Scalar value) { return scalar_tensor(value, dtype_of_number(value)); }
Tensor scalar_tensor(Scalar value, DType dtype, Device device) {
  return filled(empty({}, dtype, device), value, "scalar_tensor");
}

Tensor tensor(std::initializer_list<double> values, DType dtype) {
  const Tensor result = empty({static_cast<std::int64_t>(values.size())}, dtype);
  if (values.size() > 0) {
    // Only read: the view is the source of a copy.
    void* data = const_cast<void*>(static_cast<const void*>(values.begin()));
    raw::copy(result, from_blob(data, result.sizes(), DType::kFloat64));
  }
  return result;
}

namespace {

// Does not run `release` when it refuses; takes it over when it doesn't.
Tensor wrap(void* data, const Dims& sizes, DType dtype, const Dims& strides, Device device,
            std::function<void()>& release) {
  const std::int64_t numel = detail::checked_numel(sizes, "from_blob");
  TUTTI_CHECK(data != nullptr || numel == 0, ValueError, "from_blob: the memory of shape ", sizes,
              " is null");
  const bool row_major = strides.empty();
  TUTTI_CHECK(row_major || strides.size() == sizes.size(), ShapeError, "from_blob: sizes ", sizes,
              " and strides ", strides, " differ in length");
  const Dims actual = row_major ? raw::contiguous_strides(sizes) : strides;
  // The strides of an empty tensor may have wrapped around: only those that were given are checked.
  const std::int64_t elements = row_major ? numel : detail::checked_extent(sizes, strides, "from_blob");
  const std::size_t bytes = detail::checked_bytes(elements, dtype, "from_blob");
  detail::Storage* storage = detail::wrap_storage(device, data, bytes, std::move(release));
  return detail::make_tensor(storage, data, dtype, sizes, actual, numel, detail::is_row_major(sizes, actual));
}

}  // namespace

Tensor from_blob(void* data, const Dims& sizes, DType dtype, const Dims& strides, Device device,
                 std::function<void()> release) {
  try {
    return wrap(data, sizes, dtype, strides, device, release);
  } catch (...) {
    if (release) release();
    throw;
  }
}

namespace detail {

Tensor copy_in(const void* data, std::size_t count, const Dims& sizes, DType dtype) {
  const std::int64_t numel = checked_numel(sizes, "tensor");
  TUTTI_CHECK(static_cast<std::size_t>(numel) == count, ShapeError, "tensor: shape ", sizes, " wants ", numel,
              " elements, the vector has ", count);
  Tensor result = empty(sizes, dtype);
  if (count > 0) std::memcpy(result.impl()->data, data, count * size_of(dtype));
  return result;
}

}  // namespace detail

}  // namespace tutti
