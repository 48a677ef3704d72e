// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_bootstrap.hpp"

#include <numeric>
#include <thread>

#include "comm/contract.hpp"
#include "comm/keep.hpp"
#include "comm/mpi/mpi_requests.hpp"
#include "comm/mpi/mpi_transport.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

constexpr int kExchangeTag = 0;
constexpr int kSubsetTag = 1;  // only some ranks take part, which others' exchanges must not see

// The rank's text on its way to the others. One that gives up leaves it to MPI.
class Announcement {
 public:
  // One byte more than the text, so that an empty one is a message too.
  Announcement(MPI_Comm communicator, const std::string& text)
      : text_(std::make_shared<const std::string>(text + '\0')), sends_(communicator) {}
  ~Announcement() {
    if (sends_.under_way()) keep_forever(text_);
  }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;
  void send(int to, int tag) { sends_.send(text_->data(), text_->size(), to, tag); }
  bool is_sent() { return sends_.test(); }

 private:
  std::shared_ptr<const std::string> text_;
  MpiRequests sends_;
};

// Receives the peer's text, if it is there.
bool receive_text(MPI_Comm communicator, int peer, int tag, std::string& text) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check_mpi(MPI_Improbe(peer, tag, communicator, &found, &message, &status), "MPI_Improbe");
  if (found == 0) return false;
  int length = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  text.resize(static_cast<std::size_t>(length));
  check_mpi(MPI_Mrecv(text.data(), length, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  text.pop_back();
  return true;
}

}  // namespace

MpiBootstrap::MpiBootstrap(MPI_Comm communicator) : communicator_(communicator) {
  check_mpi(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
}

// Open MPI and MPICH count references here; they don't wait for the other ranks.
MpiBootstrap::~MpiBootstrap() { MPI_Comm_free(&communicator_); }

std::vector<std::string> MpiBootstrap::exchange(const std::string& bytes, const Deadline& deadline,
                                                const char* purpose) {
  std::vector<int> ranks(static_cast<std::size_t>(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  return exchange_among(ranks, kExchangeTag, bytes, deadline, purpose);
}

std::vector<std::string> MpiBootstrap::exchange_among(const std::vector<int>& ranks, int tag,
                                                      const std::string& bytes, const Deadline& deadline,
                                                      const char* purpose) {
  std::vector<std::string> all(ranks.size());
  Announcement announcement(communicator_, bytes);
  std::vector<std::size_t> missing;  // positions in `ranks`
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == rank_) {
      all[i] = bytes;
    } else {
      missing.push_back(i);
      announcement.send(ranks[i], tag);
    }
  }
  for (;;) {
    std::erase_if(missing, [&](std::size_t i) { return receive_text(communicator_, ranks[i], tag, all[i]); });
    if (announcement.is_sent() && missing.empty()) return all;
    if (deadline.passed()) {
      std::vector<int> late;
      for (const std::size_t i : missing) late.push_back(ranks[i]);
      tutti::detail::fail<TimeoutError>(purpose, ": rank ", rank_, " has waited ", deadline.seconds(),
                                        " s for ", rank_list(late), " (TUTTI_TIMEOUT_S)");
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::unique_ptr<Bootstrap> MpiBootstrap::subset(const std::vector<int>& ranks, const std::string&,
                                                const Deadline& deadline) {
  // MPI_Comm_create_group waits for ever, so all must be known to have come.
  exchange_among(ranks, kSubsetTag, {}, deadline, "making a group of some ranks");
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

std::unique_ptr<Transport> MpiBootstrap::make_network_transport(std::shared_ptr<Waiter> waiter,
                                                                const Deadline& deadline) {
  barrier(deadline, "making a communicator of MPI");  // MPI_Comm_dup waits for ever
  MPI_Comm own = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(communicator_, &own), "MPI_Comm_dup");
  return std::make_unique<MpiTransport>(own, std::move(waiter));
}

}  // namespace tutti::comm
