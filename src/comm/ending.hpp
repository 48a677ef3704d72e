// SPDX-License-Identifier: Apache-2.0
// How a job ends when one of its ranks fails: the others go quiet, the message stands last and once, and all processes end.
#pragma once

#include <memory>
#include <string>

#include "comm/host.hpp"

namespace tutti::comm {

// Stands before messages, if it isn't -1; watch_for_failure() sets it as well.
void set_rank(int rank) noexcept;
// From now on an uncaught exception, or a call of exit(), ends the whole job.
void watch_for_failure(int rank, std::shared_ptr<Host> host, bool under_mpi);
// The Environment has ended as it should.
void stop_watching() noexcept;
// An exception unwinds through the Environment. Whoever catches it may print it; then the process, and with it the job, must end.
void expect_exit() noexcept;
// Prints the message as one piece and ends all processes.
[[noreturn]] void end_job(const std::string& message) noexcept;

}  // namespace tutti::comm
