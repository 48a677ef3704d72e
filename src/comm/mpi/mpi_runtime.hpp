// SPDX-License-Identifier: Apache-2.0
// The start and end of MPI. mpi.h is seen by src/comm/mpi alone; a build without MPI has no_mpi.cpp in its place.
#pragma once

#include <memory>
#include <string>

#include "comm/bootstrap.hpp"

namespace tutti::comm {

// True if a launcher of MPI (mpirun, srun) started this process.
bool launched_by_mpi();
// True if it, or who set WORLD_SIZE, started others with it.
bool launched_with_others();
// What the launcher says of this process before MPI is initialised; -1 if nothing.
int rank_by_launcher();
// CommError if the launcher has started several ranks of which MPI knows one only: it belongs to another MPI.
void check_size_by_launcher(int mpi_size);
// "Open MPI v4.1.4", or why there is none; for `tutti env`. MPI need not be initialised.
std::string mpi_version_text();
// True if the program has initialised MPI itself.
bool mpi_is_initialized();

class MpiRuntime {
 public:
  // Initialises MPI, or joins the program's. `communicator` is the address of an MPI_Comm, or null for MPI_COMM_WORLD.
  // CommError if MPI can't be called from several threads, or if the launcher belongs to another MPI. MPI's own start waits for
  // all ranks and can't be left: where the deadline passes, it ends the process with a message.
  static std::unique_ptr<MpiRuntime> start(const void* communicator, const Deadline& deadline);
  virtual ~MpiRuntime() = default;
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  // Collective over the communicator's ranks. TimeoutError.
  virtual std::unique_ptr<Bootstrap> make_bootstrap(const Deadline& deadline) = 0;
  // Finalises MPI if it is ours. No communicator of ours may live. MPI's own end waits for all ranks, as its start does: where
  // that takes longer than the deadline of start(), it ends the process with a message.
  virtual void finish() noexcept = 0;

 protected:
  MpiRuntime() = default;
};

// Ends all processes of the job. Returns only if MPI is not running.
void abort_mpi_job(int exit_code) noexcept;

}  // namespace tutti::comm
