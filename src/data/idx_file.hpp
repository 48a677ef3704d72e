// SPDX-License-Identifier: Apache-2.0
// A file that is read once from its beginning, plain or gzip (told by its first bytes), and that must end where it should.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tutti/core/error.hpp"

namespace tutti::data {

class IdxFile {
 public:
  // DataError if there is no such regular file.
  explicit IdxFile(const std::string& path);
  ~IdxFile();
  IdxFile(const IdxFile&) = delete;
  IdxFile& operator=(const IdxFile&) = delete;

  // Reads exactly `bytes`, or fails; `field` says of what.
  void read(void* out, std::size_t bytes, const char* field);
  // Checks that nothing follows, and gzip's checksum.
  void finish();

  // Where the next byte stands, in the uncompressed contents.
  std::uint64_t offset() const noexcept { return offset_; }
  // No more than this can be in the file, whatever its header says.
  std::uint64_t most_bytes() const noexcept;
  bool is_compressed() const noexcept { return stream_ != nullptr; }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }

  // "PATH: offset 4, FIELD: expected ..., got ..."
  template <class Expected, class Got>
  [[noreturn]] void fail(std::uint64_t offset, const char* field, const Expected& expected,
                         const Got& got) const {
    throw DataError(concat(path_, ": offset ", offset, ", ", field, ": expected ", expected, ", got ", got));
  }

 private:
  // Next bytes of the file itself; fewer than asked for only at its end.
  std::size_t read_file(void* out, std::size_t bytes);
  // Uncompressed bytes; fewer than asked for only at the end of the contents.
  std::size_t read_some(std::byte* out, std::size_t bytes, const char* field);
  std::size_t inflate_some(std::byte* out, std::size_t bytes, const char* field);
  bool refill();

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t file_offset_ = 0;
  std::uint64_t offset_ = 0;
  std::unique_ptr<z_stream, void (*)(z_stream*)> stream_;
  std::unique_ptr<unsigned char[]> input_;
  bool has_ended_ = false;  // the compressed stream
};

}  // namespace tutti::data
