// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/chrome_trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/tensor/factories.hpp"

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

// Rank 0 of two, of which the other promises a text and is too late with it.
class LatePeer final : public comm::ProcessGroup {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 2; }
  const std::string& name() const noexcept override { return name_; }
  const char* backend() const noexcept override { return "late"; }
  double timeout_s() const noexcept override { return 1; }
  comm::Work all_reduce(const Tensor&, comm::ReduceOp) override { return {}; }
  comm::Work broadcast(const Tensor&, int) override { return {}; }
  comm::Work reduce_scatter(const Tensor&, const Tensor&, comm::ReduceOp) override { return {}; }
  comm::Work all_gather(const Tensor&, const Tensor&) override { return {}; }
  comm::Work send(const Tensor&, int, int) override { return {}; }
  comm::Work recv(const Tensor& tensor, int, int) override {
    late = tensor;
    std::fill_n(tensor.data<std::uint8_t>(), tensor.numel(), std::uint8_t{7});
    throw TimeoutError("the peer is late");
  }
  void barrier() override {}
  std::vector<std::string> exchange(const std::string& bytes) override {
    return {bytes, ++exchanges_ == 2 ? "1000" : bytes};  // the second one tells lengths
  }
  std::shared_ptr<comm::ProcessGroup> split(int, int, comm::GroupOptions) override { return nullptr; }
  Tensor allocate(const Dims& sizes, DType dtype, Device) override { return empty(sizes, dtype); }

  Tensor late;

 private:
  std::string name_ = "late";
  int exchanges_ = 0;
};

TEST_F(ChromeTrace, MemoryForATextThatComesTooLateIsTheTensors) {
  LatePeer group;
  expect_error<TimeoutError>([&] { write_chrome_trace(path, &group); }, "the peer is late");
  // Freed memory would hold something else.
  EXPECT_EQ(group.late.to_vector<int>(), std::vector<int>(1000, 7));
}

TEST_F(ChromeTrace, NamesAPathThatCannotBeWritten) {
  expect_error<Error>([] { write_chrome_trace("/no/such/folder/trace.json"); },
                      "can't write /no/such/folder/trace.json: No such file or directory");
}

}  // namespace
}  // namespace tutti
