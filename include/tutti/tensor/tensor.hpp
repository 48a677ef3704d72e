// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tensor: a cheap handle to a strided array on a device, with PyTorch's vocabulary.
///
/// Members marked [d] are differentiable: with gradients enabled they record themselves; their bodies stand in
/// src/ops/tensor_members.cpp. Negative dims and indices count from the end. A member on an undefined tensor throws Error.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tutti/core/dtype.hpp"
#include "tutti/core/export.hpp"
#include "tutti/device/device.hpp"
#include "tutti/tensor/dims.hpp"
#include "tutti/tensor/impl.hpp"
#include "tutti/tensor/scalar.hpp"

namespace tutti {

/// Order of an image tensor [N, C, H, W] in memory.
enum class MemoryFormat : std::uint8_t { kContiguous, kChannelsLast };

/// One part of index(): the slice [start, stop) with a step.
struct Slice {
  std::int64_t start = 0;
  std::int64_t stop = INT64_MAX;
  std::int64_t step = 1;
};

/// Options of Tensor::backward and autograd::backward.
struct BackwardOptions {
  bool retain_graph = false;  ///< Keep saved tensors, so that backward may run again.
  bool create_graph = false;  ///< Not supported: double backward throws AutogradError.
};

class Tensor;

namespace detail {
/// Copies all elements in row-major order, converted to `dtype`, to host memory.
TUTTI_API void copy_out(const Tensor& tensor, DType dtype, void* data);
}  // namespace detail

class TUTTI_API Tensor {
 public:
  Tensor() noexcept {
  }  ///< Undefined. (NOLINT: "= default" would break the default arguments below in clang 14.)
  Tensor(const Tensor& other) noexcept : impl_(other.impl_) { retain(); }
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Tensor& operator=(const Tensor& other) noexcept {
    Tensor(other).swap(*this);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor(std::move(other)).swap(*this);
    return *this;
  }
  ~Tensor() { drop(); }
  void swap(Tensor& other) noexcept { std::swap(impl_, other.impl_); }
  /// Takes over one reference.
  static Tensor adopt(detail::TensorImpl* impl) noexcept {
    Tensor tensor;
    tensor.impl_ = impl;
    return tensor;
  }

  // -- what it is ---------------------------------------------------------------------------------------------------
  bool defined() const noexcept { return impl_ != nullptr; }
  explicit operator bool() const noexcept = delete;  // use defined() or item<bool>()
  DType dtype() const { return checked().dtype; }
  Device device() const { return checked().storage->device; }
  int dim() const { return checked().sizes.size(); }
  std::int64_t numel() const { return checked().numel; }
  const Dims& sizes() const { return checked().sizes; }
  const Dims& strides() const { return checked().strides; }  ///< In elements.
  std::int64_t size(int dim) const;
  std::int64_t stride(int dim) const;
  std::size_t element_size() const { return size_of(dtype()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  /// Bytes of the whole storage that this tensor looks into, and the offset of its first element there, in elements.
  std::size_t storage_bytes() const { return checked().storage->bytes; }
  std::int64_t storage_offset() const;
  /// True if both look into one storage.
  bool shares_storage(const Tensor& other) const noexcept;
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  /// In-place writes to the storage so far.
  std::uint32_t version() const { return checked().storage->version.load(std::memory_order_relaxed); }

  // -- elements -----------------------------------------------------------------------------------------------------
  /// Pointer to the first element. T must be the dtype's C++ type (DTypeError otherwise). Host-readable on the CPU only.
  template <class T>
  T* data() const {
    check_dtype(dtype_of<T>);
    return reinterpret_cast<T*>(impl_->data);
  }
  void* raw_data() const { return checked().data; }
  /// Value of a tensor of one element, converted to T; waits for the device. ShapeError if there is not one element.
  template <class T = double>
  T item() const {
    return item_scalar().to<T>();
  }
  Scalar item_scalar() const;
  /// All elements in row-major order, converted to T.
  template <class T>
  std::vector<T> to_vector() const {
    const auto count = static_cast<std::size_t>(numel());
    if constexpr (std::same_as<T, bool>) {  // a vector<bool> has no array of bool
      std::vector<std::uint8_t> bytes(count);
      detail::copy_out(*this, DType::kBool, bytes.data());
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> values(count);
      detail::copy_out(*this, dtype_of<T>, values.data());
      return values;
    }
  }
  /// Values (shortened beyond 1,000 elements), shape if useful, dtype and device if not float32 and CPU.
  std::string to_string() const;

  // -- autograd -----------------------------------------------------------------------------------------------------
  bool requires_grad() const { return checked().requires_grad; }
  /// Sets whether this leaf collects a gradient. AutogradError for a non-leaf, DTypeError for a dtype without gradients.
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  /// The gradient collected so far; undefined before the first backward.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  /// Name of the operation that made this tensor ("Mul"), empty for a leaf.
  std::string grad_fn_name() const;
  /// Computes gradients of all leaves that this one depends on. Without `gradient` this tensor must have one element.
  void backward(const Tensor& gradient = {}, BackwardOptions options = {}) const;
  /// Same memory and version counter, outside any graph.
  Tensor detach() const;
  /// Keeps the gradient of a non-leaf in grad().
  void retain_grad() const;

  // -- views [d]: share memory ------------------------------------------------------------------------------------------
  Tensor view(const Dims& sizes) const;  ///< One size may be -1. ShapeError if a copy were needed.
  Tensor select(int dim, std::int64_t index) const;  ///< Drops dim.
  Tensor slice(int dim, std::int64_t start = 0, std::int64_t stop = INT64_MAX, std::int64_t step = 1) const;
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  Tensor transpose(int dim0, int dim1) const;
  Tensor t() const;  ///< Transpose of at most two dims.
  Tensor permute(const Dims& dims) const;
  Tensor expand(const Dims& sizes) const;  ///< -1 keeps a size.
  Tensor squeeze() const;
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;
  Tensor operator[](std::int64_t index) const { return select(0, index); }

  // -- shapes and copies [d] --------------------------------------------------------------------------------------------
  Tensor reshape(const Dims& sizes) const;  ///< A view where possible, else a copy.
  Tensor flatten(int start_dim = 0, int end_dim = -1) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  Tensor clone() const;  ///< Keeps the layout of dense tensors.
  Tensor to(DType dtype) const;
  Tensor to(Device device, bool non_blocking = false) const;
  Tensor to(const char* device) const { return to(Device(device)); }
  Tensor cpu() const { return to(Device()); }

  // -- arithmetic [d]: broadcasting and type promotion by PyTorch's rules -------------------------------------------------
  Tensor add(const Tensor& other, double alpha = 1) const;
  Tensor sub(const Tensor& other) const;
  Tensor mul(const Tensor& other) const;
  Tensor div(const Tensor& other) const;
  Tensor neg() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor pow(Scalar exponent) const;
  Tensor pow(const Tensor& exponent) const;
  Tensor matmul(const Tensor& other) const;
  Tensor sum() const;
  Tensor sum(const Dims& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Dims& dims, bool keepdim = false) const;
  Tensor max() const;
  std::pair<Tensor, Tensor> max(int dim, bool keepdim = false) const;  ///< Values and indices.
  Tensor argmax() const;
  Tensor argmax(int dim, bool keepdim = false) const;  ///< int64; not differentiable.
  Tensor softmax(int dim) const;
  Tensor log_softmax(int dim) const;
  Tensor index_select(int dim, const Tensor& indices) const;

  // -- in place: write this tensor's memory, count its version, return *this. [d] but for a leaf that requires grad -------
  Tensor& add_(const Tensor& other, double alpha = 1);
  Tensor& add_(Scalar other);
  Tensor& sub_(const Tensor& other);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(Scalar other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(Scalar other);
  Tensor& relu_();
  Tensor& fill_(Scalar value);
  Tensor& zero_();
  Tensor& copy_(const Tensor& source);  ///< Broadcasts and converts.

  /// Handle's target: for the library's own floors.
  detail::TensorImpl* impl() const noexcept { return impl_; }

 private:
  void retain() const noexcept {
    if (impl_ != nullptr) impl_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void drop() noexcept {
    if (impl_ == nullptr) return;
    // A sole owner needs no atomic write: nobody can copy a handle that only we hold.
    if (impl_->references.load(std::memory_order_acquire) == 1 ||
        impl_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      detail::destroy(impl_);
    }
  }
  detail::TensorImpl& checked() const {
    if (impl_ == nullptr) [[unlikely]]
      throw_undefined();
    return *impl_;
  }
  [[noreturn]] static void throw_undefined();
  void check_dtype(DType wanted) const;

  detail::TensorImpl* impl_ = nullptr;
};

/// Prints Tensor::to_string().
TUTTI_API std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace tutti
