// SPDX-License-Identifier: Apache-2.0
/// \file
/// Environment: owns the start and the end of a distributed program.
#pragma once

#include <string>

#include "tutti/core/export.hpp"
#include "tutti/core/hidden.hpp"
#include "tutti/device/device.hpp"

namespace tutti {

/// Options of an Environment.
struct EnvironmentOptions {
  /// Address of the program's own MPI_Comm, for a program that initialised MPI itself (with
  /// MPI_THREAD_MULTIPLE). It is duplicated; null: MPI_COMM_WORLD.
  const void* mpi_communicator = nullptr;
  /// Longest wait of one operation, in seconds; 0: TUTTI_TIMEOUT_S, default 600.
  double timeout_s = 0;
};

/// Joins the job that this process belongs to, for as long as it lives. Make it first in main; one at a time
/// (Error).
///
/// - Under mpirun or srun it initialises MPI and finalises it at the end. If the program has initialised MPI, it uses that one,
///   which needs MPI_THREAD_MULTIPLE (CommError), and leaves the end to the program.
/// - With MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE set, and no MPI launcher, ranks of one host meet over TCP (env://).
///   LOCAL_RANK and LOCAL_WORLD_SIZE are optional; without them each rank takes all cores of its host. A part of the four
///   is a ValueError if it asks for several ranks. As MPI does, ranks meet once in a process (CommError).
/// - Without a launcher it is a world of one and never touches MPI.
///
/// With several ranks an exception that nobody catches ends the whole job at once, with the message "rank R: ..." once; so
/// does one that unwinds through the Environment, or a program that calls exit() before its Environment ends. The exit
/// code is not 0. What a rank has printed leaves its buffers, whatever it is computing. A world of one ends as any C++ program
/// does. Waits for ranks that do not come end by the deadline (TimeoutError; the start of MPI, which can't be left, ends the
/// process with that message).
///
/// A process that a rank forks is no rank: it computes on one thread, can't communicate (CommError), and ends on its own.
class TUTTI_API Environment {
 public:
  /// A job without command-line options.
  explicit Environment(EnvironmentOptions options = {});
  /// Takes Tutti's options out of main's arguments: `--device cpu|cuda|cuda:N`.
  Environment(int& argc, char**& argv, EnvironmentOptions options = {});
  /// The same for arguments that can't be changed: they stay as they are.
  Environment(const int& argc, char* const* argv, EnvironmentOptions options = {});
  /// Ends communication: joins the communication thread, closes all groups, finalises MPI if it is ours.
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  int rank() const noexcept;        ///< 0 to size() - 1.
  int size() const noexcept;        ///< Number of processes of the job.
  int local_rank() const noexcept;  ///< Among the ranks of this host.
  int local_size() const noexcept;  ///< Number of ranks on this host.
  bool is_distributed() const noexcept { return size() > 1; }
  /// "none", "mpi" or "env://": how ranks met.
  const char* launcher() const noexcept;
  /// Where this rank computes: --device, else TUTTI_DEVICE, else cuda:local_rank if there is CUDA, else the
  /// CPU. "cuda" means cuda:local_rank.
  Device device() const noexcept;

  /// The one that lives now, or null.
  static Environment* current() noexcept;

  struct Impl;  ///< Private.

 private:
  detail::Hidden<Impl> impl_;
};

namespace comm {
using tutti::Environment;
using tutti::EnvironmentOptions;
}  // namespace comm

}  // namespace tutti
