// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <chrono>
#include <string>
#include <thread>

#include "comm/ranks.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using test::own_rank;

TEST(Deadline, NamesOperationAndMissingRanks) {
  const auto group = comm::world()->split(0, 0, {.name = "hurried", .timeout_s = 0.5});
  Tensor tensor = zeros({1000});
  if (own_rank() == 1) {
    std::this_thread::sleep_for(2s);
  } else {
    const auto begin = std::chrono::steady_clock::now();
    try {
      group->all_reduce(tensor).wait();
      ADD_FAILURE() << "no error";
    } catch (const TimeoutError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("all_reduce #1 (sum) of 1000 x float32 (4000 bytes)"), std::string::npos) << text;
      EXPECT_NE(text.find("'hurried'"), std::string::npos) << text;
      EXPECT_NE(text.find("for rank 1 "), std::string::npos) << text;
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(waited.count(), 0.45);
    try {
      group->all_reduce(tensor).wait();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_NE(std::string(error.what()).find("can't be used any more"), std::string::npos) << error.what();
    }
  }
  comm::world()->barrier();
}

TEST(Deadline, HoldsForMessages) {
  const auto group = comm::world()->split(0, 0, {.name = "hurried messages", .timeout_s = 0.3});
  Tensor tensor = zeros({10});
  if (own_rank() == 0) {
    try {
      group->recv(tensor, 1, 4).wait();
      ADD_FAILURE() << "no error";
    } catch (const TimeoutError& error) {
      EXPECT_NE(std::string(error.what()).find("recv #1 from rank 1"), std::string::npos) << error.what();
    }
  }
  comm::world()->barrier();
}

TEST(Deadline, AWaitingReceiveLooksEverMoreRarely) {
  Tensor tensor = zeros({10});
  if (own_rank() == 0) {
    const comm::Work work = comm::world()->recv(tensor, 1, 5);
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    std::this_thread::sleep_for(1s);
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 2500) << "looks in a second";
    comm::world()->send(tensor, 1, 6).wait();
    work.wait();
  } else if (own_rank() == 1) {
    comm::world()->recv(tensor, 0, 6).wait();
    comm::world()->send(tensor, 0, 5).wait();
  }
  comm::world()->barrier();
}

}  // namespace
}  // namespace tutti
