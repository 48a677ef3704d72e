// SPDX-License-Identifier: Apache-2.0
/// \file
/// DataLoader: batches of a dataset, made ahead of time by worker threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/core/hidden.hpp"
#include "tutti/data/batch.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/data/row.hpp"
#include "tutti/data/sampler.hpp"
#include "tutti/device/device.hpp"

namespace tutti::data {

/// How the ranks of comm::world() share a dataset.
enum class Sharding : std::uint8_t {
  kPad,    ///< Equally many samples on each rank; some are repeated, see Batch::mask. For training.
  kExact,  ///< Each sample once; ranks may have different numbers of batches. For evaluation.
  kNone,   ///< Every rank has all samples.
};

/// Options of DataLoader; names and meaning as in PyTorch. Sizes are those of one rank.
struct DataLoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  int num_workers = 0;  ///< Threads that load ahead; 0: batches are loaded when they are asked for.
  /// Asks for page-locked batches, for copies to a CUDA device while it computes. It does nothing on CPUs, and
  /// today nothing elsewhere either: no batch is page-locked.
  bool pin_memory = false;
  bool drop_last = false;   ///< Leave out the last batch if it is not full.
  int prefetch_factor = 2;  ///< Batches that each worker may be ahead.
  std::uint64_t seed = 0;   ///< Of order and augmentation; the same on all ranks.
  Sharding distributed = Sharding::kPad;
  /// Used in place of shuffle, distributed and order. It is this loader's from then on.
  std::shared_ptr<Sampler> sampler{};
  PermutationOrder order = PermutationOrder::kPhilox;
  /// Longest wait for one batch, in seconds; 0: TUTTI_TIMEOUT_S, default 600. A loader that ends waits no longer either: see
  /// DataLoader.
  double timeout_s = 0;
  Device device{};  ///< Where batches are delivered.
};

namespace detail {

/// The part of a loader that knows the dataset's type. Calls for different slots may run at once.
class TUTTI_API BatchSource {
 public:
  virtual ~BatchSource();
  /// Loads a batch into a slot.
  virtual void load(std::size_t slot, const BatchRequest& request) = 0;
  /// Forgets the batch in a slot.
  virtual void discard(std::size_t slot) noexcept = 0;
};

[[noreturn]] TUTTI_API void throw_moved_from();

struct LoaderState;

/// The part that does not: order, workers, slots.
class TUTTI_API LoaderEngine {
 public:
  LoaderEngine(std::shared_ptr<BatchSource> source, std::size_t dataset_size, const std::string& dataset,
               DataLoaderOptions options);
  ~LoaderEngine();
  LoaderEngine(const LoaderEngine&) = delete;
  LoaderEngine& operator=(const LoaderEngine&) = delete;

  /// Batches that may wait for the consumer.
  static std::size_t slot_count(const DataLoaderOptions& options);
  /// Batches that exist at once if the consumer keeps none but the current one.
  static std::size_t batches_at_once(const DataLoaderOptions& options);

  void start_pass();
  /// Waits for the next batch and says in which slot it is; false at the end of the pass. What its loading threw is thrown
  /// here, and the batch is passed over.
  bool take(std::size_t& slot);
  /// The batch was taken out of its slot.
  void release(std::size_t slot);

  std::int64_t batches() const noexcept;
  std::int64_t position() const noexcept;
  std::uint64_t epoch() const noexcept;
  double wait_seconds() const noexcept;
  Sampler& sampler() const noexcept;
  const DataLoaderOptions& options() const noexcept;

 private:
  std::shared_ptr<LoaderState> state_;  // a worker that is left behind has it too
};

template <class D>
class DatasetSource final : public BatchSource {
 public:
  using Batch = typename D::Batch;

  DatasetSource(D dataset, const DataLoaderOptions& options)
      : dataset_(std::move(dataset)),
        device_(options.device),
        pool_(LoaderEngine::batches_at_once(options), options.batch_size),
        batches_(LoaderEngine::slot_count(options)) {}

  void load(std::size_t slot, const BatchRequest& request) override {
    if constexpr (MakesBatches<D>) {
      batches_[slot] = make_batch(dataset_, request);
    } else {
      batches_[slot] = read_batch(dataset_, request, &pool_);
    }
  }
  void discard(std::size_t slot) noexcept override { batches_[slot] = Batch(); }
  Batch take(std::size_t slot) noexcept { return std::exchange(batches_[slot], Batch()); }
  // The batch on the device where it is wanted.
  Batch deliver(Batch batch) const {
    if constexpr (std::is_same_v<Batch, data::Batch>) {
      if (!device_.is_cpu()) return batch.to(device_, true);
    }
    return batch;
  }
  const D& dataset() const noexcept { return dataset_; }

 private:
  D dataset_;
  Device device_;
  BatchPool pool_;
  std::vector<Batch> batches_;
};

}  // namespace detail

/// Gives the batches of a dataset, pass after pass:
///
///     data::DataLoader loader{data::FashionMnist{root, data::Split::kTrain}, {.batch_size = 64, .shuffle = true}};
///     for (const auto& [images, labels] : loader) ...
///
/// - Each `for` is a new pass (epoch) with its own order. The order, and random numbers drawn by the dataset, depend on seed and
///   epoch alone, not on the number of workers.
/// - Under several ranks each has its part of the data; see Sharding.
/// - Leaving the loop early is fine: the next one begins a new pass.
/// - What a dataset throws is thrown in the loop, at its place in the order, as a DataError that names sample and dataset (nested
///   in it the original). Catch it and call next() again to pass over that batch.
/// - Batches are the caller's: they are never overwritten. Their memory is used again once they are dropped.
///
/// The loader's end waits for batches that are being loaded. A worker that has loaded one batch for more than timeout_s is left
/// behind, with a warning; it shares the dataset's ownership. What the dataset merely refers to must live on, or its read would
/// come back to what is gone: a read that may get stuck is best left to a dataset that owns what it reads, or shares it.
///
/// One thread may use a loader at a time. Of one that was moved from, every use but an assignment is an Error. The time spent
/// waiting is recorded as "data_wait".
template <class D>
class DataLoader {
  static_assert(detail::AnyDataset<D>,
                "a dataset has size() and read(index, Row&), get(index) or batch(indices), all const");

 public:
  using Batch = typename D::Batch;

  /// Takes over the dataset. ValueError naming the option if one is outside its domain. Workers start with the first pass.
  explicit DataLoader(D dataset, const DataLoaderOptions& options = {})
      : source_(std::make_shared<detail::DatasetSource<D>>(std::move(dataset), options)),
        engine_(new detail::LoaderEngine(source_, static_cast<std::size_t>(source_->dataset().size()),
                                         std::string(tutti::detail::type_name<D>()), options)) {}
  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&& other) noexcept {
    if (this == &other) return *this;
    engine_ = {};  // ends the workers
    source_ = std::move(other.source_);
    engine_ = std::move(other.engine_);
    current_ = std::move(other.current_);
    return *this;
  }

  /// Goes through a pass. Refers to its loader.
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    Iterator() noexcept = default;
    explicit Iterator(DataLoader* loader) : loader_(loader) { ++*this; }
    /// The batch. Valid until the iterator moves on.
    const Batch& operator*() const noexcept { return loader_->current_; }
    const Batch* operator->() const noexcept { return &loader_->current_; }
    Iterator& operator++() {
      done_ = !loader_->next(loader_->current_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) noexcept {
      return iterator.done_;
    }

   private:
    DataLoader* loader_ = nullptr;
    bool done_ = true;
  };

  /// Begins a new pass and loads its first batch. Error if a worker's thread can't start (the first pass starts them).
  Iterator begin() {
    start_pass();
    return Iterator(this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Begins a new pass; what is left of the one before is given up. Errors as begin().
  void start_pass() {
    current_ = Batch();
    engine().start_pass();
  }
  /// Puts the next batch of the pass into `batch`, whose old one is dropped first; false at the end.
  bool next(Batch& batch) {
    batch = Batch();  // its memory may serve for the next
    std::size_t slot = 0;
    if (!engine().take(slot)) return false;
    Batch loaded = source_->take(slot);
    engine_->release(slot);
    batch = source_->deliver(std::move(loaded));
    return true;
  }

  /// Number of batches in a pass, on this rank.
  std::int64_t size() const { return engine().batches(); }
  /// Number of samples in a pass on this rank, with padding.
  std::int64_t sample_count() const { return engine().sampler().size(); }
  /// Batches of the current pass that were delivered.
  std::int64_t position() const { return engine().position(); }
  /// Number of the current pass, from 0; before the first one, the number that it will have.
  std::uint64_t epoch() const { return engine().epoch(); }
  /// Sets the number of the next pass.
  void set_epoch(std::uint64_t epoch) { engine().sampler().set_epoch(epoch); }
  /// Seconds that the caller has waited for batches so far.
  double wait_seconds() const { return engine().wait_seconds(); }
  const D& dataset() const {
    engine();
    return source_->dataset();
  }
  const DataLoaderOptions& options() const { return engine().options(); }
  std::int64_t batch_size() const { return engine().options().batch_size; }

 private:
  detail::LoaderEngine& engine() const {
    if (engine_.get() == nullptr) [[unlikely]]
      detail::throw_moved_from();
    return *engine_;
  }

  std::shared_ptr<detail::DatasetSource<D>> source_;
  tutti::detail::Hidden<detail::LoaderEngine> engine_;
  Batch current_{};
};

}  // namespace tutti::data
