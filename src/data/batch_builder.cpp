// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "data/mixing.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::data {

Batch Batch::to(Device device, bool non_blocking) const {
  const auto moved = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, non_blocking) : tensor;
  };
  return {.inputs = moved(inputs),
          .targets = moved(targets),
          .mask = moved(mask),
          .weights = moved(weights),
          .indices = moved(indices)};
}

Generator sample_generator(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) noexcept {
  return Generator(key_of(Purpose::kSample, seed, epoch), index);
}

namespace detail {

BatchBuilder::BatchBuilder(const BatchRequest& request, BatchPool* pool)
    : request_(request), pool_(pool), random_(default_generator()) {
  const auto count = static_cast<std::int64_t>(request.indices.size());
  if (pool != nullptr) batch_ = pool->borrow(count);
  if (!batch_.indices.defined()) {
    is_new_ = true;
    batch_.indices = empty({count}, DType::kInt64);
    batch_.mask = empty({count}, DType::kBool);
    batch_.weights = empty({count});
  }
  weights_ = batch_.weights.data<float>();
  std::copy(request.indices.begin(), request.indices.end(), batch_.indices.data<std::int64_t>());
  bool* mask = batch_.mask.data<bool>();
  for (std::size_t i = 0; i < request.indices.size(); ++i) {
    mask[i] = i < request.valid_count;
    weights_[i] = mask[i] ? 1.0F : 0.0F;
  }
}

void BatchBuilder::start_row(std::size_t row) {
  row_ = row;
  default_generator() = sample_generator(request_.seed, request_.epoch, static_cast<std::uint64_t>(index()));
}

void BatchBuilder::finish_row() {
  const auto done = static_cast<std::int64_t>(row_) + 1;
  TUTTI_CHECK(inputs_.rows_done == done, DataError, "the sample gave no input");
  TUTTI_CHECK(!targets_.tensor.defined() || targets_.rows_done == done, DataError,
              "the sample gave no target, others of its batch did");
  // Padding has no weight, whatever the dataset says.
  if (row_ >= request_.valid_count) weights_[row_] = 0;
}

Batch BatchBuilder::finish() {
  if (batch_.targets.defined() && !targets_.tensor.defined()) is_new_ = true;
  batch_.inputs = std::move(inputs_.tensor);
  batch_.targets = std::move(targets_.tensor);
  if (is_new_ && pool_ != nullptr) pool_->keep(batch_);
  return std::move(batch_);
}

const char* BatchBuilder::name_of(const Field& field) const noexcept {
  return &field == &inputs_ ? "input" : "target";
}

void BatchBuilder::declare(Field& field, DType dtype, const Dims& sizes) {
  if (field.tensor.defined()) {
    // Without elements a tensor may have no memory, and the fast path can't tell it from an undeclared one.
    if (field.dtype == dtype && field.sizes == sizes) return;
    tutti::detail::fail<DataError>("the sample's ", name_of(field), " is ", dtype, " ", sizes,
                                   ", those before it in its batch are ", field.dtype, " ", field.sizes);
  }
  TUTTI_CHECK(row_ == 0, DataError, "the sample gave a ", name_of(field),
              ", those before it in its batch did not");
  Dims all = sizes;
  all.insert(0, static_cast<std::int64_t>(request_.indices.size()));
  Tensor& borrowed = &field == &inputs_ ? batch_.inputs : batch_.targets;
  if (borrowed.defined() && borrowed.dtype() == dtype && borrowed.sizes() == all) {
    field.tensor = borrowed;
    raw::bump_version(field.tensor);
  } else {
    field.tensor = empty(all, dtype);
    is_new_ = true;
  }
  field.dtype = dtype;
  field.sizes = sizes;
  field.row_numel = sizes.product();
  field.row_bytes = static_cast<std::size_t>(field.row_numel) * size_of(dtype);
  field.data = static_cast<std::byte*>(field.tensor.raw_data());
}

void BatchBuilder::copy(Field& field, const Tensor& value) {
  TUTTI_CHECK(value.defined(), DataError, "the sample's ", name_of(field), " is undefined");
  TUTTI_CHECK(value.device().is_cpu(), DeviceError, "the sample's ", name_of(field), " is on ",
              value.device(), ", wanted one on the CPU");
  std::byte* place_of_row = place(field, value.dtype(), value.sizes());
  if (field.row_bytes == 0) return;
  const Tensor source = value.is_contiguous() ? value : raw::contiguous(value);
  std::memcpy(place_of_row, source.raw_data(), field.row_bytes);
}

namespace {

[[noreturn]] void rethrow_as_data_error(const std::string& where) {
  try {
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(DataError(where + error.what()));
  } catch (...) {
    std::throw_with_nested(DataError(where + "an exception that is no std::exception"));
  }
}

}  // namespace

void BatchBuilder::rethrow_for_sample() const {
  rethrow_as_data_error(concat(request_.dataset, ": sample ", index(), ": "));
}

void rethrow_for_samples(const BatchRequest& request) {
  rethrow_as_data_error(concat(request.dataset, ": batch of samples ", request.indices.front(), " to ",
                               request.indices.back(), ": "));
}

}  // namespace detail

}  // namespace tutti::data
