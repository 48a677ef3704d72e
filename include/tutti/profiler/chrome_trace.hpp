// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chrome traces: what all threads of all ranks did when, for chrome://tracing and https://ui.perfetto.dev.
#pragma once

#include <string>

#include "tutti/comm/process_group.hpp"
#include "tutti/core/export.hpp"

namespace tutti::profiler {

/// Takes the records of trace points (see trace::enable) of all ranks of a group (null: the world) and writes them to one JSON
/// file, on the group's rank 0: a process for each rank, a lane for each thread, times in microseconds from the first record on.
///
/// Collective. The clocks of ranks on one host are one; those of other hosts are aligned at a barrier, to the accuracy of its end.
/// A lane that lost records, because its ring was full, is logged. Error naming the path, on every rank, if the file can't be
/// written.
TUTTI_API void write_chrome_trace(const std::string& path, comm::ProcessGroup* group = nullptr);

}  // namespace tutti::profiler
