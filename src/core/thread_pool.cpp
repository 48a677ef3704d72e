// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.hpp"

namespace tutti::detail {

namespace {
constinit thread_local bool thread_inside = false;
}

bool ThreadPool::inside() noexcept { return thread_inside; }

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::run(ChunkJob& job, int threads) {
  const std::unique_lock caller(caller_, std::try_to_lock);
  if (!caller.owns_lock()) return false;
  {
    const std::lock_guard lock(mutex_);
    while (static_cast<int>(workers_.size()) < threads - 1) {
      workers_.emplace_back(&ThreadPool::work, this, static_cast<int>(workers_.size()) + 1);
    }
    job_ = &job;
    job_threads_ = threads;
    running_ = threads - 1;
    ++job_number_;
  }
  start_.notify_all();
  thread_inside = true;
  job.run(0, threads);
  thread_inside = false;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  return true;
}

void ThreadPool::work(int slot) {
  thread_inside = true;
  mark_thread_serial();
  unsigned long seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [this, seen] { return stop_ || job_number_ != seen; });
    if (stop_) return;
    seen = job_number_;
    if (slot >= job_threads_) continue;  // this job wants fewer threads
    ChunkJob& job = *job_;
    const int threads = job_threads_;
    lock.unlock();
    job.run(slot, threads);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace tutti::detail
