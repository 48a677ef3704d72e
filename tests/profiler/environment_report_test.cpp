// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/environment_report.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/errors.hpp"
#include "tutti/core/version.hpp"

namespace tutti {
namespace {

TEST(EnvironmentReport, StatesVersionsAndWhatIsMissing) {
  std::map<std::string, std::string> facts;
  for (const auto& fact : profiler::environment_report()) {
    EXPECT_FALSE(fact.value.empty()) << fact.name;
    EXPECT_EQ(fact.value.find('\n'), std::string::npos) << fact.name;
    facts[fact.name] = fact.value;
  }
  EXPECT_EQ(facts["tutti"], version());
  EXPECT_TRUE(testing::contains(facts["oneDNN"], "."));
  EXPECT_TRUE(testing::contains(facts["threads"], "thread"));
  EXPECT_TRUE(testing::contains(facts["cores"], "core"));
#ifdef TUTTI_WITH_MPI
  EXPECT_TRUE(testing::contains(facts["MPI"], "MPI"));
#else
  EXPECT_TRUE(testing::contains(facts["MPI"], "built without MPI"));
#endif
}

}  // namespace
}  // namespace tutti
