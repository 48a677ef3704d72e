// SPDX-License-Identifier: Apache-2.0
#include "core/parallel_for.hpp"

#include <omp.h>

#include "core/chunk_job.hpp"
#include "core/team.hpp"
#include "core/thread_pool.hpp"

namespace tutti::detail {

namespace {

#if defined(TUTTI_PARALLEL_STD_THREAD)

bool inside_region() noexcept { return ThreadPool::inside(); }

bool run_on_team(ChunkJob& job, int threads) {
  static ThreadPool pool;
  return pool.run(job, threads);
}

#else

bool inside_region() noexcept { return omp_in_parallel() != 0; }

// Always the whole team, even for fewer chunks: libgomp ends the threads that a smaller region leaves out,
// and starts new, unbound ones for the next.
bool run_on_team(ChunkJob& job, int threads) {
  const TeamBinding binding = TeamBinding::of_calling_thread();
#pragma omp parallel num_threads(threads) default(none) shared(job, binding)
  {
    const int slot = omp_get_thread_num();
    binding.enter(slot);
    job.run(slot, omp_get_num_threads());
  }
  return true;
}

#endif

}  // namespace

void run_parallel(std::int64_t begin, std::int64_t end, std::int64_t grain, RangeBody body, void* context) {
  ChunkJob job(begin, end, grain, body, context);
  const int threads = get_num_threads();
  if (threads == 1 || thread_is_serial() || inside_region() || !run_on_team(job, threads)) {
    job.run_in_place();
    return;
  }
  job.rethrow();
}

}  // namespace tutti::detail
