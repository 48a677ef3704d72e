// SPDX-License-Identifier: Apache-2.0
#include "data/idx_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::data {

namespace {

constexpr std::size_t kInputBytes = 256 * 1024;
constexpr unsigned char kGzipMagic[2] = {0x1F, 0x8B};
constexpr std::uint64_t kDeflateMostRatio = 1032;  // zlib's technical details: 1032 to 1

void end_stream(z_stream* stream) {
  inflateEnd(stream);
  delete stream;
}

}  // namespace

IdxFile::IdxFile(const std::string& path) : path_(path), stream_(nullptr, end_stream) {
  // Opening a FIFO would wait for a writer. Reading a regular file is as without O_NONBLOCK.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  TUTTI_CHECK(descriptor_ >= 0, DataError, path, ": can't be opened: ", std::strerror(errno));
  try {
    struct stat status {};
    TUTTI_CHECK(::fstat(descriptor_, &status) == 0, DataError, path, ": fstat: ", std::strerror(errno));
    TUTTI_CHECK(S_ISREG(status.st_mode), DataError, path, ": is no regular file");
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    unsigned char magic[2] = {};
    const bool is_gzip = read_file(magic, sizeof(magic)) == sizeof(magic) &&
                         std::memcmp(magic, kGzipMagic, sizeof(magic)) == 0;
    TUTTI_CHECK(::lseek(descriptor_, 0, SEEK_SET) == 0, DataError, path, ": lseek: ", std::strerror(errno));
    file_offset_ = 0;
    if (!is_gzip) return;
    input_ = std::make_unique<unsigned char[]>(kInputBytes);
    auto stream = std::make_unique<z_stream>();
    constexpr int kGzipOnly = 16;
    TUTTI_CHECK(inflateInit2(stream.get(), MAX_WBITS + kGzipOnly) == Z_OK, MemoryError, path,
                ": zlib can't start");
    stream_.reset(stream.release());
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

IdxFile::~IdxFile() { ::close(descriptor_); }

std::uint64_t IdxFile::most_bytes() const noexcept {
  return is_compressed() ? file_bytes_ * kDeflateMostRatio : file_bytes_;
}

std::size_t IdxFile::read_file(void* out, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::read(descriptor_, static_cast<char*>(out) + done, bytes - done);
    if (count == 0) break;
    if (count < 0) {
      if (errno == EINTR) continue;
      throw DataError(
          concat(path_, ": offset ", file_offset_ + done, ": reading failed: ", std::strerror(errno)));
    }
    done += static_cast<std::size_t>(count);
  }
  file_offset_ += done;
  return done;
}

bool IdxFile::refill() {
  const std::size_t count = read_file(input_.get(), kInputBytes);
  stream_->next_in = input_.get();
  stream_->avail_in = static_cast<uInt>(count);
  return count > 0;
}

std::size_t IdxFile::inflate_some(std::byte* out, std::size_t bytes, const char* field) {
  std::size_t done = 0;
  while (done < bytes && !has_ended_) {
    if (stream_->avail_in == 0 && !refill()) {
      fail(offset_ + done, field, "more compressed data",
           concat("the end of the file after ", file_bytes_, " compressed bytes"));
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(bytes - done, 1U << 30U));
    stream_->next_out = reinterpret_cast<unsigned char*>(out + done);
    stream_->avail_out = room;
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    done += room - stream_->avail_out;
    has_ended_ = status == Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      fail(offset_ + done, field, "valid gzip data",
           concat("damage near byte ", file_offset_ - stream_->avail_in, " of the file (",
                  stream_->msg != nullptr ? stream_->msg : "zlib error", ")"));
    }
  }
  return done;
}

std::size_t IdxFile::read_some(std::byte* out, std::size_t bytes, const char* field) {
  return is_compressed() ? inflate_some(out, bytes, field) : read_file(out, bytes);
}

void IdxFile::read(void* out, std::size_t bytes, const char* field) {
  const std::size_t done = read_some(static_cast<std::byte*>(out), bytes, field);
  if (done < bytes) fail(offset_, field, concat(bytes, " bytes"), concat(done, " before the end"));
  offset_ += done;
}

void IdxFile::finish() {
  std::byte more[1];
  if (read_some(more, sizeof(more), "end") > 0) fail(offset_, "end", "the end of the contents", "more bytes");
  if (!is_compressed()) return;
  const std::uint64_t end = file_offset_ - stream_->avail_in;
  if (end != file_bytes_) {
    fail(offset_, "end", concat("the end of the file after ", end, " compressed bytes"),
         concat(file_bytes_ - end, " more bytes"));
  }
}

}  // namespace tutti::data
