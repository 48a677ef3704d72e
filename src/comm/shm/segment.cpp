// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tutti/core/error.hpp"

namespace tutti::comm {

void Segment::map(int fd, std::size_t bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  TUTTI_CHECK(address != MAP_FAILED, MemoryError, "can't map ", bytes,
              " bytes of shared memory: ", std::strerror(errno));
  ::madvise(address, bytes, MADV_HUGEPAGE);  // where the system allows it; a refusal costs nothing but speed
  data_ = static_cast<std::byte*>(address);
  bytes_ = bytes;
}

Segment Segment::create(std::size_t bytes) {
  Segment segment;
  segment.fd_ = ::memfd_create("tutti", MFD_CLOEXEC);
  TUTTI_CHECK(segment.fd_ >= 0, MemoryError,
              "can't make shared memory: memfd_create: ", std::strerror(errno));
  TUTTI_CHECK(::ftruncate(segment.fd_, static_cast<off_t>(bytes)) == 0, MemoryError, "can't make ", bytes,
              " bytes of shared memory: ", std::strerror(errno));
  segment.map(segment.fd_, bytes);
  return segment;
}

Segment Segment::open(pid_t pid, int fd, std::size_t bytes) {
  const std::string path = concat("/proc/", pid, "/fd/", fd);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  TUTTI_CHECK(opened >= 0, CommError, "can't open the shared memory of process ", pid, " (", path,
              "): ", std::strerror(errno));
  Segment segment;
  try {
    segment.map(opened, bytes);
  } catch (...) {
    ::close(opened);
    throw;
  }
  ::close(opened);
  return segment;
}

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  if (fd_ >= 0) ::close(fd_);
}

void Segment::discard_pages() const noexcept {
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_));
}

}  // namespace tutti::comm
