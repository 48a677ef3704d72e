// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_bootstrap.hpp"

#include <chrono>
#include <thread>

#include "comm/contract.hpp"
#include "comm/mpi/mpi_transport.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {
constexpr int kExchangeTag = 0;
constexpr auto kPollInterval = std::chrono::microseconds(50);
}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  tutti::detail::fail<CommError>(call, ": ", std::string_view(text, static_cast<std::size_t>(length)));
}

MpiBootstrap::MpiBootstrap(MPI_Comm communicator) : communicator_(communicator) {
  check_mpi(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
}

MpiBootstrap::~MpiBootstrap() { MPI_Comm_free(&communicator_); }

std::vector<std::string> MpiBootstrap::exchange(const std::string& bytes, const Deadline& deadline,
                                                const char* purpose) {
  std::vector<std::string> all(static_cast<std::size_t>(size_));
  all[static_cast<std::size_t>(rank_)] = bytes;
  std::vector<MPI_Request> sends;
  std::vector<int> missing;
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + step) % size_;
    missing.push_back(peer);
    sends.emplace_back();
    check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, kExchangeTag,
                        communicator_, &sends.back()),
              "MPI_Isend");
  }
  int sent = 0;
  for (;;) {
    std::erase_if(missing, [&](int peer) {
      int found = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      check_mpi(MPI_Improbe(peer, kExchangeTag, communicator_, &found, &message, &status), "MPI_Improbe");
      if (found == 0) return false;
      int length = 0;
      check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
      std::string& text = all[static_cast<std::size_t>(peer)];
      text.resize(static_cast<std::size_t>(length));
      check_mpi(MPI_Mrecv(text.data(), length, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
      return true;
    });
    if (sent == 0)
      check_mpi(MPI_Testall(static_cast<int>(sends.size()), sends.data(), &sent, MPI_STATUSES_IGNORE),
                "MPI_Testall");
    if (missing.empty() && sent != 0) return all;
    if (deadline.passed()) {
      tutti::detail::fail<TimeoutError>(purpose, ": rank ", rank_, " has waited ", deadline.seconds(),
                                        " s for ", rank_list(missing), " (TUTTI_TIMEOUT_S)");
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::unique_ptr<Bootstrap> MpiBootstrap::subset(const std::vector<int>& ranks, const std::string&,
                                                const Deadline&) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(communicator_, &all), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  const int code = MPI_Comm_create_group(communicator_, some, kExchangeTag, &communicator);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  check_mpi(code, "MPI_Comm_create_group");
  return std::make_unique<MpiBootstrap>(communicator);
}

std::unique_ptr<Transport> MpiBootstrap::make_network_transport(std::shared_ptr<Waiter> waiter) {
  MPI_Comm own = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(communicator_, &own), "MPI_Comm_dup");
  return std::make_unique<MpiTransport>(own, std::move(waiter));
}

}  // namespace tutti::comm
