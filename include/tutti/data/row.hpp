// SPDX-License-Identifier: Apache-2.0
/// \file
/// Row: the place in a batch that a dataset writes one sample to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "tutti/core/dtype.hpp"
#include "tutti/core/export.hpp"
#include "tutti/core/random.hpp"
#include "tutti/data/batch.hpp"
#include "tutti/tensor/dims.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::data {

/// A generator whose numbers depend on seed, epoch and sample alone: the same augmentation whatever thread loads the sample.
TUTTI_API Generator sample_generator(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) noexcept;

/// Which samples a batch is made of. The spans and the name live until it is made.
struct BatchRequest {
  std::span<const std::int64_t> indices;
  std::size_t valid_count = 0;  ///< The samples behind these are padding.
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;
  const char* dataset = "";  ///< For messages.
};

namespace detail {

/// Lets the thread's default generator be another one for a scope.
class RandomScope {
 public:
  explicit RandomScope(const Generator& generator) noexcept : previous_(default_generator()) {
    default_generator() = generator;
  }
  ~RandomScope() { default_generator() = previous_; }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  Generator previous_;
};

/// Tensors of batches that go round between a loader and its consumer, so that a warm loader asks no allocator. A batch is
/// used again once nobody but the pool has handles to it or views of it. Thread-safe.
class TUTTI_API BatchPool {
 public:
  /// For batches of `rows` rows.
  BatchPool(std::size_t capacity, std::int64_t rows);
  /// A batch that nobody uses, or an empty one.
  Batch borrow(std::int64_t rows);
  /// Takes a batch into the pool; the first one brings the pool to its capacity.
  void keep(const Batch& batch);

 private:
  std::size_t capacity_;
  std::int64_t rows_;
  std::mutex mutex_;
  std::vector<Batch> batches_;
  std::size_t next_ = 0;  // the one that is replaced next
};

/// One tensor of a batch that is being made; its first row decides on dtype and sizes.
struct Field {
  std::byte* data = nullptr;
  std::size_t row_bytes = 0;
  std::int64_t row_numel = 0;
  std::int64_t rows_done = 0;  ///< Rows that have asked for their part.
  DType dtype = DType::kFloat32;
  Dims sizes;  ///< Of one row.
  Tensor tensor;
};

/// Makes one batch. Not thread-safe.
class TUTTI_API BatchBuilder {
 public:
  /// `pool` may be null.
  BatchBuilder(const BatchRequest& request, BatchPool* pool);
  BatchBuilder(const BatchBuilder&) = delete;
  BatchBuilder& operator=(const BatchBuilder&) = delete;

  /// Goes to row `row`, and makes the thread's default generator that of its sample.
  void start_row(std::size_t row);
  /// DataError if the row lacks an input or target that others have.
  void finish_row();
  /// The finished batch. May be called once.
  Batch finish();

  /// Where the current row's part of a field lies.
  std::byte* place(Field& field, DType dtype, const Dims& sizes) {
    if (field.data == nullptr || field.dtype != dtype || !(field.sizes == sizes)) [[unlikely]]
      declare(field, dtype, sizes);
    field.rows_done = static_cast<std::int64_t>(row_) + 1;
    return field.data + row_ * field.row_bytes;
  }
  void copy(Field& field, const Tensor& value);

  const BatchRequest& request() const noexcept { return request_; }
  std::int64_t index() const noexcept { return request_.indices[row_]; }
  Field& inputs() noexcept { return inputs_; }
  Field& targets() noexcept { return targets_; }
  float& weight() noexcept { return weights_[row_]; }
  /// Throws the current exception as a DataError that names dataset and sample, nested in it the original.
  [[noreturn]] void rethrow_for_sample() const;

 private:
  void declare(Field& field, DType dtype, const Dims& sizes);
  const char* name_of(const Field& field) const noexcept;

  BatchRequest request_;
  BatchPool* pool_;
  bool is_new_ = false;  // the pool doesn't know this batch
  std::size_t row_ = 0;
  Field inputs_;
  Field targets_;
  Batch batch_;  // until a row declares them, inputs and targets are those of a borrowed batch
  float* weights_ = nullptr;
  RandomScope random_;  // rows change the generator inside it
};

}  // namespace detail

/// One sample's place in a batch, given to a dataset's read(). The first row of a batch decides on sizes and dtypes; a row
/// that asks for others, or for less, is a DataError that names the sample.
///
/// While read() runs, the thread's default generator is sample_generator(seed, epoch, index), so that random functions give
/// the same numbers for any number of workers.
class Row {
 public:
  explicit Row(detail::BatchBuilder& builder) noexcept : builder_(&builder) {}

  /// The sample's number in the dataset.
  std::size_t index() const noexcept { return static_cast<std::size_t>(builder_->index()); }
  /// The loader's pass over the data, from 0.
  std::uint64_t epoch() const noexcept { return builder_->request().epoch; }
  /// The thread's default generator: see above.
  Generator& generator() const noexcept { return default_generator(); }

  /// Memory for the sample's input, row-major, not initialised: all of it is to be written.
  template <class T>
  std::span<T> input(const Dims& sizes) {
    return typed<T>(builder_->inputs(), sizes);
  }
  /// An input of one number.
  template <class T>
  T& input() {
    return *typed<T>(builder_->inputs(), {}).data();
  }
  /// Memory for the sample's target.
  template <class T>
  std::span<T> target(const Dims& sizes) {
    return typed<T>(builder_->targets(), sizes);
  }
  /// A target of one number: `row.target<std::int64_t>() = label;`.
  template <class T>
  T& target() {
    return *typed<T>(builder_->targets(), {}).data();
  }
  /// Copies a CPU tensor into the batch.
  void set_input(const Tensor& value) { builder_->copy(builder_->inputs(), value); }
  /// The same for the target.
  void set_target(const Tensor& value) { builder_->copy(builder_->targets(), value); }
  /// The sample's weight in Batch::weights.
  void set_weight(float weight) noexcept { builder_->weight() = weight; }

  /// For datasets of any dtype: memory for the input as bytes.
  std::span<std::byte> input_bytes(DType dtype, const Dims& sizes) {
    return bytes(builder_->inputs(), dtype, sizes);
  }
  /// The same for the target.
  std::span<std::byte> target_bytes(DType dtype, const Dims& sizes) {
    return bytes(builder_->targets(), dtype, sizes);
  }

 private:
  template <class T>
  std::span<T> typed(detail::Field& field, const Dims& sizes) {
    std::byte* data = builder_->place(field, dtype_of<T>, sizes);
    return {reinterpret_cast<T*>(data), static_cast<std::size_t>(field.row_numel)};
  }
  std::span<std::byte> bytes(detail::Field& field, DType dtype, const Dims& sizes) {
    std::byte* data = builder_->place(field, dtype, sizes);
    return {data, field.row_bytes};
  }

  detail::BatchBuilder* builder_;
};

}  // namespace tutti::data
