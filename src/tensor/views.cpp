// SPDX-License-Identifier: Apache-2.0
// Views: other sizes and strides onto the same storage.
#include <algorithm>

#include "tensor/layout.hpp"
#include "tensor/raw.hpp"
#include "tensor/storage.hpp"

namespace tutti::raw {

Tensor as_strided(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t data_offset) {
  const detail::TensorImpl& source = *tensor.impl();
  source.storage->references.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t bytes = data_offset * static_cast<std::int64_t>(size_of(source.dtype));
  Tensor result = detail::make_tensor(source.storage, source.data + bytes, source.dtype, sizes, strides,
                                      sizes.product(), detail::is_row_major(sizes, strides));
  result.impl()->is_view = true;
  result.impl()->is_inference = source.is_inference;
  return result;
}

Tensor alias(const Tensor& tensor) { return as_strided(tensor, tensor.sizes(), tensor.strides()); }

bool can_view(const Tensor& tensor, const Dims& sizes) {
  return tensor.impl()->is_contiguous ||
         detail::strides_of_view(tensor.sizes(), tensor.strides(), infer_size(sizes, tensor.numel()))
             .has_value();
}

Tensor view(const Tensor& tensor, const Dims& sizes) {
  const Dims wanted = infer_size(sizes, tensor.numel());
  if (tensor.impl()->is_contiguous && tensor.numel() > 0)
    return as_strided(tensor, wanted, contiguous_strides(wanted));
  const std::optional<Dims> strides = detail::strides_of_view(tensor.sizes(), tensor.strides(), wanted);
  TUTTI_CHECK(strides.has_value(), ShapeError, "view: shape ", tensor.sizes(), " with strides ",
              tensor.strides(), " can't be seen as ", wanted, " without a copy; reshape() makes one");
  return as_strided(tensor, wanted, *strides);
}

Tensor select(const Tensor& tensor, int dim, std::int64_t index) {
  TUTTI_CHECK(tensor.dim() > 0, IndexError, "select: a 0-dim tensor has no dim to select from");
  const int d = normalize_dim(dim, tensor.dim(), "select");
  const std::int64_t size = tensor.sizes()[d];
  TUTTI_CHECK(index >= -size && index < size, IndexError, "select: index ", index,
              " is out of range for dim ", d, " of shape ", tensor.sizes());
  const std::int64_t position = index < 0 ? index + size : index;
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  const std::int64_t offset = position * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return as_strided(tensor, sizes, strides, offset);
}

Tensor slice(const Tensor& tensor, int dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
  TUTTI_CHECK(tensor.dim() > 0, IndexError, "slice: a 0-dim tensor has no dim to slice");
  TUTTI_CHECK(step > 0, ValueError, "slice: the step must be at least 1, given ", step);
  const int d = normalize_dim(dim, tensor.dim(), "slice");
  const std::int64_t size = tensor.sizes()[d];
  const auto clamped = [size](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const std::int64_t first = clamped(start);
  const std::int64_t length = std::max<std::int64_t>(clamped(stop) - first, 0);
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  const std::int64_t offset = first * strides[d];
  sizes[d] = length / step + (length % step != 0 ? 1 : 0);
  // At most one element: the stride is never used, and a huge step must not overflow it.
  if (sizes[d] > 1) strides[d] *= step;
  return as_strided(tensor, sizes, strides, offset);
}

Tensor transpose(const Tensor& tensor, int dim0, int dim1) {
  const int a = normalize_dim(dim0, tensor.dim(), "transpose");
  const int b = normalize_dim(dim1, tensor.dim(), "transpose");
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return as_strided(tensor, sizes, strides);
}

Tensor permute(const Tensor& tensor, const Dims& dims) {
  TUTTI_CHECK(dims.size() == tensor.dim(), ShapeError, "permute: wanted each of the ", tensor.dim(),
              " dims of shape ", tensor.sizes(), " once, given ", dims);
  if (dims.empty()) return alias(tensor);
  dim_mask(dims, tensor.dim(), "permute");  // throws if one appears twice
  Dims sizes = dims;
  Dims strides = dims;
  for (int i = 0; i < dims.size(); ++i) {
    const int d = normalize_dim(static_cast<int>(dims[i]), tensor.dim(), "permute");
    sizes[i] = tensor.sizes()[d];
    strides[i] = tensor.strides()[d];
  }
  return as_strided(tensor, sizes, strides);
}

Tensor expand(const Tensor& tensor, const Dims& sizes) {
  const int added = sizes.size() - tensor.dim();
  TUTTI_CHECK(added >= 0, ShapeError, "expand: shape ", tensor.sizes(), " has more dims than the wanted ",
              sizes);
  Dims wanted = sizes;
  Dims strides = Dims::filled(sizes.size(), 0);
  for (int i = 0; i < sizes.size(); ++i) {
    if (i < added) {
      TUTTI_CHECK(sizes[i] >= 0, ShapeError, "expand: a new dim needs a size of at least 0, given ", sizes,
                  " for shape ", tensor.sizes());
      continue;
    }
    const std::int64_t size = tensor.sizes()[i - added];
    if (sizes[i] == -1 || sizes[i] == size) {
      wanted[i] = size;
      strides[i] = tensor.strides()[i - added];
      continue;
    }
    TUTTI_CHECK(size == 1 && sizes[i] >= 0, ShapeError, "expand: shape ", tensor.sizes(),
                " does not expand to ", sizes, ": size ", size, " in dim ", i - added);
  }
  detail::checked_numel(wanted, "expand");
  return as_strided(tensor, wanted, strides);
}

Tensor squeeze(const Tensor& tensor) {
  Dims sizes;
  Dims strides;
  for (int d = 0; d < tensor.dim(); ++d) {
    if (tensor.sizes()[d] == 1) continue;
    sizes.push_back(tensor.sizes()[d]);
    strides.push_back(tensor.strides()[d]);
  }
  return as_strided(tensor, sizes, strides);
}

Tensor squeeze(const Tensor& tensor, int dim) {
  const int d = normalize_dim(dim, tensor.dim(), "squeeze");
  if (tensor.dim() == 0 || tensor.sizes()[d] != 1) return alias(tensor);
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  sizes.erase(d);
  strides.erase(d);
  return as_strided(tensor, sizes, strides);
}

Tensor unsqueeze(const Tensor& tensor, int dim) {
  const int d = normalize_new_dim(dim, tensor.dim(), "unsqueeze");
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  // The stride that a row-major array would have there; unsigned: those of an empty tensor may wrap around.
  const std::uint64_t stride =
      d < tensor.dim() ? static_cast<std::uint64_t>(sizes[d]) * static_cast<std::uint64_t>(strides[d]) : 1;
  sizes.insert(d, 1);
  strides.insert(d, static_cast<std::int64_t>(stride));
  return as_strided(tensor, sizes, strides);
}

}  // namespace tutti::raw
