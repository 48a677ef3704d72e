// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_requests.hpp"

#include <algorithm>
#include <string_view>

#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {
// What one MPI call moves: MPI's counts are ints, and Open MPI 4.1 has faults above 1 GiB.
constexpr std::size_t kCallBytes = std::size_t{256} << 20U;
}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  tutti::detail::fail<CommError>(call, ": ", std::string_view(text, static_cast<std::size_t>(length)));
}

// Null until MPI has set it, so that a call that fails leaves nothing behind.
MPI_Request& MpiRequests::add(int peer, bool is_receive) {
  peers_.push_back({peer, is_receive});
  return requests_.emplace_back(MPI_REQUEST_NULL);
}

void MpiRequests::send(const void* data, std::size_t bytes, int to, int tag) {
  for (std::size_t begin = 0; begin < bytes; begin += kCallBytes) {
    check_mpi(MPI_Isend(static_cast<const std::byte*>(data) + begin,
                        static_cast<int>(std::min(kCallBytes, bytes - begin)), MPI_BYTE, to, tag,
                        communicator_, &add(to, false)),
              "MPI_Isend");
  }
}

void MpiRequests::receive(void* data, std::size_t bytes, int from, int tag) {
  for (std::size_t begin = 0; begin < bytes; begin += kCallBytes) {
    check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + begin,
                        static_cast<int>(std::min(kCallBytes, bytes - begin)), MPI_BYTE, from, tag,
                        communicator_, &add(from, true)),
              "MPI_Irecv");
  }
}

bool MpiRequests::test() {
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
  if (done == 0) return false;
  requests_.clear();
  peers_.clear();
  return true;
}

std::vector<int> MpiRequests::missing() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    int done = 0;
    check_mpi(MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE), "MPI_Request_get_status");
    if (done == 0) ranks.push_back(peers_[i].rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void MpiRequests::let_go() noexcept {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (peers_[i].is_receive) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  peers_.clear();
}

}  // namespace tutti::comm
