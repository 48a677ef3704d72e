// SPDX-License-Identifier: Apache-2.0
#include "tutti/data/mnist.hpp"

#include <unistd.h>

#include <cmath>

#include "tutti/core/error.hpp"

namespace tutti::data {

namespace {

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kPixels = kSide * kSide;
constexpr std::uint8_t kClasses = 10;

// The file as it is, or compressed.
std::string find_file(const std::string& root, const std::string& name) {
  const std::string plain = root + "/" + name;
  if (::access(plain.c_str(), F_OK) == 0) return plain;
  const std::string compressed = plain + ".gz";
  TUTTI_CHECK(::access(compressed.c_str(), F_OK) == 0, DataError, "neither ", plain, " nor ", compressed,
              " is there (Debian's package dataset-fashion-mnist puts Fashion-MNIST into"
              " /usr/share/datasets/fashion-mnist)");
  return compressed;
}

Tensor read_images(const std::string& path) {
  Tensor images = read_idx(path);
  TUTTI_CHECK(images.dtype() == DType::kUInt8 && images.dim() == 3 && images.size(1) == kSide &&
                  images.size(2) == kSide,
              DataError, path, ": offset 2, header: expected images, uint8 [N, 28, 28], got ", images.dtype(),
              " ", images.sizes());
  return images;
}

Tensor read_labels(const std::string& path, std::int64_t count) {
  Tensor labels = read_idx(path);
  TUTTI_CHECK(labels.dtype() == DType::kUInt8 && labels.dim() == 1, DataError, path,
              ": offset 2, header: expected labels, uint8 [N], got ", labels.dtype(), " ", labels.sizes());
  TUTTI_CHECK(labels.numel() == count, DataError, path, ": offset 4, size of dim 0: expected ", count,
              " labels as there are images, got ", labels.numel());
  const std::uint8_t* values = labels.data<std::uint8_t>();
  constexpr std::int64_t kHeaderBytes = 8;
  for (std::int64_t i = 0; i < count; ++i) {
    TUTTI_CHECK(values[i] < kClasses, DataError, path, ": offset ", kHeaderBytes + i, ", label ", i,
                ": expected 0 to 9, got ", int{values[i]});
  }
  return labels;
}

}  // namespace

Mnist::Mnist(const std::string& root, Split split, const MnistOptions& options)
    : mean_(options.mean.value_or(0.0F)),
      deviation_(options.deviation.value_or(1.0F)),
      normalize_(options.mean.has_value() || options.deviation.has_value()) {
  TUTTI_CHECK(std::isfinite(mean_), ValueError, "Mnist: mean must be finite, given ", mean_);
  TUTTI_CHECK(std::isfinite(deviation_) && deviation_ > 0, ValueError,
              "Mnist: deviation must be finite and above 0, given ", deviation_);
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  images_ = read_images(find_file(root, prefix + "-images-idx3-ubyte"));
  labels_ = read_labels(find_file(root, prefix + "-labels-idx1-ubyte"), images_.size(0));
  size_ = static_cast<std::size_t>(images_.size(0));
}

void Mnist::read(std::size_t index, Row& row) const {
  if (index >= size_) detail::throw_index("Mnist", index, size_);
  const std::uint8_t* pixels =
      static_cast<const std::uint8_t*>(images_.raw_data()) + static_cast<std::int64_t>(index) * kPixels;
  float* out = row.input<float>({1, kSide, kSide}).data();
  // Through int, for which the baseline instruction set has a vector conversion.
  for (std::int64_t i = 0; i < kPixels; ++i)
    out[i] = static_cast<float>(static_cast<int>(pixels[i])) / 255.0F;
  if (normalize_) {
    for (std::int64_t i = 0; i < kPixels; ++i) out[i] = (out[i] - mean_) / deviation_;
  }
  row.target<std::int64_t>() = static_cast<const std::uint8_t*>(labels_.raw_data())[index];
}

}  // namespace tutti::data
