// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes and strides.
#include <optional>
#include <utility>

#include "tensor/layout.hpp"
#include "tensor/raw.hpp"

namespace tutti {

void detail::throw_too_many_dims(std::size_t given) {
  throw ShapeError(concat("a tensor has at most ", kMaxDims, " dims, given ", given));
}

std::string to_text(const Dims& dims) {
  std::string text = "[";
  for (int d = 0; d < dims.size(); ++d) text += concat(d > 0 ? ", " : "", dims[d]);
  return text + "]";
}

Dims broadcast_shapes(const Dims& a, const Dims& b, std::string_view op) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims sizes = longer;
  const int offset = longer.size() - shorter.size();
  for (int d = 0; d < shorter.size(); ++d) {
    std::int64_t& size = sizes[offset + d];
    const std::int64_t other = shorter[d];
    if (size == other || other == 1) continue;
    TUTTI_CHECK(size == 1, ShapeError, op, op.empty() ? "" : ": ", "shapes ", a, " and ", b,
                " do not broadcast: ", a[a.size() - shorter.size() + d], " against ",
                b[b.size() - shorter.size() + d], " in dim ", d - shorter.size());
    size = other;
  }
  return sizes;
}

namespace raw {

int normalize_dim(int dim, int ndim, const char* op) {
  const int range = std::max(ndim, 1);  // a 0-dim tensor takes 0 and -1
  TUTTI_CHECK(dim >= -range && dim < range, IndexError, op, ": dim ", dim, " is not in [", -range, ", ",
              range - 1, "], the tensor has ", ndim, ndim == 1 ? " dim" : " dims");
  return dim < 0 ? dim + range : dim;
}

int normalize_new_dim(int dim, int ndim, const char* op) {
  TUTTI_CHECK(dim >= -ndim - 1 && dim <= ndim, IndexError, op, ": dim ", dim, " is not in [", -ndim - 1, ", ",
              ndim, "], where a tensor of ", ndim, ndim == 1 ? " dim" : " dims", " can get a new one");
  return dim < 0 ? dim + ndim + 1 : dim;
}

std::uint32_t dim_mask(const Dims& dims, int ndim, const char* op) {
  if (dims.empty()) return (1U << static_cast<unsigned>(ndim)) - 1U;
  std::uint32_t mask = 0;
  for (const std::int64_t value : dims) {
    TUTTI_CHECK(value >= -kMaxDims && value < kMaxDims, IndexError, op, ": dim ", value,
                " is out of range, the tensor has ", ndim, ndim == 1 ? " dim" : " dims");
    const std::uint32_t bit = 1U << static_cast<unsigned>(normalize_dim(static_cast<int>(value), ndim, op));
    TUTTI_CHECK((mask & bit) == 0, ShapeError, op, ": dim ", value, " appears twice in ", dims);
    mask |= bit;
  }
  // The only dim that a 0-dim tensor takes stands for none.
  return ndim == 0 ? 0 : mask;
}

Dims contiguous_strides(const Dims& sizes) {
  Dims strides = sizes;
  std::uint64_t stride = 1;  // unsigned: the strides of an empty tensor may wrap around
  for (int d = sizes.size() - 1; d >= 0; --d) {
    strides[d] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(sizes[d], 1));
  }
  return strides;
}

Dims channels_last_strides(const Dims& sizes) {
  TUTTI_CHECK(sizes.size() == 4, ShapeError, "channels-last is an order of [N, C, H, W], given shape ",
              sizes);
  Dims strides = sizes;
  std::uint64_t stride = 1;
  for (const int d : {1, 3, 2, 0}) {
    strides[d] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(sizes[d], 1));
  }
  return strides;
}

Dims infer_size(const Dims& sizes, std::int64_t numel) {
  int unknown = -1;
  std::int64_t known = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      TUTTI_CHECK(unknown < 0, ShapeError, "only one size may be -1, given ", sizes);
      unknown = d;
      continue;
    }
    TUTTI_CHECK(sizes[d] >= 0, ShapeError, "a size is -1 or at least 0, given ", sizes);
    const bool overflow = __builtin_mul_overflow(known, sizes[d], &known);
    TUTTI_CHECK(!overflow, ShapeError, "shape ", sizes, " does not fit ", numel, " elements");
  }
  if (unknown < 0) {
    TUTTI_CHECK(known == numel, ShapeError, "shape ", sizes, " does not fit ", numel, " elements");
    return sizes;
  }
  TUTTI_CHECK(known != 0, ShapeError, "the -1 in shape ", sizes,
              " can stand for any size: the others hold no element");
  TUTTI_CHECK(numel % known == 0, ShapeError, "shape ", sizes, " does not fit ", numel, " elements");
  Dims result = sizes;
  result[unknown] = numel / known;
  return result;
}

}  // namespace raw

namespace detail {

// From the last dim on, dims of the tensor are taken together as long as they lie densely in one another;
// such a chunk can be cut anew, and only as a whole.
std::optional<Dims> strides_of_view(const Dims& sizes, const Dims& strides, const Dims& wanted) {
  if (sizes.product() == 0) return sizes == wanted ? strides : raw::contiguous_strides(wanted);
  Dims result = wanted;
  if (sizes.empty()) return Dims::filled(wanted.size(), 1);
  int view_dim = wanted.size() - 1;
  std::int64_t chunk_stride = strides.back();
  std::int64_t chunk_numel = 1;
  std::int64_t view_numel = 1;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    chunk_numel *= sizes[d];
    const bool chunk_ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk_numel * chunk_stride);
    if (!chunk_ends) continue;
    while (view_dim >= 0 && (view_numel < chunk_numel || wanted[view_dim] == 1)) {
      result[view_dim] = view_numel * chunk_stride;
      view_numel *= wanted[view_dim];
      --view_dim;
    }
    if (view_numel != chunk_numel) return std::nullopt;
    if (d > 0) {
      chunk_stride = strides[d - 1];
      chunk_numel = 1;
      view_numel = 1;
    }
  }
  if (view_dim != -1) return std::nullopt;
  return result;
}

// Insertion sort, as there are at most kMaxDims. An expanded dim compares with none: it stays where it is in
// row-major order (so does PyTorch's TensorIterator).
Order by_stride(const Dims& sizes, const Dims& strides) {
  Order order;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    auto place = static_cast<std::size_t>(order.count++);
    order.dims[place] = d;
    for (std::size_t other = place; other-- > 0;) {
      const std::int64_t stride = strides[order.dims[other]];
      if (stride == 0 || strides[d] == 0 || stride == strides[d]) continue;
      if (stride < strides[d]) break;
      std::swap(order.dims[other], order.dims[place]);
      place = other;
    }
  }
  return order;
}

bool is_dense(const Dims& sizes, const Dims& strides) {
  const Order order = by_stride(sizes, strides);
  std::uint64_t expected = 1;  // unsigned: in an empty array it may wrap around
  for (int i = 0; i < order.count; ++i) {
    const int d = order.dims[static_cast<std::size_t>(i)];
    if (sizes[d] == 0) return true;
    if (static_cast<std::uint64_t>(strides[d]) != expected) return false;
    expected *= static_cast<std::uint64_t>(sizes[d]);
  }
  return true;
}

bool may_overlap_itself(const Dims& sizes, const Dims& strides) {
  const Order order = by_stride(sizes, strides);
  std::int64_t reach = 0;  // the last element that the inner dims touch
  for (int i = 0; i < order.count; ++i) {
    const int d = order.dims[static_cast<std::size_t>(i)];
    if (sizes[d] == 0) return false;
    if (strides[d] <= reach) return true;
    reach += (sizes[d] - 1) * strides[d];
  }
  return false;
}

std::int64_t extent(const Dims& sizes, const Dims& strides) noexcept {
  std::int64_t last = 0;
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

std::int64_t checked_extent(const Dims& sizes, const Dims& strides, const char* op) {
  bool overflow = false;
  bool is_empty = false;
  std::int64_t total = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    is_empty |= sizes[d] == 0;
    TUTTI_CHECK(strides[d] >= 0, ShapeError, op, ": strides can't be negative, given ", strides);
    // One step more than is touched: views multiply a size by its stride.
    std::int64_t reach = 0;
    overflow |= __builtin_mul_overflow(sizes[d], strides[d], &reach) ||
                (sizes[d] > 1 && __builtin_add_overflow(total, reach - strides[d], &total));
  }
  TUTTI_CHECK(!overflow || is_empty, ShapeError, op, ": shape ", sizes, " with strides ", strides,
              " reaches beyond 63 bits");
  return extent(sizes, strides);
}

}  // namespace detail

namespace raw {

bool is_dense(const Tensor& tensor) {
  return tensor.impl()->is_contiguous || detail::is_dense(tensor.sizes(), tensor.strides());
}

Dims dense_strides(const Tensor& tensor) {
  const Dims& sizes = tensor.sizes();
  if (tensor.impl()->is_contiguous) return contiguous_strides(sizes);
  if (detail::is_dense(sizes, tensor.strides())) return tensor.strides();
  const detail::Order order = detail::by_stride(sizes, tensor.strides());
  Dims strides = Dims::filled(sizes.size(), 1);
  std::int64_t stride = 1;
  for (int i = 0; i < order.count; ++i) {
    const int d = order.dims[static_cast<std::size_t>(i)];
    strides[d] = stride;
    stride *= std::max<std::int64_t>(sizes[d], 1);
  }
  return strides;
}

}  // namespace raw

}  // namespace tutti
