// SPDX-License-Identifier: Apache-2.0
#include "tensor/raw.hpp"

namespace tutti::raw {

void set_data(const Tensor& tensor, const Tensor& source) {
  detail::TensorImpl& to = *tensor.impl();
  const detail::TensorImpl& from = *source.impl();
  detail::Storage* old = to.storage;
  from.storage->references.fetch_add(1, std::memory_order_relaxed);
  to.storage = from.storage;
  to.data = from.data;
  to.dtype = from.dtype;
  to.is_contiguous = from.is_contiguous;
  to.numel = from.numel;
  to.sizes = from.sizes;
  to.strides = from.strides;
  // A tensor that was saved before must not look unmodified.
  const std::uint32_t before = old->version.load(std::memory_order_relaxed);
  if (to.storage->version.load(std::memory_order_relaxed) <= before) {
    to.storage->version.store(before + 1, std::memory_order_relaxed);
  }
  if (old->references.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::destroy(old);
}

}  // namespace tutti::raw
