// SPDX-License-Identifier: Apache-2.0
// A loader's threads: errors, time limits, ends.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/errors.hpp"
#include "tutti/data/data_loader.hpp"

namespace tutti::data {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;

struct Broken : Dataset<Broken> {
  std::set<std::size_t> bad;
  explicit Broken(std::set<std::size_t> samples) : bad(std::move(samples)) {}
  std::size_t size() const { return 40; }
  void read(std::size_t index, Row& row) const {
    if (bad.count(index) > 0) throw std::out_of_range("no such picture");
    row.input<std::int64_t>() = static_cast<std::int64_t>(index);
  }
};

// While it lives no thread can start: each would want a stack larger than the address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << 48);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(LoaderThreads, AWorkerThatCannotStartLeavesNoPassBehind) {
  DataLoader loader{Broken({}), {.batch_size = 4, .num_workers = 2}};
  {
    const NoNewThreads guard;
    EXPECT_EQ(error_of<Error>([&] { loader.begin(); }),
              concat("DataLoader of Broken: thread 1 of its 2 workers can't start: ", std::strerror(EAGAIN)));
  }
  std::size_t batches = 0;
  for (const auto& batch : loader) batches += batch.size() == 4 ? 1 : 0;
  EXPECT_EQ(batches, 10U);
  EXPECT_EQ(loader.epoch(), 0U) << "the failed start is no epoch";
}

TEST(LoaderThreads, AnExceptionComesAtItsPlaceWithSampleAndDataset) {
  for (const int workers : {0, 1, 3}) {
    for (const std::size_t bad : {0U, 21U, 39U}) {
      DataLoader loader{Broken({bad}), {.batch_size = 4, .num_workers = workers}};
      std::size_t batches = 0;
      const std::string message = error_of<DataError>([&] {
        for (const auto& [inputs, targets] : loader) {
          EXPECT_EQ(inputs.to_vector<std::int64_t>()[0], static_cast<std::int64_t>(4 * batches));
          ++batches;
        }
      });
      EXPECT_EQ(message, concat("Broken: sample ", bad, ": no such picture"));
      EXPECT_EQ(batches, bad / 4);
    }
  }
}

TEST(LoaderThreads, TheOriginalExceptionIsNested) {
  DataLoader loader{Broken({0}), {.num_workers = 1}};
  try {
    loader.begin();
    FAIL() << "no exception";
  } catch (const DataError& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST(LoaderThreads, ACallerCanGoOnAfterErrors) {
  for (const int workers : {0, 2}) {
    std::set<std::size_t> bad;
    for (std::size_t i = 0; i < 40; i += 2) bad.insert(i);
    DataLoader loader{Broken(bad), {.batch_size = 1, .num_workers = workers}};
    for (int pass = 0; pass < 2; ++pass) {
      loader.start_pass();
      Batch batch;
      int errors = 0;
      std::vector<std::int64_t> good;
      for (bool more = true; more;) {
        try {
          more = loader.next(batch);
          if (more) good.push_back(batch.inputs.item<std::int64_t>());
        } catch (const DataError&) {
          ++errors;
        }
      }
      EXPECT_EQ(errors, 20);
      ASSERT_EQ(good.size(), 20U);
      for (std::size_t i = 0; i < good.size(); ++i) EXPECT_EQ(good[i], static_cast<std::int64_t>(2 * i + 1));
    }
  }
}

TEST(LoaderThreads, AWholeBatchThatFailsNamesItsSamples) {
  struct Failing : Dataset<Failing> {
    struct Batch {
      int value = 0;
    };
    std::size_t size() const { return 6; }
    Batch batch(std::span<const std::int64_t>) const { throw 5; }
  };
  DataLoader loader{Failing{}, {.batch_size = 4, .num_workers = 1}};
  EXPECT_EQ(error_of<DataError>([&] { loader.begin(); }),
            "Failing: batch of samples 0 to 3: an exception that is no std::exception");
}

// Sample 5 waits until the gate opens.
struct Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool is_open = false;
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    opened.notify_all();
  }
};
struct Gated : Dataset<Gated> {
  std::shared_ptr<Gate> gate;
  explicit Gated(std::shared_ptr<Gate> g) : gate(std::move(g)) {}
  std::size_t size() const { return 12; }
  void read(std::size_t index, Row& row) const {
    if (index == 5) {
      std::unique_lock lock(gate->mutex);
      gate->opened.wait(lock, [&] { return gate->is_open; });
    }
    row.input<std::int64_t>() = static_cast<std::int64_t>(index);
  }
};

TEST(LoaderThreads, AWaitThatIsTooLongNamesBatchAndSamplesAndCanGoOn) {
  const auto gate = std::make_shared<Gate>();
  DataLoader loader{Gated(gate), {.batch_size = 2, .num_workers = 2, .timeout_s = 0.5}};
  loader.start_pass();
  Batch batch;
  EXPECT_TRUE(loader.next(batch));
  EXPECT_TRUE(loader.next(batch));
  EXPECT_TRUE(contains(error_of<TimeoutError>([&] { loader.next(batch); }),
                       "DataLoader of Gated: batch 2 of epoch 0 (samples 4 to 5) is not there after 0.5 s"));
  EXPECT_TRUE(contains(error_of<TimeoutError>([&] { loader.start_pass(); }),
                       "of the pass before are still being loaded"));
  gate->open();
  loader.start_pass();
  std::int64_t sum = 0;
  while (loader.next(batch)) sum += batch.inputs.to_vector<std::int64_t>()[0];
  EXPECT_EQ(sum, 0 + 2 + 4 + 6 + 8 + 10);
}

std::size_t thread_count() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

TEST(LoaderThreads, AStuckWorkerDoesNotKeepTheErrorFromItsCatch) {
  const std::size_t before = thread_count();
  const auto gate = std::make_shared<Gate>();
  std::promise<void> caught;
  std::thread rescuer([&gate, caught = caught.get_future()] {  // so that a failure ends
    caught.wait_for(std::chrono::seconds(10));
    gate->open();
  });
  const std::string message = error_of<TimeoutError>([&] {
    DataLoader loader{Gated(gate), {.batch_size = 2, .num_workers = 2, .timeout_s = 0.3}};
    for (const auto& batch : loader) EXPECT_EQ(batch.size(), 2);
  });
  {
    const std::lock_guard lock(gate->mutex);
    EXPECT_FALSE(gate->is_open) << "the loader's end has waited for its worker";
  }
  EXPECT_TRUE(contains(message, "batch 2 of epoch 0 (samples 4 to 5) is not there after 0.3 s"));
  caught.set_value();
  rescuer.join();
  // The worker lets go of the dataset when it comes back.
  for (int wait = 0; wait < 10000 && thread_count() > before; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(gate.use_count(), 1);
}

TEST(LoaderThreads, ALoaderThatEndsWaitsForAWorkerThatIsInTime) {
  const auto gate = std::make_shared<Gate>();
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    gate->open();
  });
  {
    DataLoader loader{Gated(gate), {.batch_size = 2, .num_workers = 3, .timeout_s = 60}};
    loader.start_pass();
    Batch batch;
    EXPECT_TRUE(loader.next(batch));
  }
  EXPECT_EQ(gate.use_count(), 1) << "a worker was left behind";
  opener.join();
}

TEST(LoaderThreads, WorkersTakeNoSignals) {
  struct Masked : Dataset<Masked> {
    std::size_t size() const { return 4; }
    void read(std::size_t, Row& row) const {
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      row.input<std::int64_t>() = sigismember(&blocked, SIGTERM) + sigismember(&blocked, SIGINT);
    }
  };
  DataLoader loader{Masked{}, {.num_workers = 1}};
  for (const auto& batch : loader) EXPECT_EQ(batch.inputs.item<std::int64_t>(), 2);
}

TEST(LoaderThreads, ALoaderMayDieAtAnyMoment) {
  for (int round = 0; round < 60; ++round) {
    DataLoader loader{Broken({7}), {.batch_size = 2, .num_workers = 3}};
    if (round % 3 == 0) continue;
    loader.start_pass();
    Batch batch;
    for (int i = 0; i < round % 3; ++i) loader.next(batch);
  }
}

TEST(LoaderThreads, EarlyEndsLeaveNoThreadBehind) {
  const std::size_t before = thread_count();
  {
    DataLoader loader{Broken({}), {.batch_size = 1, .num_workers = 2}};
    for (int pass = 0; pass < 200; ++pass) loader.begin();
    EXPECT_EQ(thread_count(), before + 2);
  }
  EXPECT_EQ(thread_count(), before);
}

TEST(LoaderThreads, WorkersAreAheadByNoMoreThanTheirWindow) {
  struct Counting : Dataset<Counting> {
    std::shared_ptr<std::atomic<int>> loaded = std::make_shared<std::atomic<int>>(0);
    std::size_t size() const { return 100; }
    void read(std::size_t, Row& row) const {
      ++*loaded;
      row.input<float>() = 0;
    }
  };
  const Counting dataset;
  DataLoader loader{dataset, {.batch_size = 1, .num_workers = 2, .prefetch_factor = 3}};
  loader.start_pass();
  Batch batch;
  for (int taken = 1; taken <= 5; ++taken) {
    ASSERT_TRUE(loader.next(batch));
    for (int wait = 0; wait < 60000 && *dataset.loaded < taken + 6; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(*dataset.loaded, taken + 6);
  }
}

TEST(LoaderThreads, ManyShortPasses) {
  DataLoader loader{Broken({}), {.batch_size = 7, .shuffle = true, .num_workers = 4}};
  std::int64_t samples = 0;
  for (int pass = 0; pass < 300; ++pass) {
    for (const auto& [inputs, targets] : loader) samples += inputs.numel();
  }
  EXPECT_EQ(samples, 300 * 40);
}

}  // namespace
}  // namespace tutti::data
