// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::profiler {

namespace {

constexpr std::int64_t kNoRecord = std::numeric_limits<std::int64_t>::max();

// What ranks tell each other to agree on one axis of time.
struct Clock {
  std::int64_t now_ns;        // read at the end of one barrier
  std::int64_t first_ns;      // begin of the earliest record
  std::array<char, 40> host;  // two processes with the same one share their clock
};

Clock read_clock(const std::vector<trace::ThreadRecords>& threads) {
  Clock clock{trace::now_ns(), kNoRecord, {}};
  for (const trace::ThreadRecords& thread : threads) {
    for (const trace::Record& record : thread.records)
      clock.first_ns = std::min(clock.first_ns, record.begin_ns);
  }
  std::ifstream("/proc/sys/kernel/random/boot_id").read(clock.host.data(), clock.host.size());
  return clock;
}

// What is to be subtracted from this rank's times, so that the earliest record of all ranks is at 0.
std::int64_t agree_on_zero(comm::ProcessGroup& group, const Clock& mine) {
  const auto rank = static_cast<std::size_t>(group.rank());
  const std::vector<std::string> all =
      group.exchange(std::string(reinterpret_cast<const char*>(&mine), sizeof mine));
  std::vector<Clock> clocks(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(&clocks[i], all[i].data(), sizeof(Clock));
  const auto offset = [&](const Clock& clock) {
    const bool same_host = clock.host == clocks[0].host;
    return same_host ? 0 : clock.now_ns - clocks[0].now_ns;
  };
  std::int64_t zero = kNoRecord;
  for (const Clock& clock : clocks) {
    if (clock.first_ns != kNoRecord) zero = std::min(zero, clock.first_ns - offset(clock));
  }
  return offset(clocks[rank]) + (zero == kNoRecord ? 0 : zero);
}

std::string escaped(const char* text) {
  std::string out;
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += *text;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += *text;
    }
  }
  return out;
}

// This rank's events, each on a line that ends with a comma. The keys are those of the Trace Event Format.
std::string events_of(int rank, const std::vector<trace::ThreadRecords>& threads, std::int64_t zero_ns) {
  std::string out;
  const auto sink = std::back_inserter(out);
  const auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1000; };
  fmt::format_to(sink,
                 R"({{"ph":"M","name":"process_name","pid":{0},"tid":0,"args":{{"name":"rank {0}"}}}},)"
                 "\n",
                 rank);
  fmt::format_to(sink,
                 R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}},)"
                 "\n",
                 rank);
  for (const trace::ThreadRecords& thread : threads) {
    fmt::format_to(sink,
                   R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}},)"
                   "\n",
                   rank, thread.thread_index, escaped(thread.thread_name));
    if (thread.dropped > 0) {
      logging::warning("write_chrome_trace: ", thread.dropped, " older records of lane ", thread.thread_index,
                       " (", thread.thread_name, ") were overwritten");
    }
    for (const trace::Record& record : thread.records) {
      fmt::format_to(
          sink,
          R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"argument":{}}}}},)"
          "\n",
          escaped(record.name), rank, thread.thread_index, microseconds(record.begin_ns - zero_ns),
          microseconds(record.end_ns - record.begin_ns), record.argument);
    }
  }
  return out;
}

// Rank 0 gets the text of all ranks, in their order; the others nothing.
std::string gather(comm::ProcessGroup& group, std::string mine) {
  const std::vector<std::string> lengths = group.exchange(std::to_string(mine.size()));
  // Tensors with memory of their own, which lives on if the other side is too late.
  if (group.rank() != 0) {
    const Tensor text = empty({static_cast<std::int64_t>(mine.size())}, DType::kUInt8);
    std::copy(mine.begin(), mine.end(), text.data<std::uint8_t>());
    group.send(text, 0).wait();
    return {};
  }
  for (int rank = 1; rank < group.size(); ++rank) {
    const Tensor text = empty({std::stoll(lengths[static_cast<std::size_t>(rank)])}, DType::kUInt8);
    group.recv(text, rank).wait();
    mine.append(reinterpret_cast<const char*>(text.data<std::uint8_t>()),
                static_cast<std::size_t>(text.numel()));
  }
  return mine;
}

// Why it could not be written; empty if it was.
std::string write_file(const std::string& path, std::string events) {
  events.resize(events.find_last_not_of(",\n") + 1);
  const std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events + "\n]}\n";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    return concat("write_chrome_trace: can't write ", path, ": ", std::strerror(errno));
  }
  return {};
}

}  // namespace

void write_chrome_trace(const std::string& path, comm::ProcessGroup* group) {
  const std::shared_ptr<comm::ProcessGroup> world = comm::world();
  if (group == nullptr) group = world.get();
  const std::vector<trace::ThreadRecords> threads = trace::take();
  group->barrier();
  const std::int64_t zero_ns = agree_on_zero(*group, read_clock(threads));
  std::string events = gather(*group, events_of(group->rank(), threads, zero_ns));
  const std::string problem =
      group->exchange(group->rank() == 0 ? write_file(path, std::move(events)) : "")[0];
  TUTTI_CHECK(problem.empty(), Error, problem);
}

}  // namespace tutti::profiler
