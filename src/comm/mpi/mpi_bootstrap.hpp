// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.hpp"

namespace tutti::comm {

// Throws CommError with MPI's text if the code is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

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
  std::unique_ptr<Transport> make_network_transport(std::shared_ptr<Waiter> waiter) override;

 private:
  MPI_Comm communicator_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace tutti::comm
