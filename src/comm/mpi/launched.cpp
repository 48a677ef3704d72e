// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_runtime.hpp"

#include "comm/parse_integer.hpp"
#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

bool launched_by_mpi() {
  // Open MPI; PMI and PMIx of MPICH, Intel MPI and srun; srun without either.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (environment_text(variable)) return true;
  }
  return environment_text("SLURM_STEP_NUM_TASKS").value_or("1") != "1" &&
         environment_text("SLURM_PROCID").has_value();
}

bool launched_with_others() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"}) {
    if (environment_text(variable).value_or("1") != "1") return true;
  }
  return false;
}

int rank_by_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const auto rank = environment_text(variable)) return parse_integer(*rank);
  }
  return -1;
}

void check_size_by_launcher(int mpi_size) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const auto size = environment_text(variable);
    TUTTI_CHECK(!size || *size == "1" || mpi_size > 1, CommError, "the launcher has started ", *size,
                " ranks (", variable, "), but ", mpi_version_text(),
                ", which this program is linked with, knows of 1: ", "start it with that MPI's mpirun");
  }
}

}  // namespace tutti::comm
