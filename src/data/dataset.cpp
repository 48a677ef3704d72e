// SPDX-License-Identifier: Apache-2.0
#include "tutti/data/dataset.hpp"

#include <cstring>

#include "tensor/raw.hpp"

namespace tutti::data {

namespace detail {

void throw_index(const std::string& dataset, std::size_t index, std::size_t size) {
  throw IndexError(concat(dataset, ": there is no sample ", index, " of ", size));
}

void check_indices(const BatchRequest& request, std::size_t size) {
  for (const std::int64_t index : request.indices) {
    TUTTI_CHECK(index >= 0 && static_cast<std::size_t>(index) < size, IndexError, request.dataset,
                ": there is no sample ", index, " of ", size);
  }
}

}  // namespace detail

TensorDataset::Column TensorDataset::column(const Tensor& tensor, const char* name) {
  TUTTI_CHECK(tensor.defined(), ShapeError, "TensorDataset: ", name, " are undefined");
  TUTTI_CHECK(tensor.device().is_cpu(), DeviceError, "TensorDataset: ", name, " are on ", tensor.device(),
              ", wanted a tensor on the CPU");
  TUTTI_CHECK(tensor.dim() >= 1, ShapeError, "TensorDataset: ", name,
              " have no dim to take samples of, shape ", tensor.sizes());
  Column column;
  column.tensor = raw::contiguous(tensor);
  column.sizes = tensor.sizes();
  column.sizes.erase(0);
  column.row_bytes = static_cast<std::size_t>(column.sizes.product()) * tensor.element_size();
  return column;
}

TensorDataset::TensorDataset(const Tensor& inputs, const Tensor& targets)
    : inputs_(column(inputs, "inputs")) {
  size_ = static_cast<std::size_t>(inputs.size(0));
  if (!targets.defined()) return;
  targets_ = column(targets, "targets");
  TUTTI_CHECK(targets.size(0) == inputs.size(0), ShapeError, "TensorDataset: ", inputs.size(0), " inputs ",
              inputs.sizes(), " and ", targets.size(0), " targets ", targets.sizes());
}

void TensorDataset::read(std::size_t index, Row& row) const {
  if (index >= size_) detail::throw_index("TensorDataset", index, size_);
  const auto copy = [index](const Column& column, std::span<std::byte> out) {
    if (out.empty()) return;
    std::memcpy(out.data(),
                static_cast<const std::byte*>(column.tensor.raw_data()) + index * column.row_bytes,
                out.size());
  };
  copy(inputs_, row.input_bytes(inputs_.tensor.dtype(), inputs_.sizes));
  if (targets_.tensor.defined()) copy(targets_, row.target_bytes(targets_.tensor.dtype(), targets_.sizes));
}

}  // namespace tutti::data
