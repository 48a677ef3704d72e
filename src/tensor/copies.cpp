// SPDX-License-Identifier: Apache-2.0
// Copies, conversions and fills: everything in raw.hpp that runs a kernel.
#include <limits>

#include "backend/registry.hpp"
#include "device/devices.hpp"
#include "tensor/layout.hpp"
#include "tensor/raw.hpp"
#include "tensor/storage.hpp"

namespace tutti::raw {

void fill_view(tutti_view& view, const Tensor& tensor) {
  const detail::TensorImpl& impl = *tensor.impl();
  view.data = impl.data;
  view.dtype = static_cast<std::int32_t>(impl.dtype);
  view.ndim = impl.sizes.size();
  for (int d = 0; d < impl.sizes.size(); ++d) {
    view.sizes[d] = impl.sizes[d];
    view.strides[d] = impl.strides[d];
  }
}

tutti_view view_of(const Tensor& tensor) {
  tutti_view view{};
  fill_view(view, tensor);
  return view;
}

void fill_view_broadcast(tutti_view& view, const Tensor& tensor, const Dims& sizes) {
  const detail::TensorImpl& impl = *tensor.impl();
  view.data = impl.data;
  view.dtype = static_cast<std::int32_t>(impl.dtype);
  view.ndim = sizes.size();
  const int added = sizes.size() - impl.sizes.size();
  for (int d = 0; d < sizes.size(); ++d) {
    const bool own = d >= added && impl.sizes[d - added] != 1;
    view.sizes[d] = sizes[d];
    view.strides[d] = own ? impl.strides[d - added] : 0;
  }
}

void check_writable(const Tensor& out, std::string_view what) {
  TUTTI_CHECK(out.impl()->is_contiguous || !detail::may_overlap_itself(out.sizes(), out.strides()),
              ShapeError, what, ": elements of the tensor to be written share memory (shape ", out.sizes(),
              ", strides ", out.strides(), ", an expanded view?); clone() it first");
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.impl()->data == b.impl()->data && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

bool memory_is_disjoint(const Tensor& out, const Tensor& in) {
  if (!out.shares_storage(in)) return true;
  const auto end = [](const Tensor& tensor) {
    const std::int64_t elements = detail::extent(tensor.sizes(), tensor.strides());
    return tensor.impl()->data + elements * static_cast<std::int64_t>(tensor.element_size());
  };
  return end(out) <= in.impl()->data || end(in) <= out.impl()->data;
}

namespace {

tutti_stream stream_on(const Tensor& tensor) { return current_stream(tensor.device()).handle(); }

void check_copy_shapes(const Tensor& out, const Tensor& in) {
  bool fits = in.dim() <= out.dim();
  for (int d = 1; fits && d <= in.dim(); ++d) {
    const std::int64_t size = in.sizes()[in.dim() - d];
    fits = size == 1 || size == out.sizes()[out.dim() - d];
  }
  TUTTI_CHECK(fits, ShapeError, "copy: shape ", in.sizes(), " does not broadcast to ", out.sizes());
  check_writable(out, "copy");
}

// Both on one device.
void copy_on_device(const Tensor& out, const Tensor& in) {
  tutti_copy call;
  call.stream = stream_on(out);
  fill_view(call.out, out);
  fill_view_broadcast(call.in, in, out.sizes());
  const tutti_backend& backend = backend_of(out.device());
  backend::check(backend, backend.kernels.copy(&call), "copy");
}

// Equal dtypes and shapes, both dense with equal strides: the bytes as they lie.
void copy_bytes(const Tensor& out, const Tensor& in) {
  // The backend of the device, where one side is the host.
  const Device device = out.device().is_cpu() ? in.device() : out.device();
  const tutti_backend& backend = backend_of(device);
  const tutti_stream stream = current_stream(device).handle();
  const std::size_t bytes = static_cast<std::size_t>(in.numel()) * in.element_size();
  backend::check(backend,
                 backend.memory.copy(stream, out.impl()->data, out.device().is_cpu() ? 0 : 1, in.impl()->data,
                                     in.device().is_cpu() ? 0 : 1, bytes),
                 "copy between devices");
  if (out.device().is_cpu()) backend::check(backend, backend.streams.synchronize(stream), "copy to the host");
}

// Conversion and broadcasting happen on one side each, so that the bytes in between are as few as can be.
void copy_across_devices(const Tensor& out, const Tensor& in) {
  const bool in_place = raw::is_dense(in) && in.sizes() == out.sizes() && in.dtype() == out.dtype();
  Tensor source = in;
  if (!in_place) source = contiguous(in.element_size() > out.element_size() ? to_dtype(in, out.dtype()) : in);
  if (in_place && out.strides() == in.strides()) {
    copy_bytes(out, source);
    return;
  }
  const Tensor staged = empty_strided(source.sizes(), source.strides(), source.dtype(), out.device());
  copy_bytes(staged, source);
  copy_on_device(out, staged);
}

// A number beyond int64, of a C++ type without sign: kept modulo 2^64, its value as double is right.
bool is_beyond_int64(Scalar value) {
  return !value.is_floating_point() && value.to_int64() < 0 && value.to_double() > 0;
}

template <class T>
bool holds(Scalar value) {
  if (is_beyond_int64(value)) return false;
  if (!value.is_floating_point()) {
    return value.to_int64() >= std::numeric_limits<T>::min() &&
           value.to_int64() <= std::numeric_limits<T>::max();
  }
  // The number behind the greatest is a power of two: exact as double where the greatest itself is not.
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  const double beyond = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  return (value.to_double() > least - 1 || value.to_double() == least) && value.to_double() < beyond;
}

std::string text_of(Scalar value) {
  if (value.is_floating_point()) return concat(value.to_double());
  return is_beyond_int64(value) ? concat(static_cast<std::uint64_t>(value.to_int64()))
                                : concat(value.to_int64());
}

}  // namespace

bool holds(DType dtype, Scalar number) {
  switch (dtype) {
    case DType::kInt64: return holds<std::int64_t>(number);
    case DType::kInt32: return holds<std::int32_t>(number);
    case DType::kInt16: return holds<std::int16_t>(number);
    case DType::kInt8: return holds<std::int8_t>(number);
    case DType::kUInt8: return holds<std::uint8_t>(number);
    default: return true;
  }
}

void copy(const Tensor& out, const Tensor& in) {
  check_copy_shapes(out, in);
  if (out.numel() == 0 || is_same_view(out, in)) return;
  if (out.device() != in.device()) {
    copy_across_devices(out, in);
    return;
  }
  if (memory_is_disjoint(out, in)) {
    copy_on_device(out, in);
    return;
  }
  TUTTI_CHECK(!is_dense(out) || !is_dense(in), ShapeError,
              "copy: source and destination overlap in memory (shapes ", in.sizes(), " and ", out.sizes(),
              " at offsets ", in.storage_offset(), " and ", out.storage_offset(),
              "); clone() the source first");
  // Interleaved views may have no element in common.
  copy_on_device(out, clone(in));
}

tutti_scalar scalar_of(Scalar value, DType dtype) {
  if (dtype == DType::kBool) return {value.to_double(), value.to_double() != 0 ? 1 : 0};
  return {value.to_double(), value.to_int64()};
}

void check_number(const char* op, DType dtype, Scalar number, Negatives negatives) {
  const bool wraps = negatives == Negatives::kWrap && dtype == DType::kUInt8 && number.to_double() < 0 &&
                     number.to_double() >= -std::numeric_limits<std::uint8_t>::max();
  TUTTI_CHECK(wraps || holds(dtype, number), ValueError, op, ": ", dtype, " can't hold the value ",
              text_of(number));
}

void fill(const Tensor& out, Scalar value, const char* op) {
  check_number(op, out.dtype(), value);
  if (out.numel() == 0) return;
  tutti_fill call;
  call.stream = stream_on(out);
  call.value = scalar_of(value, out.dtype());
  fill_view(call.out, out);
  const tutti_backend& backend = backend_of(out.device());
  backend::check(backend, backend.kernels.fill(&call), "fill");
}

Tensor contiguous(const Tensor& tensor, MemoryFormat format) {
  if (tensor.is_contiguous(format)) return tensor;
  const Dims strides = format == MemoryFormat::kContiguous ? contiguous_strides(tensor.sizes())
                                                           : channels_last_strides(tensor.sizes());
  Tensor result = empty_strided(tensor.sizes(), strides, tensor.dtype(), tensor.device());
  copy(result, tensor);
  return result;
}

Tensor to_dtype(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor result = empty_strided(tensor.sizes(), dense_strides(tensor), dtype, tensor.device());
  copy(result, tensor);
  return result;
}

Tensor clone(const Tensor& tensor) {
  Tensor result = empty_like(tensor);
  copy(result, tensor);
  return result;
}

Tensor sum_to_size(const Tensor& tensor, const Dims& sizes) {
  if (tensor.sizes() == sizes) return tensor;
  const int added = tensor.dim() - sizes.size();
  TUTTI_CHECK(added >= 0, ShapeError, "sum_to_size: shape ", tensor.sizes(), " has fewer dims than ", sizes);
  Dims kept = tensor.sizes();
  std::uint32_t mask = 0;
  for (int d = 0; d < tensor.dim(); ++d) {
    const std::int64_t wanted = d < added ? 1 : sizes[d - added];
    if (d >= added && wanted == kept[d]) continue;
    TUTTI_CHECK(wanted == 1, ShapeError, "sum_to_size: shape ", tensor.sizes(), " is not a broadcast of ",
                sizes);
    kept[d] = 1;
    mask |= 1U << static_cast<unsigned>(d);
  }
  const Tensor sum = empty(kept, tensor.dtype(), tensor.device());
  tutti_reduce call;
  call.stream = stream_on(tensor);
  call.op = TUTTI_SUM;
  call.dims = mask;
  fill_view(call.out, sum);
  fill_view(call.in, tensor);
  const tutti_backend& backend = backend_of(tensor.device());
  backend::check(backend, backend.kernels.reduce(&call), "sum");
  return added == 0 ? sum : view(sum, sizes);
}

}  // namespace tutti::raw
