// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tensor: a cheap handle to a strided array on a device, with PyTorch's vocabulary.
///
/// Members marked [d] are differentiable: with gradients enabled they record themselves (their bodies stand
/// in src/ops/tensor_members.cpp). Negative dims and indices count from the end. Every member but defined(),
/// is_same(), shares_storage() and to_string() throws Error on an undefined tensor. Binary members throw
/// DeviceError for tensors of different devices and ShapeError for shapes that do not broadcast.
///
/// On a device work is enqueued on the calling thread's current stream; item(), to_vector(), to_string() and
/// copies to the host wait for it. Handles of one tensor may be used by several threads as long as none
/// writes.
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
enum class MemoryFormat : std::uint8_t {
  kContiguous,    ///< Row-major: neighbours in W lie side by side.
  kChannelsLast,  ///< Neighbours in C lie side by side: the fast one for convolutions.
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

/// A cheap handle (one pointer, reference counted) to an array of up to 8 dims. Copying a handle shares the
/// array.
class TUTTI_API Tensor {
 public:
  /// Undefined: no array. (Not "= default", which breaks the default arguments below in clang 14.)
  Tensor() noexcept {}
  /// Shares the array.
  Tensor(const Tensor& other) noexcept : impl_(other.impl_) { retain(); }
  /// Takes the array over; `other` is undefined afterwards.
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  /// Lets go of this array and shares the other. Writes no element; see copy_().
  Tensor& operator=(const Tensor& other) noexcept {
    Tensor(other).swap(*this);
    return *this;
  }
  /// Lets go of this array and takes the other over.
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor(std::move(other)).swap(*this);
    return *this;
  }
  /// The last handle gives the memory back to the allocator.
  ~Tensor() { drop(); }
  /// Exchanges what two handles point to.
  void swap(Tensor& other) noexcept { std::swap(impl_, other.impl_); }
  /// Takes over one reference. For the library's own floors.
  static Tensor adopt(detail::TensorImpl* impl) noexcept {
    Tensor tensor;
    tensor.impl_ = impl;
    return tensor;
  }

  // -- what it is -------------------------------------------------------------------------------------------

  /// False for a default-constructed or moved-from handle.
  bool defined() const noexcept { return impl_ != nullptr; }
  explicit operator bool() const noexcept = delete;  ///< Ambiguous: use defined() or item<bool>().
  /// Type of the elements.
  DType dtype() const { return checked().dtype; }
  /// Where the elements are.
  Device device() const { return checked().storage->device; }
  /// Number of dims; 0 for a single number.
  int dim() const { return checked().sizes.size(); }
  /// Number of elements: the product of the sizes.
  std::int64_t numel() const { return checked().numel; }
  /// Elements along each dim.
  const Dims& sizes() const { return checked().sizes; }
  /// Distance of neighbours along each dim, in elements; 0 in expanded dims.
  const Dims& strides() const { return checked().strides; }
  /// sizes()[dim]; IndexError if there is no such dim.
  std::int64_t size(int dim) const;
  /// strides()[dim]; IndexError if there is no such dim.
  std::int64_t stride(int dim) const;
  /// Bytes of one element.
  std::size_t element_size() const { return size_of(dtype()); }
  /// True if the elements lie densely in memory, in row-major order or, for a tensor of four dims, in
  /// channels-last order. Dims of size 1 do not matter; empty tensors are contiguous.
  bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  /// Bytes of the whole storage that this tensor looks into.
  std::size_t storage_bytes() const { return checked().storage->bytes; }
  /// Place of the first element in the storage, in elements.
  std::int64_t storage_offset() const;
  /// True if both look into one storage.
  bool shares_storage(const Tensor& other) const noexcept;
  /// True if both are handles of one tensor (or both are undefined).
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  /// In-place writes to the storage so far. Autograd compares it to find tensors that changed after they were
  /// saved.
  std::uint32_t version() const { return checked().storage->version.load(std::memory_order_relaxed); }

  // -- elements ---------------------------------------------------------------------------------------------

  /// Pointer to the first element; the others are strides() apart. T must be the dtype's C++ type (DTypeError
  /// otherwise). Readable by the host on the CPU only.
  /// Who writes through it does not count a version: autograd can't see the write.
  template <class T>
  T* data() const {
    check_dtype(dtype_of<T>);
    expose();
    return reinterpret_cast<T*>(impl_->data);
  }
  /// The same without its type.
  void* raw_data() const {
    checked();
    expose();
    return impl_->data;
  }
  /// Value of a tensor of one element, converted to T as Scalar::to does; waits for the device. ShapeError if
  /// there is not one element.
  template <class T = double>
  T item() const {
    return item_scalar().to<T>();
  }
  /// The same as a number of the dtype's kind.
  Scalar item_scalar() const;
  /// All elements in row-major order, converted to T; waits for the device.
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
  /// The values in PyTorch's layout, shortened beyond 1,000 elements; then the shape if it is empty, the
  /// dtype if it is not float32, the device if it is not the CPU. Waits for the device.
  std::string to_string() const;

  // -- autograd ---------------------------------------------------------------------------------------------

  /// True for a leaf that collects a gradient and for results of recorded operations.
  bool requires_grad() const { return checked().requires_grad; }
  /// Sets whether this leaf collects a gradient. AutogradError for a non-leaf, DTypeError for a dtype without
  /// gradients.
  Tensor& requires_grad_(bool on = true);
  /// True if no recorded operation made this tensor.
  bool is_leaf() const;
  /// The gradient collected so far; undefined before the first backward.
  Tensor grad() const;
  /// Replaces it; an undefined `grad` forgets it. ShapeError, DTypeError or DeviceError if it does not fit.
  void set_grad(const Tensor& grad);
  /// Name of the operation that made this tensor ("Mul"), empty for a leaf.
  std::string grad_fn_name() const;
  /// Computes gradients of all leaves that this one depends on and adds them to their grad(). Without
  /// `gradient` this tensor must have one element. AutogradError if nothing was recorded, or the graph was
  /// freed.
  void backward(const Tensor& gradient = {}, BackwardOptions options = {}) const;
  /// Same memory and version counter, outside any graph.
  Tensor detach() const;
  /// Keeps the gradient of a non-leaf in grad().
  void retain_grad() const;

  // -- views [d]: share memory ------------------------------------------------------------------------------

  /// Other sizes for the same elements in row-major order. One size may be -1. ShapeError if a copy were
  /// needed.
  Tensor view(const Dims& sizes) const;
  /// The elements at one index of a dim, without that dim. IndexError if it is out of range.
  Tensor select(int dim, std::int64_t index) const;
  /// The elements start, start + step, ... below stop of a dim; both ends are clamped as in Python.
  /// ValueError if step is not positive.
  Tensor slice(int dim, std::int64_t start = 0, std::int64_t stop = INT64_MAX, std::int64_t step = 1) const;
  /// `length` elements of a dim from start on. IndexError if they are not all there.
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  /// Two dims exchanged.
  Tensor transpose(int dim0, int dim1) const;
  /// Transpose of at most two dims. ShapeError for more.
  Tensor t() const;
  /// The dims in another order: dim i of the result is dim dims[i].
  Tensor permute(const Dims& dims) const;
  /// Dims of size 1, and new ones in front, repeated without memory; -1 keeps a size.
  Tensor expand(const Dims& sizes) const;
  /// Without all dims of size 1.
  Tensor squeeze() const;
  /// Without one dim if its size is 1, else all of it.
  Tensor squeeze(int dim) const;
  /// With a new dim of size 1 at `dim`.
  Tensor unsqueeze(int dim) const;
  /// select(0, index).
  Tensor operator[](std::int64_t index) const { return select(0, index); }

  // -- shapes and copies [d] --------------------------------------------------------------------------------

  /// Like view(), but copies where a view is not possible.
  Tensor reshape(const Dims& sizes) const;
  /// Dims start_dim to end_dim joined into one.
  Tensor flatten(int start_dim = 0, int end_dim = -1) const;
  /// This tensor if it is contiguous in that order, else a copy that is.
  Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  /// A copy on own memory; dense tensors keep their layout.
  Tensor clone() const;
  /// Converted (floating to integer truncates); this tensor if it has that dtype.
  Tensor to(DType dtype) const;
  /// On another device; this tensor if it is there. Copies from the CPU to a device are queued on the device's
  /// current stream, copies to the CPU are waited for; non_blocking changes neither, and does nothing on CPUs.
  Tensor to(Device device, bool non_blocking = false) const;
  Tensor to(const char* device) const { return to(Device(device)); }  ///< to("cuda:0").
  Tensor cpu() const { return to(Device()); }                         ///< to("cpu").

  // -- arithmetic [d]: broadcasting and type promotion by PyTorch's rules -----------------------------------

  Tensor add(const Tensor& other, double alpha = 1) const;  ///< this + alpha * other.
  Tensor sub(const Tensor& other) const;                    ///< this - other.
  Tensor mul(const Tensor& other) const;                    ///< Element by element.
  Tensor div(const Tensor& other) const;                    ///< True division: integers become float32.
  Tensor neg() const;                                       ///< -this.
  Tensor exp() const;                                       ///< e to the power of each element.
  Tensor log() const;                                       ///< Natural logarithm.
  Tensor sqrt() const;                                      ///< Square root.
  Tensor tanh() const;                                      ///< Hyperbolic tangent.
  Tensor sigmoid() const;                                   ///< 1 / (1 + exp(-x)).
  Tensor relu() const;                                      ///< max(x, 0).
  Tensor pow(Scalar exponent) const;                        ///< Each element to that power.
  Tensor pow(const Tensor& exponent) const;                 ///< Element by element.
  /// Matrix product of the last two dims; batch dims broadcast; tensors of one dim are vectors
  /// (torch.matmul).
  Tensor matmul(const Tensor& other) const;
  Tensor sum() const;  ///< Of all elements; integers and bool sum in int64.
  Tensor sum(const Dims& dims, bool keepdim = false) const;   ///< Over some dims (none given: all).
  Tensor mean() const;                                        ///< Of all elements; floating dtypes only.
  Tensor mean(const Dims& dims, bool keepdim = false) const;  ///< Over some dims (none given: all).
  Tensor max() const;                                         ///< Of all elements; NaN counts as greatest.
  std::pair<Tensor, Tensor> max(int dim,
                                bool keepdim = false) const;  ///< Values and int64 indices along a dim.
  Tensor argmax() const;                               ///< Row-major place of the greatest element; int64.
  Tensor argmax(int dim, bool keepdim = false) const;  ///< Along a dim; the first of equal ones; int64.
  Tensor softmax(int dim) const;                       ///< exp(x) / sum(exp(x)) along a dim.
  Tensor log_softmax(int dim) const;                   ///< Its logarithm, computed without overflow.
  /// The slices at `indices` (int64 or int32, one dim) of a dim. IndexError if one is out of range.
  Tensor index_select(int dim, const Tensor& indices) const;

  // -- in place: write this tensor's memory, count its version, return *this. [d] ---------------------
  // AutogradError, while gradients are enabled, for a leaf that requires grad, for a view of a tensor that is part of a graph, and
  // for memory that other tensors see if `other` requires grad. `other` broadcasts to this shape
  // and is converted to this dtype; DTypeError where that would lose a category (float into int).

  Tensor& add_(const Tensor& other, double alpha = 1);  ///< this += alpha * other.
  Tensor& add_(Scalar other);                           ///< this += other.
  Tensor& sub_(const Tensor& other);                    ///< this -= other.
  Tensor& sub_(Scalar other);                           ///< this -= other.
  Tensor& mul_(const Tensor& other);                    ///< this *= other.
  Tensor& mul_(Scalar other);                           ///< this *= other.
  Tensor& div_(const Tensor& other);                    ///< this /= other.
  Tensor& div_(Scalar other);                           ///< this /= other.
  Tensor& pow_(const Tensor& exponent);                 ///< this = this to the power of exponent.
  Tensor& pow_(Scalar exponent);                        ///< this = this to the power of exponent.
  Tensor& neg_();                                       ///< this = -this.
  Tensor& exp_();                                       ///< this = e^this.
  Tensor& log_();                                       ///< this = ln this.
  Tensor& sqrt_();                                      ///< this = square root of this.
  Tensor& tanh_();                                      ///< this = tanh this.
  Tensor& sigmoid_();                                   ///< this = 1 / (1 + e^-this).
  Tensor& relu_();                                      ///< Negative elements become 0.
  /// Every element becomes `value`. ValueError if an integer dtype can't hold it, ShapeError if the elements share memory with
  /// each other.
  Tensor& fill_(Scalar value);
  Tensor& zero_();  ///< fill_(0).
  /// Writes `source`, broadcast, converted and across devices. ShapeError if the elements of this tensor
  /// share memory with each other or, at other places, with those of `source`.
  Tensor& copy_(const Tensor& source);

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
  void expose() const noexcept {
    std::atomic<bool>& exposed = impl_->storage->exposed;
    if (!exposed.load(std::memory_order_relaxed)) exposed.store(true, std::memory_order_relaxed);
  }
  [[noreturn]] static void throw_undefined();
  void check_dtype(DType wanted) const;

  detail::TensorImpl* impl_ = nullptr;
};

/// Prints Tensor::to_string().
TUTTI_API std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace tutti
