// SPDX-License-Identifier: Apache-2.0
/// \file
/// MNIST and Fashion-MNIST, and the IDX files they are kept in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tutti/core/export.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/data/row.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::data {

/// Reads an array in IDX format, plain or (".gz") gzip: uint8, int8, int16, int32, float32 or float64, up to kMaxDims dims,
/// converted to the machine's byte order. Nothing is taken on trust: DataError names file, offset, field, what was expected
/// and what was found, for a missing file, a wrong magic number, an unknown type, sizes that overflow or don't match the file,
/// truncation, trailing bytes and damaged compression.
TUTTI_API Tensor read_idx(const std::string& path);

/// Which part of a dataset.
enum class Split : std::uint8_t { kTrain, kTest };

/// Options of Mnist and FashionMnist.
struct MnistOptions {
  /// If given, pixels become (pixel / 255 - mean) / deviation.
  std::optional<float> mean{};
  std::optional<float> deviation{};
};

/// 28 x 28 grey images of ten classes. Input: float32 [1, 28, 28] in [0, 1] (pixel / 255); target: int64. Pixels are held as
/// bytes. Copies share memory.
class TUTTI_API Mnist : public Dataset<Mnist> {
 public:
  /// Reads `{train,t10k}-images-idx3-ubyte` and `{train,t10k}-labels-idx1-ubyte`, or these with ".gz", from the folder `root`.
  /// DataError as read_idx, and if images are not [N, 28, 28], labels not [N] of the same N, or a label is above 9.
  Mnist(const std::string& root, Split split, const MnistOptions& options = {});
  std::size_t size() const noexcept { return size_; }
  void read(std::size_t index, Row& row) const;

  const Tensor& images() const noexcept { return images_; }  ///< uint8 [N, 28, 28].
  const Tensor& labels() const noexcept { return labels_; }  ///< uint8 [N].

 private:
  Tensor images_;
  Tensor labels_;
  std::size_t size_ = 0;
  float mean_ = 0;
  float deviation_ = 1;
  bool normalize_ = false;
};

/// Fashion-MNIST [Xiao et al. 2017]: the same files and format as MNIST. Debian's package dataset-fashion-mnist has it in
/// /usr/share/datasets/fashion-mnist.
class TUTTI_API FashionMnist : public Mnist {
 public:
  using Mnist::Mnist;
};

}  // namespace tutti::data
