// SPDX-License-Identifier: Apache-2.0
/// \file
/// Verdict: which of data, communication and compute holds a training run back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/comm/process_group.hpp"
#include "tutti/core/export.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/profiler/step_profiler.hpp"

namespace tutti::profiler {

/// What takes the greatest part of a step.
enum class Bottleneck : std::uint8_t {
  kData,           ///< Waiting for batches.
  kCommunication,  ///< Waiting for collectives.
  kCompute,        ///< Forward, backward and optimizer.
  kOther,          ///< The program's own code between these.
};

/// The mean step of all ranks.
struct TUTTI_API Verdict {
  std::int64_t steps = 0;  ///< Of one rank.
  int world_size = 1;
  double step_ms = 0;
  /// Part of the step that each phase::Kind takes, as a mean over ranks; they sum to 1.
  std::array<double, phase::kKinds> share{};
  /// How much of share[kExposedCommunication] is waiting for slower ranks: its mean over the ranks less its least. The data of
  /// the rank that waits least are there when it needs them, so it is the others that wait for it.
  double peer_wait = 0;
  int slowest_rank = 0;  ///< The rank that waits least.
  Bottleneck bottleneck = Bottleneck::kCompute;

  /// Two lines, without a newline at the end:
  ///
  ///     step 12.1 ms   data 3 % | compute 90 % | exposed communication 5 % | other 2 %
  ///     compute-bound: forward 30 %, backward 56 %, optimizer 4 % of the step
  ///
  /// The percentages of the first line sum to 100. Without any step it says so.
  std::string to_text() const;
};

/// Judges the steps of several ranks, one entry each. ValueError without an entry.
TUTTI_API Verdict make_verdict(const std::vector<StepTimes>& ranks);
/// Judges the steps of all ranks of a group (null: the world). Collective; every rank gets the same verdict.
TUTTI_API Verdict make_verdict(const StepTimes& steps, comm::ProcessGroup* group = nullptr);

}  // namespace tutti::profiler
