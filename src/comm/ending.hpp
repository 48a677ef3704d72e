// SPDX-License-Identifier: Apache-2.0
// How a job ends when one of its ranks fails: the others go quiet, the message stands last and once, and all processes end.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/host.hpp"

namespace tutti::comm {

// How long a thread waits quietly for the end of its process: longer than it takes to end it from outside, or by the thread that
// watches for failures.
inline constexpr std::chrono::seconds kLongestPark{10};

// From now on an uncaught exception is reported as this rank's (-1: not known), and ends the job as far as MPI reaches. For the time
// before the ranks have met, and after a meeting that has failed.
void watch_start(int rank, bool under_mpi);
// True in a process that a rank has forked: it is no rank itself, and how it ends is not the job's business.
bool is_forked_child() noexcept;
// From now on an uncaught exception, or a call of exit(), ends the whole job.
void watch_for_failure(std::shared_ptr<Host> host);
// The Environment has ended as it should.
void stop_watching() noexcept;
// An exception unwinds through the Environment. Whoever catches it may print it; then the process, and with it the job, must end.
void expect_exit() noexcept;
// Prints the message as one piece and ends all processes.
[[noreturn]] void end_job(const std::string& message) noexcept;

}  // namespace tutti::comm
