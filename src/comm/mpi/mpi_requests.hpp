// SPDX-License-Identifier: Apache-2.0
// Messages under way over MPI, and what becomes of them when whoever started them gives up.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace tutti::comm {

// Throws CommError with MPI's text if the code is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

// Between two looks at messages that are likely to move: while the job starts or makes a group, and once a message has begun.
inline constexpr std::chrono::microseconds kPollInterval{50};

// All calls come from the thread that may call MPI at that moment; so does the destructor, which lets go of what is not done.
class MpiRequests {
 public:
  explicit MpiRequests(MPI_Comm communicator) : communicator_(communicator) {}
  ~MpiRequests() { let_go(); }
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;

  // Bytes of any number: they are cut into what one MPI call moves, the same way on both sides. The memory must outlive the
  // request, also one that was let go of.
  void send(const void* data, std::size_t bytes, int to, int tag);
  void receive(void* data, std::size_t bytes, int from, int tag);
  // True once all are done; they are forgotten then.
  bool test();
  // The peers of those that are not done, ascending.
  std::vector<int> missing() const;
  // True if MPI may still read or write what was given to send() and receive().
  bool under_way() const noexcept { return !requests_.empty(); }
  // Takes back the receives that no message has reached yet, and leaves all others to MPI, which finishes them some time.
  void let_go() noexcept;

 private:
  struct Peer {
    int rank;
    bool is_receive;
  };
  MPI_Request& add(int peer, bool is_receive);

  MPI_Comm communicator_;
  std::vector<MPI_Request> requests_;
  std::vector<Peer> peers_;  // of the requests
};

}  // namespace tutti::comm
