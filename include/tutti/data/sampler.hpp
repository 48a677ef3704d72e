// SPDX-License-Identifier: Apache-2.0
/// \file
/// Samplers: in which order, and on which rank, samples are visited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/core/export.hpp"

namespace tutti::data {

/// How a permutation is drawn.
enum class PermutationOrder : std::uint8_t {
  kPhilox,  ///< Philox keyed by (seed, epoch): different for any two pairs.
  /// The order of PyTorch's samplers with the same seed, to the letter (torch.randperm, Mersenne Twister). A
  /// DistributedSampler's epochs are seeded with seed + epoch, so (0, 1) equals (1, 0).
  kTorch,
};

/// A permutation of 0 .. count - 1, as kPhilox draws it.
TUTTI_API std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);
/// torch.randperm(count, generator=torch.Generator().manual_seed(seed)). ValueError from 2^32 / 20 on, where PyTorch changes
/// its algorithm.
TUTTI_API std::vector<std::int64_t> torch_randperm(std::int64_t count, std::uint64_t seed);

/// One pass over the data.
struct Pass {
  std::vector<std::int64_t> indices;
  /// The indices behind these repeat samples, only so that all ranks have equally many.
  std::size_t valid_count = 0;
  std::uint64_t epoch = 0;
};

/// Gives the order of each pass. The order depends on the epoch alone, which advances by itself.
class TUTTI_API Sampler {
 public:
  virtual ~Sampler();

  /// Number of indices in a pass.
  virtual std::int64_t size() const noexcept = 0;
  /// The order of any epoch.
  virtual Pass pass(std::uint64_t epoch) const = 0;

  /// The order of the current epoch, which then advances.
  Pass next() { return pass(epoch_++); }
  /// The epoch that next() gives.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Sets it, to resume or repeat.
  void set_epoch(std::uint64_t epoch) noexcept { epoch_ = epoch; }

 private:
  std::uint64_t epoch_ = 0;
};

/// 0, 1, 2, ...
class TUTTI_API SequentialSampler final : public Sampler {
 public:
  /// ValueError if `count` is negative.
  explicit SequentialSampler(std::int64_t count);
  std::int64_t size() const noexcept override { return count_; }
  Pass pass(std::uint64_t epoch) const override;

 private:
  std::int64_t count_;
};

/// Options of RandomSampler.
struct RandomSamplerOptions {
  std::uint64_t seed = 0;
  PermutationOrder order = PermutationOrder::kPhilox;
};
/// A new permutation in each epoch.
class TUTTI_API RandomSampler final : public Sampler {
 public:
  /// ValueError if `count` is negative.
  explicit RandomSampler(std::int64_t count, const RandomSamplerOptions& options = {});
  std::int64_t size() const noexcept override { return count_; }
  /// kTorch: as RandomSampler(generator=torch.Generator().manual_seed(seed)), whose generator goes on from pass to pass. A pass
  /// has to draw the 2 * size() numbers of each one before it again, so its time grows with the epoch.
  Pass pass(std::uint64_t epoch) const override;

 private:
  std::int64_t count_;
  RandomSamplerOptions options_;
};

/// Options of DistributedSampler.
struct DistributedSamplerOptions {
  int world_size = 1;
  int rank = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< The same on all ranks.
  bool drop_last = false;  ///< Drop the samples at the end that don't fill all ranks, instead of padding.
  bool exact =
      false;  ///< Neither drop nor pad: each sample once, some ranks one more than others. For evaluation.
  PermutationOrder order = PermutationOrder::kPhilox;
};
/// One rank's part of each pass, by PyTorch's rule: of the order of all samples, padded with its own beginning to a multiple of
/// world_size (or cut), rank r has the positions r, r + world_size, r + 2 * world_size, ...
class TUTTI_API DistributedSampler final : public Sampler {
 public:
  /// ValueError for a negative count, a rank that is not in [0, world_size), or drop_last together with exact.
  explicit DistributedSampler(std::int64_t count, const DistributedSamplerOptions& options);
  std::int64_t size() const noexcept override { return size_; }
  Pass pass(std::uint64_t epoch) const override;

 private:
  std::int64_t count_;
  DistributedSamplerOptions options_;
  std::int64_t size_;
};

}  // namespace tutti::data
