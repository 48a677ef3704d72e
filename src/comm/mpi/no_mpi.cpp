// SPDX-License-Identifier: Apache-2.0
// In place of the other files here, in a build without MPI.
#include "comm/mpi/mpi_runtime.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

std::string mpi_version_text() { return "none: this library was built without MPI"; }

bool mpi_is_initialized() { return false; }

std::unique_ptr<MpiRuntime> MpiRuntime::start(const void*, const Deadline&) {
  tutti::detail::fail<CommError>(
      "this program was started by mpirun or srun, but its Tutti was built without MPI: install "
      "libopenmpi-dev and build with "
      "-DTUTTI_WITH_MPI=ON, or start ranks with env:// (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE)");
}

void abort_mpi_job(int) noexcept {}

}  // namespace tutti::comm
