// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/environment_report.hpp"

#include <dnnl.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <zlib.h>

#include "comm/mpi/mpi_runtime.hpp"
#include "core/cpu_features.hpp"
#include "core/team.hpp"
#include "core/topology.hpp"
#include "tutti/comm/environment.hpp"
#include "tutti/core/threads.hpp"
#include "tutti/core/version.hpp"
#include "tutti/device/device.hpp"

namespace tutti::profiler {

namespace {

std::string compiler_text() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string onednn_text() {
  const dnnl_version_t* version = dnnl_version();
  const char* threads = version->cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                        : version->cpu_runtime == DNNL_RUNTIME_SEQ ? "sequential"
                                                                   : "other threads than OpenMP";
  return fmt::format("{}.{}.{} ({})", version->major, version->minor, version->patch, threads);
}

std::string hwloc_text() {
  const unsigned version = hwloc_get_api_version();
  return fmt::format("{}.{}.{}", version >> 16U, (version >> 8U) & 0xFFU, version & 0xFFU);
}

std::string fmt_text() {
  return fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
}

std::string cuda_text() {
  const std::string reason = unavailable_reason(DeviceType::kCuda);
  if (!reason.empty()) return "none: " + reason;
  return fmt::format("{} devices", device_count(DeviceType::kCuda));
}

std::string ranks_text() {
  const Environment* environment = Environment::current();
  if (environment == nullptr || environment->size() == 1) return "1, without a launcher that made more";
  return fmt::format("{}, {} on this host; met over {}", environment->size(), environment->local_size(),
                     environment->launcher());
}

}  // namespace

std::vector<EnvironmentFact> environment_report() {
  get_num_threads();  // decides and binds the team
  return {
      {"tutti", version()},
      {"compiler", compiler_text()},
      {"oneDNN", onednn_text()},
      {"MPI", comm::mpi_version_text()},
      {"CUDA", cuda_text()},
      {"hwloc", hwloc_text()},
      {"zlib", zlibVersion()},
      {"fmt", fmt_text()},
      {"CPU", cpu_features().model_name},
      {"features", cpu_features_text()},
      {"kernels", fmt::format("{} (TUTTI_ISA = v2, v3 or v4 lowers it)", name(active_isa()))},
      {"cores", topology_text(topology())},
      {"threads", team_text()},
      {"ranks", ranks_text()},
  };
}

}  // namespace tutti::profiler
