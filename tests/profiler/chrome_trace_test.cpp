// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/chrome_trace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/trace.hpp"

namespace tutti {
namespace {

using nlohmann::json;
using profiler::write_chrome_trace;
using testing::expect_error;

class ChromeTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    trace::take();
    trace::enable(true);
  }
  void TearDown() override {
    trace::enable(false);
    std::filesystem::remove(path);
  }
  json written() {
    trace::enable(false);
    write_chrome_trace(path);
    std::ifstream file(path);
    return json::parse(file);
  }

  std::string path = ::testing::TempDir() + "tutti_chrome_trace_test.json";
};

TEST_F(ChromeTrace, HoldsRangesWithTimesInMicroseconds) {
  {
    const trace::Range outer("outer", 7);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const trace::Range inner("inner");
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  json outer;
  json inner;
  const json trace = written();
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "outer") outer = event;
    if (event["name"] == "inner") inner = event;
  }
  EXPECT_EQ(outer["ph"], "X");
  EXPECT_EQ(outer["pid"], 0);
  EXPECT_EQ(outer["args"]["argument"], 7);
  EXPECT_DOUBLE_EQ(outer["ts"].get<double>(), 0);  // the earliest record
  EXPECT_GE(outer["dur"].get<double>(), 5000);
  EXPECT_GE(inner["ts"].get<double>(), 2000);
  EXPECT_GE(inner["dur"].get<double>(), 3000);
  EXPECT_LE(inner["ts"].get<double>() + inner["dur"].get<double>(),
            outer["ts"].get<double>() + outer["dur"].get<double>());
}

TEST_F(ChromeTrace, HasALaneForEachThread) {
  { const trace::Range range("here"); }
  std::thread([] {
    trace::set_thread_name("a \"quoted\" name");
    const trace::Range range("there");
  }).join();
  int here = -1;
  int there = -1;
  std::map<int, std::string> names;
  const json trace = written();
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "here") here = event["tid"];
    if (event["name"] == "there") there = event["tid"];
    if (event["name"] == "thread_name") names[event["tid"].get<int>()] = event["args"]["name"];
  }
  EXPECT_NE(here, there);
  EXPECT_EQ(names[there], "a \"quoted\" name");
}

TEST_F(ChromeTrace, IsValidWithoutARecord) {
  const json trace = written();
  EXPECT_EQ(trace["traceEvents"].size(), 2U);  // the process's name and place
}

TEST_F(ChromeTrace, NamesAPathThatCannotBeWritten) {
  expect_error<Error>([] { write_chrome_trace("/no/such/folder/trace.json"); },
                      "can't write /no/such/folder/trace.json: No such file or directory");
}

}  // namespace
}  // namespace tutti
