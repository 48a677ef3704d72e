// SPDX-License-Identifier: Apache-2.0
/// \file
/// The compute threads: how many, and where they run.
#pragma once

#include "tutti/core/export.hpp"

namespace tutti {

/// Number of compute threads of this process. Default: TUTTI_NUM_THREADS, else the cores this process may use
/// divided by the ranks on this host that share them. Results never depend on it. The first call decides, and
/// gives each of several ranks on one host its own cores (TUTTI_BIND_THREADS=0, or OpenMP's own variables
/// such as OMP_PROC_BIND, leave that out). Throws ValueError if TUTTI_NUM_THREADS is not a positive integer.
TUTTI_API int get_num_threads();
/// Sets the number of compute threads (at least 1; ValueError otherwise). Call it from the compute thread.
TUTTI_API void set_num_threads(int count);

}  // namespace tutti
