// SPDX-License-Identifier: Apache-2.0
#include <tutti/comm/environment.hpp>
#include <tutti/profiler/environment_report.hpp>

#include <cstdio>

#include "commands.hpp"

namespace tutti::cli {

int print_environment(int argc, char** argv) {
  const Environment env{argc, argv};
  if (env.rank() != 0) return 0;
  for (const profiler::EnvironmentFact& fact : profiler::environment_report())
    std::printf("%-10s %s\n", fact.name.c_str(), fact.value.c_str());
  return 0;
}

}  // namespace tutti::cli
