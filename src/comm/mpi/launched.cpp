// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_runtime.hpp"
#include "core/environment_variables.hpp"

namespace tutti::comm {

bool launched_by_mpi() {
  // Open MPI; PMI and PMIx of MPICH, Intel MPI and srun; srun without either.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (environment_text(variable)) return true;
  }
  return environment_text("SLURM_STEP_NUM_TASKS").value_or("1") != "1" &&
         environment_text("SLURM_PROCID").has_value();
}

}  // namespace tutti::comm
