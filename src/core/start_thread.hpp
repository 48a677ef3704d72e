// SPDX-License-Identifier: Apache-2.0
// Threads beside the program's own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace tutti {

// Starts a thread that takes no signals, which are for the program's own threads; but for those of its own faults, whose handlers
// (a sanitizer's, a crash reporter's) are to run, and a profiler's.
template <class Function>
std::thread start_thread(Function function) {
  struct Blocked {
    Blocked() noexcept {
      sigset_t all;
      sigfillset(&all);
      for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
        sigdelset(&all, own);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Blocked blocked;  // the new thread inherits it
  return std::thread(std::move(function));
}

}  // namespace tutti
