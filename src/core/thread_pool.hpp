// SPDX-License-Identifier: Apache-2.0
// The std::thread form of the team, for ThreadSanitizer, which cannot see libgomp's synchronisation
// (TUTTI_PARALLEL_STD_THREAD). Slower to start a region than OpenMP.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/chunk_job.hpp"

namespace tutti::detail {

class ThreadPool {
 public:
  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs the job on `threads` threads, the caller being the first. False, and nothing is done, while another
  // thread's job runs.
  bool run(ChunkJob& job, int threads);
  // True on the pool's own threads and inside run.
  static bool inside() noexcept;

 private:
  void work(int slot);

  std::mutex caller_;  // one job at a time
  std::mutex mutex_;   // guards all below
  std::condition_variable start_;
  std::condition_variable done_;
  std::vector<std::thread> workers_;
  ChunkJob* job_ = nullptr;
  int job_threads_ = 0;
  unsigned long job_number_ = 0;
  int running_ = 0;
  bool stop_ = false;
};

}  // namespace tutti::detail
