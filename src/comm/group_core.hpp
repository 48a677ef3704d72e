// SPDX-License-Identifier: Apache-2.0
// A CPU group's inside: what its operations, which may outlive the group's handle, need.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/bootstrap.hpp"
#include "comm/contract.hpp"
#include "comm/transport.hpp"
#include "comm/waiter.hpp"

namespace tutti::comm {

struct Job;

struct GroupCore {
  std::string name;
  int rank = 0;
  int size = 1;
  double timeout_s = 0;
  std::vector<int> world_ranks;
  std::shared_ptr<Waiter> waiter;  // null in a group of one
  std::unique_ptr<Bootstrap> bootstrap;
  std::unique_ptr<Transport> transport;
  std::atomic<std::uint64_t> transfers{0};  // sends and receives issued so far
  // Changed by the executor alone, if there is one.
  std::atomic<std::uint64_t> sequence{0};  // collectives run so far
  std::atomic<int> splits{0};

  // Throws CommError if an operation has failed halfway, or the Environment has ended.
  void check_usable();
  // Runs one operation of the group; a failure that is neither all ranks' nor one message's makes the group unusable.
  template <class Body>
  void run(const Body& body) {
    check_usable();
    try {
      body();
    } catch (const AgreedError&) {
      throw;
    } catch (const RefusedMessage&) {
      throw;
    } catch (const std::exception& error) {
      set_failure(error.what());
      throw;
    }
  }
  void set_failure(const std::string& what);
  // The Environment ends: lets go of everything that belongs to it.
  void close() noexcept;

 private:
  std::mutex mutex_;
  std::string failure_;
};

// ValueError if TUTTI_COMM_BACKEND holds what is no backend; also for a world of one, which needs none.
void check_backend_choice();
// The core of a new group. Collective over `bootstrap`, whose ranks are the given ones of the world, in their order.
std::shared_ptr<GroupCore> make_group_core(Job& job, std::unique_ptr<Bootstrap> bootstrap,
                                           std::vector<int> world_ranks, std::string name, double timeout_s);

}  // namespace tutti::comm
