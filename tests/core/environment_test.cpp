// SPDX-License-Identifier: Apache-2.0
// What the library reads from TUTTI_* variables and the CPU, and the lines it writes. Most values are read
// once a process, so these tests read them in child processes.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/cpu_features.hpp"
#include "core/deadline.hpp"
#include "core/environment_variables.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"
#include "tutti/core/threads.hpp"

namespace tutti {
namespace {

// Runs `body` in a child with the variable set; its text, or that of its exception, goes to standard error.
template <class Body>
void run_and_exit(const char* variable, const char* value, const Body& body) {
  setenv(variable, value, 1);
  std::string text;
  try {
    text = concat(body());
  } catch (const ValueError& error) {
    text = concat("ValueError: ", error.what());
  }
  text += "\n";
  const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

template <class Body>
void expect_child(const char* variable, const char* value, const Body& body, const std::string& text) {
  EXPECT_EXIT(run_and_exit(variable, value, body), ::testing::ExitedWithCode(0), text)
      << variable << "=" << value;
}

TEST(EnvironmentVariables, ThreadsAreReadAndBadValuesNamed) {
  const auto threads = [] { return get_num_threads(); };
  expect_child("TUTTI_NUM_THREADS", "5", threads, "^5\n");
  for (const char* bad : {"0", "-1", "two", "2.5", "4097", " 2", "99999999999999999999"}) {
    expect_child(
        "TUTTI_NUM_THREADS", bad, threads,
        concat("^ValueError: TUTTI_NUM_THREADS must be an integer from 1 to 4096, but is \"", bad, "\"\n"));
  }
}

TEST(EnvironmentVariables, TimeoutIsReadAndBadValuesNamed) {
  const auto timeout = [] { return default_timeout_s(); };
  expect_child("TUTTI_TIMEOUT_S", "", timeout, "^600\n");
  expect_child("TUTTI_TIMEOUT_S", "2.5", timeout, "^2.5\n");
  for (const char* bad : {"0", "-3", "nan", "inf", "1m", "soon"}) {
    expect_child(
        "TUTTI_TIMEOUT_S", bad, timeout,
        concat("^ValueError: TUTTI_TIMEOUT_S must be a number greater than 0, but is \"", bad, "\"\n"));
  }
}

TEST(EnvironmentVariables, InstructionSetIsCappedAndBadValuesNamed) {
  const auto level = [] { return name(active_isa()); };
  expect_child("TUTTI_ISA", "v2", level, "^v2\n");
  if (detected_isa() >= IsaLevel::kV3) expect_child("TUTTI_ISA", "v3", level, "^v3\n");
  if (detected_isa() >= IsaLevel::kV4) {
    expect_child("TUTTI_ISA", "v4", level, "^v4\n");
  } else {
    expect_child("TUTTI_ISA", "v4", level, "TUTTI_ISA asks for v4, but this machine supports");
  }
  expect_child("TUTTI_ISA", "avx2", level, "^ValueError: TUTTI_ISA must be v2, v3 or v4, but is \"avx2\"\n");
}

TEST(EnvironmentVariables, FlagsTakeTheUsualWords) {
  const auto flag = [] { return environment_flag("TUTTI_TEST_FLAG").value(); };
  for (const char* yes : {"1", "on", "true", "yes"}) expect_child("TUTTI_TEST_FLAG", yes, flag, "^true\n");
  for (const char* no : {"0", "off", "false", "no"}) expect_child("TUTTI_TEST_FLAG", no, flag, "^false\n");
  expect_child("TUTTI_TEST_FLAG", "2", flag, "^ValueError: TUTTI_TEST_FLAG must be 1, true, on, yes, 0,");
}

TEST(Log, LevelComesFromTheEnvironment) {
  const auto lines = [] {
    logging::debug("d");
    logging::info("i");
    logging::warning("w");
    logging::error("e");
    return "end";
  };
  expect_child("TUTTI_LOG_LEVEL", "", lines, "^.tutti warning. w\n.tutti error. e\nend");
  expect_child("TUTTI_LOG_LEVEL", "debug", lines, "^.tutti debug. d\n.tutti info. i\n.tutti warning. w\n");
  expect_child("TUTTI_LOG_LEVEL", "error", lines, "^.tutti error. e\nend");
  expect_child("TUTTI_LOG_LEVEL", "loud", lines,
               "^.tutti warning. TUTTI_LOG_LEVEL must be debug, info, warning or error, but is \"loud\"; "
               "using warning\n"
               ".tutti warning. w\n.tutti error. e\nend");
}

// A datagram socket in place of standard error keeps the borders of writes.
TEST(Log, EachLineIsOneWriteWithLevelAndRank) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  const int saved = dup(STDERR_FILENO);
  ASSERT_GE(dup2(ends[1], STDERR_FILENO), 0);
  logging::write(logging::Level::kError, "first");
  logging::set_rank(3);
  logging::warning("bucket ", 2, " is late by ", 0.5, " s");
  logging::set_rank(-1);
  const std::string long_text(5000, 'x');
  logging::write(logging::Level::kWarning, long_text);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(ends[1]);
  const auto next = [&ends] {
    char buffer[8192];
    const ssize_t size = recv(ends[0], buffer, sizeof buffer, MSG_DONTWAIT);
    return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string();
  };
  EXPECT_EQ(next(), "[tutti error] first\n");
  EXPECT_EQ(next(), "[tutti warning rank 3] bucket 2 is late by 0.5 s\n");
  EXPECT_EQ(next(), "[tutti warning] " + long_text + "\n");
  EXPECT_EQ(next(), "");
  close(ends[0]);
}

TEST(Deadlines, PassAfterTheirTime) {
  const Deadline soon(0.02);
  EXPECT_FALSE(Deadline(1e300).passed()) << "far beyond the clock's range";
  EXPECT_GT(Deadline(1e9).remaining_s(), 0.9e9);
  EXPECT_EQ(soon.seconds(), 0.02);
  usleep(30000);
  EXPECT_TRUE(soon.passed());
  EXPECT_LT(soon.remaining_s(), 0);
}

#if defined(__x86_64__) && defined(__linux__)
// The kernel's own reading of cpuid.
TEST(CpuFeatures, MatchTheKernelsFlags) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind("flags", 0) != 0) continue;
  ASSERT_FALSE(line.empty()) << "no flags in /proc/cpuinfo";
  const std::string flags = line + " ";
  const auto has = [&flags](std::initializer_list<const char*> names) {
    for (const char* flag : names) {
      if (flags.find(concat(" ", flag, " ")) == std::string::npos) return false;
    }
    return true;
  };
  const CpuFeatures& features = cpu_features();
  const bool v2 = has({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"});
  const bool v3 = v2 && has({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"});
  const bool v4 = v3 && has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  EXPECT_EQ(features.x86_64_v2, v2);
  EXPECT_EQ(features.x86_64_v3, v3);
  EXPECT_EQ(features.x86_64_v4, v4);
  EXPECT_EQ(features.avx_vnni, v3 && has({"avx_vnni"}));
  EXPECT_EQ(features.avx512_vnni, v4 && has({"avx512_vnni"}));
  EXPECT_EQ(features.avx512_bf16, v4 && has({"avx512_bf16"}));
  EXPECT_EQ(features.avx512_fp16, v4 && has({"avx512_fp16"}));
  EXPECT_EQ(features.amx_bf16, has({"amx_tile", "amx_bf16"}));
  EXPECT_EQ(features.amx_int8, has({"amx_tile", "amx_int8"}));
  EXPECT_EQ(detected_isa(), v4 ? IsaLevel::kV4 : v3 ? IsaLevel::kV3 : IsaLevel::kV2);
}
#endif

}  // namespace
}  // namespace tutti
