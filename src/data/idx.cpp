// SPDX-License-Identifier: Apache-2.0
// IDX: two zero bytes, the type's code, the number of dims, each size as a big-endian 32-bit number, then the elements,
// big-endian (Yann LeCun's description of the MNIST files).
#include <algorithm>
#include <cstdint>
#include <optional>

#include "data/idx_file.hpp"
#include "tutti/core/error.hpp"
#include "tutti/data/mnist.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::data {

namespace {

struct Header {
  DType dtype;
  Dims sizes;
  std::uint64_t bytes;  // of the elements
};

std::optional<DType> dtype_of_code(std::uint8_t code) {
  switch (code) {
    case 0x08: return DType::kUInt8;
    case 0x09: return DType::kInt8;
    case 0x0B: return DType::kInt16;
    case 0x0C: return DType::kInt32;
    case 0x0D: return DType::kFloat32;
    case 0x0E: return DType::kFloat64;
    default: return std::nullopt;
  }
}

Header read_header(IdxFile& file) {
  std::uint8_t magic[4];
  file.read(magic, sizeof(magic), "magic number");
  if (magic[0] != 0 || magic[1] != 0)
    file.fail(0, "magic number", "0 0 (an IDX file)", concat(int{magic[0]}, " ", int{magic[1]}));
  const std::optional<DType> dtype = dtype_of_code(magic[2]);
  if (!dtype) file.fail(2, "element type", "one of 8, 9, 11, 12, 13, 14", int{magic[2]});
  if (magic[3] < 1 || magic[3] > kMaxDims)
    file.fail(3, "number of dims", concat("1 to ", kMaxDims), int{magic[3]});
  Header header{*dtype, {}, size_of(*dtype)};
  for (int dim = 0; dim < magic[3]; ++dim) {
    std::uint8_t size[4];
    const std::uint64_t at = file.offset();
    file.read(size, sizeof(size), "size of a dim");
    const std::uint32_t value = static_cast<std::uint32_t>(size[0]) << 24U |
                                static_cast<std::uint32_t>(size[1]) << 16U |
                                static_cast<std::uint32_t>(size[2]) << 8U | size[3];
    header.sizes.push_back(value);
    if (__builtin_mul_overflow(header.bytes, std::uint64_t{value}, &header.bytes) || header.bytes > INT64_MAX)
      file.fail(at, "size of a dim", "a product that fits 63 bits", value);
  }
  return header;
}

// Nothing is allocated for what the file can't hold.
void check_size(const IdxFile& file, const Header& header) {
  const std::uint64_t offset = file.offset();
  if (!file.is_compressed() && file.file_bytes() - offset != header.bytes) {
    file.fail(offset, "elements", concat(header.bytes, " bytes for shape ", header.sizes),
              concat(file.file_bytes() - offset, " bytes"));
  }
  if (header.bytes > file.most_bytes()) {
    file.fail(offset, "elements", concat(header.bytes, " bytes for shape ", header.sizes),
              concat("a file of ", file.file_bytes(), " compressed bytes, which can't hold them"));
  }
}

void swap_bytes(std::byte* data, std::uint64_t bytes, std::size_t element) {
  for (std::uint64_t i = 0; i < bytes; i += element) std::reverse(data + i, data + i + element);
}

}  // namespace

Tensor read_idx(const std::string& path) {
  IdxFile file(path);
  const Header header = read_header(file);
  check_size(file, header);
  Tensor array = empty(header.sizes, header.dtype);
  auto* data = static_cast<std::byte*>(array.raw_data());
  file.read(data, static_cast<std::size_t>(header.bytes), "elements");
  file.finish();
  if (size_of(header.dtype) > 1) swap_bytes(data, header.bytes, size_of(header.dtype));
  return array;
}

}  // namespace tutti::data
