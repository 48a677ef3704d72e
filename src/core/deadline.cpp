// SPDX-License-Identifier: Apache-2.0
#include "core/deadline.hpp"

#include <atomic>

#include "core/environment_variables.hpp"

namespace tutti {

namespace {
constexpr double kDefaultTimeoutSeconds = 600;
std::atomic<double> timeout_s{0};  // 0: the variable has not been read yet
}  // namespace

double default_timeout_s() {
  double seconds = timeout_s.load(std::memory_order_relaxed);
  if (seconds == 0) {
    seconds = environment_positive_real("TUTTI_TIMEOUT_S").value_or(kDefaultTimeoutSeconds);
    timeout_s.store(seconds, std::memory_order_relaxed);
  }
  return seconds;
}

}  // namespace tutti
