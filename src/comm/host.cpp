// SPDX-License-Identifier: Apache-2.0
#include "comm/host.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <new>

#include "comm/parse_integer.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

struct Host::Peer {
  alignas(128) Doorbell doorbell;
  std::atomic<std::uint32_t> departed{0};
  std::atomic<std::uint32_t> watch{kWatching};  // the word on which wait_for_failure() sleeps
  static constexpr std::uint32_t kWatching = 0;
  static constexpr std::uint32_t kFailure = 1;
  static constexpr std::uint32_t kStopped = 2;
  void end_watch(std::uint32_t reason) noexcept {
    std::uint32_t expected = kWatching;
    if (watch.compare_exchange_strong(expected, reason)) futex_wake_all(watch);
  }
};

struct Host::Control {
  alignas(128) std::atomic<int> failed_rank{-1};
};

namespace {

std::string read_line_of(const char* path) {
  char text[128];
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t count = ::read(fd, text, sizeof text);
  ::close(fd);
  std::string line(text, count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

// Processes that can reach one another's memory: same kernel, same host name (two simulated hosts may share a kernel), same
// space of process numbers.
std::string host_identity(const std::string& host_name) {
  char space[64];
  const ssize_t count = ::readlink("/proc/self/ns/pid", space, sizeof space);
  return concat(host_name, " ", read_line_of("/proc/sys/kernel/random/boot_id"), " ",
                std::string_view(space, count > 0 ? static_cast<std::size_t>(count) : 0));
}

bool has_ended(pid_t pid, int pid_fd) {
  if (pid_fd >= 0) {
    pollfd watched{pid_fd, POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::shared_ptr<Host> Host::create(Bootstrap& bootstrap, const Deadline& deadline) {
  std::shared_ptr<Host> host(new Host);
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  // "host name, zero, identity, zero, process number"
  const std::string own = concat(name, '\0', host_identity(name), '\0', ::getpid());
  const std::vector<std::string> all = bootstrap.exchange(own, deadline, "the meeting of the job's ranks");

  host->world_rank_ = bootstrap.rank();
  host->local_ranks_.clear();
  host->host_of_.clear();
  std::vector<std::string> identities;
  std::vector<std::string> by_rank;
  for (const std::string& entry : all) {
    const std::size_t first = entry.find('\0');
    const std::size_t second = entry.find('\0', first + 1);
    TUTTI_CHECK(first != std::string::npos && second != std::string::npos, CommError,
                "the meeting of the job's ranks: a rank sent something else than its host");
    host->host_names_.push_back(entry.substr(0, first));
    by_rank.push_back(entry.substr(first + 1, second - first - 1));
    auto found = std::find(identities.begin(), identities.end(), by_rank.back());
    if (found == identities.end()) found = identities.insert(identities.end(), by_rank.back());
    host->host_of_.push_back(static_cast<int>(found - identities.begin()));
  }
  for (int rank = 0; rank < bootstrap.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (host->host_of_[at] != host->host_of_[static_cast<std::size_t>(bootstrap.rank())]) continue;
    if (rank == bootstrap.rank()) host->local_rank_ = host->local_size();
    host->local_ranks_.push_back(rank);
    host->pids_.push_back(parse_integer(std::string_view(all[at]).substr(all[at].rfind('\0') + 1)));
  }
  host->watch_peers();
  host->share(bootstrap, deadline);
  return host;
}

void Host::share(Bootstrap& bootstrap, const Deadline& deadline) {
  const std::size_t bytes = sizeof(Control) + pids_.size() * sizeof(Peer);
  Segment segment;
  std::string failure;
  try {
    if (local_rank_ == 0) {
      segment = Segment::create(bytes);
      new (segment.data()) Control;
      for (std::size_t i = 0; i < pids_.size(); ++i)
        new (segment.data() + sizeof(Control) + i * sizeof(Peer)) Peer;
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  const auto fds = bootstrap.exchange(concat(segment.fd()), deadline, "sharing memory on each host");
  try {
    const int leader = local_ranks_[0];
    if (local_rank_ != 0) {
      segment = Segment::open(pids_[0], parse_integer(fds[static_cast<std::size_t>(leader)]), bytes);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  // One that can't takes the whole job off shared memory, since all ranks must choose the same backend.
  for (const std::string& text : bootstrap.exchange(failure, deadline, "sharing memory on each host")) {
    if (!text.empty()) reason_ = text;
  }
  if (reason_.empty()) control_ = std::move(segment);
}

void Host::watch_peers() {
  for (const pid_t pid : pids_) {
    int fd = -1;
#if defined(SYS_pidfd_open)
    if (pid != ::getpid()) fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#endif
    pid_fds_.push_back(fd);
  }
}

Host::~Host() {
  for (const int fd : pid_fds_) {
    if (fd >= 0) ::close(fd);
  }
}

Host::Peer& Host::peer(int local_index) const noexcept {
  return *reinterpret_cast<Peer*>(control_.data() + sizeof(Control) +
                                  static_cast<std::size_t>(local_index) * sizeof(Peer));
}

int Host::local_index(int world_rank) const noexcept {
  const auto found = std::lower_bound(local_ranks_.begin(), local_ranks_.end(), world_rank);
  return found != local_ranks_.end() && *found == world_rank ? static_cast<int>(found - local_ranks_.begin())
                                                             : -1;
}

Doorbell& Host::doorbell(int local_index) noexcept { return peer(local_index).doorbell; }

Doorbell& Host::own_doorbell() noexcept {
  return shares_memory() ? doorbell(local_rank_) : private_doorbell_;
}

void Host::check_alive(std::span<const int> world_ranks) const {
  for (const int rank : world_ranks) {
    const int index = local_index(rank);
    if (index < 0 || index == local_rank_) continue;
    TUTTI_CHECK(!shares_memory() || peer(index).departed.load(std::memory_order_acquire) == 0, CommError,
                "rank ", rank, " has left the job: its Environment has ended");
    const auto at = static_cast<std::size_t>(index);
    TUTTI_CHECK(!has_ended(pids_[at], pid_fds_[at]), CommError, "rank ", rank, " (process ", pids_[at],
                ") has died");
  }
}

void Host::depart() noexcept {
  if (!shares_memory()) return;
  peer(local_rank_).departed.store(1, std::memory_order_release);
  for (int i = 0; i < local_size(); ++i) doorbell(i).ring();
}

bool Host::announce_failure() noexcept {
  std::atomic<int>& failed = shares_memory() ? control()->failed_rank : private_failure_;
  int expected = -1;
  if (!failed.compare_exchange_strong(expected, world_rank_)) return expected == world_rank_;
  for (int i = 0; shares_memory() && i < local_size(); ++i) {
    if (i != local_rank_) peer(i).end_watch(Peer::kFailure);
    doorbell(i).ring();
  }
  return true;
}

bool Host::wait_for_failure() noexcept {
  const std::atomic<std::uint32_t>& watch = peer(local_rank_).watch;
  while (watch.load() == Peer::kWatching) futex_wait(watch, Peer::kWatching, std::chrono::hours(1));
  return watch.load() == Peer::kFailure;
}

void Host::stop_watching() noexcept { peer(local_rank_).end_watch(Peer::kStopped); }

int Host::failed_rank() const noexcept {
  return (shares_memory() ? control()->failed_rank : private_failure_).load(std::memory_order_acquire);
}

}  // namespace tutti::comm
