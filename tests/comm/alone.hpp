// SPDX-License-Identifier: Apache-2.0
// The meeting of a job of one rank, for tests of what lies below a process group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.hpp"

namespace tutti::testing {

class Alone final : public comm::Bootstrap {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  std::vector<std::string> exchange(const std::string& bytes, const Deadline&, const char*) override {
    return {bytes};
  }
  std::unique_ptr<comm::Bootstrap> subset(const std::vector<int>&, const std::string&,
                                          const Deadline&) override {
    return nullptr;
  }
};

}  // namespace tutti::testing
