// SPDX-License-Identifier: Apache-2.0
// main of the tests that run on several ranks: one Environment around all of them. Only the first rank's results are printed,
// unless another rank fails.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tutti/comm/environment.hpp"

#if defined(__SANITIZE_THREAD__)
// An exception that wait() rethrows may be destroyed on the communication thread. Its reference count lies in libstdc++, which is not
// instrumented, so ThreadSanitizer takes the last release for a race.
extern "C" const char*
__tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

int main(int argc, char** argv) {
  ::setenv("TUTTI_TIMEOUT_S", "20", /*overwrite=*/0);
  ::testing::InitGoogleTest(&argc, argv);
  const tutti::Environment environment(argc, argv);
  if (environment.rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  return RUN_ALL_TESTS();
}
