// SPDX-License-Identifier: Apache-2.0
// Tensor's members that autograd has no part in.
#include "tutti/tensor/tensor.hpp"

#include <cstring>
#include <ostream>

#include "backend/registry.hpp"
#include "device/devices.hpp"
#include "tensor/format.hpp"
#include "tensor/raw.hpp"

namespace tutti {

void Tensor::throw_undefined() { throw Error("the tensor is undefined"); }

void Tensor::check_dtype(DType wanted) const {
  TUTTI_CHECK(checked().dtype == wanted, DTypeError, "data: the tensor is ", impl_->dtype, ", asked for as ",
              wanted);
}

std::int64_t Tensor::size(int dim) const {
  const Dims& all = sizes();
  TUTTI_CHECK(!all.empty(), IndexError, "size: a 0-dim tensor has no dim ", dim);
  return all[raw::normalize_dim(dim, all.size(), "size")];
}

std::int64_t Tensor::stride(int dim) const {
  const Dims& all = strides();
  TUTTI_CHECK(!all.empty(), IndexError, "stride: a 0-dim tensor has no dim ", dim);
  return all[raw::normalize_dim(dim, all.size(), "stride")];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  const detail::TensorImpl& impl = checked();
  if (format == MemoryFormat::kContiguous) return impl.is_contiguous;
  if (impl.sizes.size() != 4) return false;
  if (impl.numel == 0) return true;
  std::int64_t expected = 1;
  for (const int d : {1, 3, 2, 0}) {
    if (impl.sizes[d] == 1) continue;
    if (impl.strides[d] != expected) return false;
    expected *= impl.sizes[d];
  }
  return true;
}

std::int64_t Tensor::storage_offset() const {
  const detail::TensorImpl& impl = checked();
  const std::ptrdiff_t bytes = impl.data - static_cast<const std::byte*>(impl.storage->data);
  return bytes / static_cast<std::ptrdiff_t>(size_of(impl.dtype));
}

bool Tensor::shares_storage(const Tensor& other) const noexcept {
  return impl_ != nullptr && other.impl_ != nullptr && impl_->storage == other.impl_->storage;
}

Scalar Tensor::item_scalar() const {
  TUTTI_CHECK(numel() == 1, ShapeError, "item: wanted a tensor of one element, given shape ", sizes());
  if (device().is_cpu()) return detail::read_scalar(impl_->data, impl_->dtype);
  alignas(8) std::byte value[8];
  const tutti_backend& backend = backend_of(device());
  const tutti_stream stream = current_stream(device()).handle();
  backend::check(backend, backend.memory.copy(stream, value, 0, impl_->data, 1, element_size()), "item");
  backend::check(backend, backend.streams.synchronize(stream), "item");
  return detail::read_scalar(value, impl_->dtype);
}

std::string Tensor::to_string() const {
  return defined() ? detail::format_tensor(*this) : "tensor(undefined)";
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) { return stream << tensor.to_string(); }

namespace detail {

namespace {
template <class T>
T load(const void* data) noexcept {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}
}  // namespace

Scalar read_scalar(const void* data, DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64: return load<double>(data);
    case DType::kFloat32: return load<float>(data);
    case DType::kFloat16: return static_cast<float>(load<Half>(data));
    case DType::kBFloat16: return static_cast<float>(load<BFloat16>(data));
    case DType::kInt64: return load<std::int64_t>(data);
    case DType::kInt32: return load<std::int32_t>(data);
    case DType::kInt16: return load<std::int16_t>(data);
    case DType::kInt8: return load<std::int8_t>(data);
    case DType::kUInt8: return load<std::uint8_t>(data);
    case DType::kBool: break;
  }
  return load<std::uint8_t>(data) != 0;
}

void copy_out(const Tensor& tensor, DType dtype, void* data) {
  if (tensor.numel() == 0) return;
  raw::copy(from_blob(data, tensor.sizes(), dtype), tensor);
}

}  // namespace detail

}  // namespace tutti
