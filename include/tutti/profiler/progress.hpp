// SPDX-License-Identifier: Apache-2.0
/// \file
/// progress: shows how training gets on while it goes through a loader.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include "tutti/core/export.hpp"
#include "tutti/core/hidden.hpp"
#include "tutti/data/data_loader.hpp"
#include "tutti/profiler/step_profiler.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

namespace profiler {

/// How progress is shown.
enum class ProgressStyle : std::uint8_t {
  /// TUTTI_PROGRESS = live, plain or off; without it kLive if the output is a terminal and the process runs alone, else kPlain
  /// (mpirun gives its ranks a terminal even if its own output is a file).
  kAuto,
  kLive,   ///< One line that is overwritten.
  kPlain,  ///< A line every interval_s seconds and at the end of a pass.
  kOff,    ///< Nothing.
};

/// Options of progress.
struct ProgressOptions {
  std::int64_t epochs = 0;  ///< Passes in all, for the remaining time; 0: that of the current pass is shown.
  std::string_view unit = "samples";  ///< What a sample is called: "images".
  double interval_s = 5;              ///< Seconds between plain lines.
  ProgressStyle style = ProgressStyle::kAuto;
  std::FILE* output = stdout;
};

namespace detail {

struct ProgressState;

/// The part of Progress that does not depend on the loader's type.
class TUTTI_API ProgressMeter {
 public:
  explicit ProgressMeter(const ProgressOptions& options);
  ~ProgressMeter();
  ProgressMeter(ProgressMeter&&) noexcept;
  ProgressMeter& operator=(ProgressMeter&&) = delete;

  void start_pass();
  void pass_started(std::uint64_t epoch, std::int64_t steps);
  void end_step(std::int64_t samples);
  void end_pass();

  void set(std::string_view name, const Tensor& value);
  void set(std::string_view name, double value);
  const StepProfiler& steps() const noexcept;
  double samples_per_second() const noexcept;

 private:
  tutti::detail::Hidden<ProgressState> state_;
};

}  // namespace detail

/// What progress returns: goes through its loader's batches, pass after pass. May be moved between passes.
template <class D>
class Progress {
 public:
  Progress(data::DataLoader<D>& loader, const ProgressOptions& options) : loader_(&loader), meter_(options) {}

  /// Goes through a pass.
  class Iterator {
   public:
    using Inner = typename data::DataLoader<D>::Iterator;
    Iterator(Inner inner, Progress* progress) : inner_(std::move(inner)), progress_(progress) {}
    decltype(auto) operator*() const { return *inner_; }
    Iterator& operator++() {
      progress_->meter_.end_step(size_of(*inner_));
      ++inner_;
      if (inner_ == std::default_sentinel) progress_->meter_.end_pass();
      return *this;
    }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t end) noexcept {
      return iterator.inner_ == end;
    }

   private:
    std::int64_t size_of(const typename D::Batch& batch) const {
      if constexpr (requires {
                      { batch.size() } -> std::convertible_to<std::int64_t>;
                    }) {
        return static_cast<std::int64_t>(batch.size());
      } else {
        return progress_->loader_->batch_size();
      }
    }

    Inner inner_;
    Progress* progress_;
  };

  /// Begins a new pass.
  Iterator begin() {
    meter_.start_pass();
    Iterator iterator(loader_->begin(), this);
    meter_.pass_started(loader_->epoch(), loader_->size());
    return iterator;
  }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Shows a number beside the others, from now on. The tensor (one element) is read only when a line is written, so that this
  /// does not wait for a device. Each rank has its own numbers; rank 0's are shown.
  void set(std::string_view name, const Tensor& value) { meter_.set(name, value); }
  /// The same of a number.
  void set(std::string_view name, double value) { meter_.set(name, value); }

  /// What the time of all passes went to, but for the first step. A step is one turn of the loop, with the wait for its batch.
  const StepProfiler& steps() const noexcept { return meter_.steps(); }
  /// Samples of all ranks together, if each has as many as this one, per second of the passes so far.
  double samples_per_second() const noexcept { return meter_.samples_per_second(); }

 private:
  data::DataLoader<D>* loader_;
  detail::ProgressMeter meter_;
};

}  // namespace profiler

/// Goes through a loader and shows, on rank 0, epoch, step, samples a second (of all ranks together), numbers that were set, and
/// the remaining time:
///
///     for (const auto& [images, labels] : progress(loader)) ...
///
/// Kept in a variable, it serves all epochs, shows the loss and knows what the time went to:
///
///     auto batches = progress(loader, {.epochs = 3});
///     for (int epoch = 0; epoch < 3; ++epoch)
///       for (const auto& [images, labels] : batches) {
///         ...
///         batches.set("loss", loss);
///       }
///     std::puts(profiler::make_verdict(batches.steps().total()).to_text().c_str());
///
/// It refers to the loader. ValueError for an option outside its domain.
template <class D>
profiler::Progress<D> progress(data::DataLoader<D>& loader, const profiler::ProgressOptions& options = {}) {
  return profiler::Progress<D>(loader, options);
}

}  // namespace tutti
