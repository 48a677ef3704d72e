// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tutti/data/row.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::data::detail {

namespace {

std::array<const Tensor*, 5> tensors_of(const Batch& batch) {
  return {&batch.inputs, &batch.targets, &batch.mask, &batch.weights, &batch.indices};
}

// Only the pool's handle is left. A tensor that autograd knows may be a leaf with a gradient: such a one is not used again.
bool is_unused(const Batch& batch) {
  return std::ranges::all_of(tensors_of(batch), [](const Tensor* tensor) {
    const tutti::detail::TensorImpl* impl = tensor->impl();
    return impl == nullptr ||
           (impl->references.load(std::memory_order_acquire) == 1 &&
            impl->storage->references.load(std::memory_order_acquire) == 1 && impl->autograd == nullptr);
  });
}

Tensor like(const Tensor& tensor) { return tensor.defined() ? empty_like(tensor) : Tensor(); }

}  // namespace

BatchPool::BatchPool(std::size_t capacity, std::int64_t rows) : capacity_(capacity), rows_(rows) {
  batches_.reserve(capacity);
}

Batch BatchPool::borrow(std::int64_t rows) {
  if (rows != rows_) return {};
  const std::lock_guard lock(mutex_);
  const auto unused = std::ranges::find_if(batches_, is_unused);
  return unused != batches_.end() ? *unused : Batch();
}

void BatchPool::keep(const Batch& batch) {
  if (batch.size() != rows_) return;
  const std::lock_guard lock(mutex_);
  if (!batches_.empty()) {
    batches_[next_++ % capacity_] = batch;
    return;
  }
  batches_.push_back(batch);
  while (batches_.size() < capacity_) {
    batches_.push_back({.inputs = like(batch.inputs),
                        .targets = like(batch.targets),
                        .mask = like(batch.mask),
                        .weights = like(batch.weights),
                        .indices = like(batch.indices)});
  }
}

}  // namespace tutti::data::detail
