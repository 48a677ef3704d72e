// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the library found on this machine: the text of `tutti env`.
#pragma once

#include <string>
#include <vector>

#include "tutti/core/export.hpp"

namespace tutti::profiler {

/// One fact.
struct EnvironmentFact {
  std::string name;   ///< "oneDNN"
  std::string value;  ///< "2.6.3 (OpenMP)"
};

/// Versions of the library, its compiler and its libraries, features of the CPU and the level of kernels in use, cores and
/// binding, threads, how ranks met, MPI, and the CUDA plugin or why there is none.
TUTTI_API std::vector<EnvironmentFact> environment_report();

}  // namespace tutti::profiler
