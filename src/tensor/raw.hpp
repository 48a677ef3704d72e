// SPDX-License-Identifier: Apache-2.0
// Operations on tensors that autograd does not see: views, copies, fills. Floor 6 wraps them into
// differentiable ops; the engine, the Reducer and optimizers use them as they are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "backend/backend.h"
#include "tutti/device/stream.hpp"
#include "tutti/tensor/factories.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::raw {

// The C view of a tensor; only the used dims are written.
void fill_view(tutti_view& view, const Tensor& tensor);
tutti_view view_of(const Tensor& tensor);
// Filled as if expanded to `sizes` (stride 0 in broadcast dims).
void fill_view_broadcast(tutti_view& view, const Tensor& tensor, const Dims& sizes);

int normalize_dim(int dim, int ndim, const char* op);  // -1 -> ndim - 1; IndexError naming op otherwise
// Of a dim that is added to `ndim` others: -1 -> ndim.
int normalize_new_dim(int dim, int ndim, const char* op);
std::uint32_t dim_mask(const Dims& dims, int ndim, const char* op);  // empty: all dims; duplicates throw

Dims contiguous_strides(const Dims& sizes);
Dims channels_last_strides(const Dims& sizes);
// Dense and non-overlapping under some order of dims.
bool is_dense(const Tensor& tensor);
// Strides of a dense array of the same shape whose dims lie in the order of the tensor's: its own if it is
// dense.
Dims dense_strides(const Tensor& tensor);

// True if this handle alone sees the memory, which is no small part of something large: it may be overwritten or kept.
inline bool is_sole_view(const Tensor& tensor) noexcept {
  const detail::TensorImpl& impl = *tensor.impl();
  return impl.references.load(std::memory_order_acquire) == 1 &&
         impl.storage->references.load(std::memory_order_acquire) == 1 &&
         impl.storage->bytes <= 2 * static_cast<std::size_t>(impl.numel) * size_of(impl.dtype) + 64;
}

// A new handle onto the same storage. data_offset in elements from the tensor's first element.
Tensor as_strided(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t data_offset = 0);
Tensor alias(const Tensor& tensor);  // as_strided with its own sizes and strides
Tensor view(const Tensor& tensor, const Dims& sizes);
bool can_view(const Tensor& tensor, const Dims& sizes);
Dims infer_size(const Dims& sizes, std::int64_t numel);  // resolves one -1
Tensor select(const Tensor& tensor, int dim, std::int64_t index);
Tensor slice(const Tensor& tensor, int dim, std::int64_t start, std::int64_t stop, std::int64_t step);
Tensor transpose(const Tensor& tensor, int dim0, int dim1);
Tensor permute(const Tensor& tensor, const Dims& dims);
Tensor expand(const Tensor& tensor, const Dims& sizes);
Tensor squeeze(const Tensor& tensor);
Tensor squeeze(const Tensor& tensor, int dim);
Tensor unsqueeze(const Tensor& tensor, int dim);

// Broadcasts `in`, converts, across devices too; does not count a version. The host waits only for copies
// from a device to the host. ShapeError if elements of `out` share memory with each other (an expanded view)
// or, at other places, with those of `in`.
void copy(const Tensor& out, const Tensor& in);
// ShapeError beginning with `what` if elements of a tensor that is to be written share memory with each other.
void check_writable(const Tensor& out, std::string_view what);
// True if both see the same elements in the same places.
bool is_same_view(const Tensor& a, const Tensor& b);
// True if no element of `in`, as it is or broadcast, lies in bytes that `out` touches.
bool memory_is_disjoint(const Tensor& out, const Tensor& in);
// Uninitialised and row-major. ShapeError naming op for impossible sizes.
Tensor allocate(const Dims& sizes, DType dtype, Device device, const char* op);
bool holds(DType dtype, Scalar number);  // false: an integer dtype whose range the number is outside of
// What becomes of a negative number that meets uint8: an error, or what arithmetic modulo 256 makes of it.
enum class Negatives : std::uint8_t { kRefuse, kWrap };
// ValueError naming op, dtype and number if the dtype is an integer one and can't hold the number.
void check_number(const char* op, DType dtype, Scalar number, Negatives negatives = Negatives::kRefuse);
// Does not count a version. ValueError naming op if an integer dtype can't hold the value.
void fill(const Tensor& out, Scalar value, const char* op = "fill");
// The number as kernels of a dtype read it.
tutti_scalar scalar_of(Scalar value, DType dtype);
Tensor contiguous(const Tensor& tensor, MemoryFormat format = MemoryFormat::kContiguous);
Tensor to_dtype(const Tensor& tensor, DType dtype);
Tensor clone(const Tensor& tensor);
Tensor sum_to_size(const Tensor& tensor, const Dims& sizes);  // undoes a broadcast

// Where kernels keep a re-packed copy of the tensor's storage; made on first use, dies with the storage.
// Thread-safe.
tutti_packed_slot* packed_slot(const Tensor& tensor);
// The tensor is used by work of `stream`, another one than it was allocated on: see memory::record_stream.
void record_stream(const Tensor& tensor, const Stream& stream);

// Makes `tensor`, and with it every handle to it, look at the memory of `source`, with its layout, dtype and
// device. For a module's conversions: an optimizer's handles stay valid. Not for tensors that a recorded
// graph has saved.
void set_data(const Tensor& tensor, const Tensor& source);

// Counts an in-place write.
inline void bump_version(const Tensor& tensor) {
  tensor.impl()->storage->version.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tutti::raw
