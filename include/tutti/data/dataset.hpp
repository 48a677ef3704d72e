// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dataset: samples by number.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "tutti/core/error.hpp"
#include "tutti/core/export.hpp"
#include "tutti/core/type_name.hpp"
#include "tutti/data/batch.hpp"
#include "tutti/data/row.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::data {

/// One sample.
struct Example {
  Tensor input;
  Tensor target;  ///< Undefined if there is none.
};

namespace detail {

template <class D>
concept ReadsRows = requires(const D& dataset, std::size_t index, Row& row) {
  dataset.read(index, row);
};
template <class D>
concept GetsExamples = requires(const D& dataset, std::size_t index) {
  { dataset.get(index) } -> std::convertible_to<Example>;
};
template <class D>
concept MakesBatches = requires(const D& dataset, std::span<const std::int64_t> indices) {
  { dataset.batch(indices) } -> std::convertible_to<typename D::Batch>;
};
template <class D>
concept AnyDataset = requires(const D& dataset) {
  { dataset.size() } -> std::convertible_to<std::size_t>;
}
&&(ReadsRows<D> || GetsExamples<D> || MakesBatches<D>);

[[noreturn]] TUTTI_API void throw_index(const std::string& dataset, std::size_t index, std::size_t size);
/// IndexError if the request, whose indices a sampler of any kind gave, is for a sample that the dataset does not have.
TUTTI_API void check_indices(const BatchRequest& request, std::size_t size);

/// Throws the current exception as a DataError that names dataset and samples, nested in it the original.
[[noreturn]] TUTTI_API void rethrow_for_samples(const BatchRequest& request);

/// Makes the samples of a request into a batch, for a dataset that does it itself.
template <class D>
typename D::Batch make_batch(const D& dataset, const BatchRequest& request) {
  check_indices(request, static_cast<std::size_t>(dataset.size()));
  const RandomScope random(
      sample_generator(request.seed, request.epoch, static_cast<std::uint64_t>(request.indices[0])));
  try {
    return dataset.batch(request.indices);
  } catch (...) {
    rethrow_for_samples(request);
  }
}

/// Makes the samples of a request into a batch, in memory of the pool if there is one.
template <class D>
Batch read_batch(const D& dataset, const BatchRequest& request, BatchPool* pool = nullptr) {
  check_indices(request, static_cast<std::size_t>(dataset.size()));
  BatchBuilder builder(request, pool);
  Row row(builder);
  for (std::size_t i = 0; i < request.indices.size(); ++i) {
    builder.start_row(i);
    try {
      const auto index = static_cast<std::size_t>(request.indices[i]);
      if constexpr (ReadsRows<D>) {
        dataset.read(index, row);
      } else {
        const Example example = dataset.get(index);
        row.set_input(example.input);
        if (example.target.defined()) row.set_target(example.target);
      }
      builder.finish_row();
    } catch (...) {
      builder.rethrow_for_sample();
    }
  }
  return builder.finish();
}

}  // namespace detail

/// Base of datasets: `struct Sensors : data::Dataset<Sensors>`. Derived has size() and one of
///
///     void read(std::size_t index, data::Row& row) const;             // writes its row of the batch in place
///     data::Example get(std::size_t index) const;                     // tensors, which are copied into the batch
///     Batch batch(std::span<const std::int64_t> indices) const;       // a whole batch, of Derived's own type Batch
///
/// They are called from several threads at once. A DataLoader holds its own copy of the dataset; built-in datasets copy cheaply
/// (handles to the same memory).
template <class Derived>
class Dataset {
 public:
  /// What a loader gives; a Derived with batch() may name another aggregate.
  using Batch = data::Batch;

  /// One sample, as it would stand in a batch. IndexError if there is no such one.
  Example operator[](std::size_t index) const {
    static_assert(detail::ReadsRows<Derived> || detail::GetsExamples<Derived>,
                  "a dataset that makes whole batches has no single samples");
    const auto& self = static_cast<const Derived&>(*this);
    const std::string name = std::string(tutti::detail::type_name<Derived>());
    const auto size = static_cast<std::size_t>(self.size());
    if (index >= size) detail::throw_index(name, index, size);
    const auto number = static_cast<std::int64_t>(index);
    const data::Batch batch = detail::read_batch(
        self, BatchRequest{
                  .indices = {&number, 1}, .valid_count = 1, .epoch = 0, .seed = 0, .dataset = name.c_str()});
    return {batch.inputs.select(0, 0), batch.targets.defined() ? batch.targets.select(0, 0) : Tensor()};
  }
};

/// The rows of tensors: sample i is inputs[i], targets[i]. The tensors are not copied if they are contiguous.
class TUTTI_API TensorDataset : public Dataset<TensorDataset> {
 public:
  /// `targets` may be undefined. ShapeError if a tensor has no dim or their first sizes differ; DeviceError if one is not on
  /// the CPU.
  explicit TensorDataset(const Tensor& inputs, const Tensor& targets = {});
  std::size_t size() const noexcept { return size_; }  ///< Size of dim 0.
  void read(std::size_t index, Row& row) const;

 private:
  struct Column {
    Tensor tensor;
    Dims sizes;  // of a row
    std::size_t row_bytes = 0;
  };
  static Column column(const Tensor& tensor, const char* name);

  std::size_t size_ = 0;
  Column inputs_;
  Column targets_;
};

}  // namespace tutti::data
