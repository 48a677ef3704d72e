// SPDX-License-Identifier: Apache-2.0
/// \file
/// Batch: what a DataLoader gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::data {

/// N samples. Tuple-like of size two: `const auto& [images, labels] = batch;`.
struct Batch {
  Tensor inputs;   ///< [N, ...].
  Tensor targets;  ///< [N, ...]; undefined if the dataset gives none.
  /// bool [N]: false for samples that are there a second time only so that all ranks have equally many (Sharding::kPad).
  /// Evaluation leaves them out.
  Tensor mask;
  /// float32 [N]: the weights that the dataset gives its samples (Row::set_weight), by default 1; 0 where mask is false.
  Tensor weights;
  Tensor indices;  ///< int64 [N]: which sample of the dataset each row is.

  /// N.
  std::int64_t size() const { return indices.defined() ? indices.numel() : 0; }
  /// The same batch on another device; non_blocking as in Tensor::to(): it does nothing on CPUs.
  TUTTI_API Batch to(Device device, bool non_blocking = false) const;
};

/// Element I of a batch: inputs, targets.
template <std::size_t I>
Tensor& get(Batch& batch) noexcept {
  static_assert(I < 2);
  return I == 0 ? batch.inputs : batch.targets;
}
/// The same of a constant batch.
template <std::size_t I>
const Tensor& get(const Batch& batch) noexcept {
  static_assert(I < 2);
  return I == 0 ? batch.inputs : batch.targets;
}
/// The same of a temporary.
template <std::size_t I>
Tensor&& get(Batch&& batch) noexcept {
  return std::move(get<I>(batch));
}

}  // namespace tutti::data

/// A Batch has two elements.
template <>
struct std::tuple_size<tutti::data::Batch> : std::integral_constant<std::size_t, 2> {};
/// Both are tensors.
template <std::size_t I>
struct std::tuple_element<I, tutti::data::Batch> {
  using type = tutti::Tensor;
};
