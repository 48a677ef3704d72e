// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.hpp"

namespace tutti::comm {

// Owns a communicator.
class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(MPI_Comm communicator);  // takes it over
  ~MpiBootstrap() override;

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  std::vector<std::string> exchange(const std::string& bytes, const Deadline& deadline,
                                    const char* purpose) override;
  std::unique_ptr<Bootstrap> subset(const std::vector<int>& ranks, const std::string& name,
                                    const Deadline& deadline) override;
  std::unique_ptr<Transport> make_network_transport(std::shared_ptr<Waiter> waiter,
                                                    const Deadline& deadline) override;

 private:
  // exchange() among some ranks of the communicator; the result is in their order.
  std::vector<std::string> exchange_among(const std::vector<int>& ranks, int tag, const std::string& bytes,
                                          const Deadline& deadline, const char* purpose);

  MPI_Comm communicator_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace tutti::comm
