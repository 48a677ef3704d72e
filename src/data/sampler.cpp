// SPDX-License-Identifier: Apache-2.0
#include "tutti/data/sampler.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/permutation.hpp"
#include "tutti/core/error.hpp"

namespace tutti::data {

namespace {

std::int64_t checked_count(const char* sampler, std::int64_t count) {
  TUTTI_CHECK(count >= 0, ValueError, sampler, ": the number of samples is negative: ", count);
  return count;
}

Pass whole_pass(std::vector<std::int64_t> indices, std::uint64_t epoch) {
  const std::size_t count = indices.size();
  return {.indices = std::move(indices), .valid_count = count, .epoch = epoch};
}

std::vector<std::int64_t> sequence(std::int64_t count) {
  std::vector<std::int64_t> indices = make_order(count);
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

// How many of the positions rank, rank + world_size, ... are below `end`.
std::int64_t positions_below(std::int64_t end, const DistributedSamplerOptions& options) {
  return end <= options.rank ? 0 : (end - options.rank - 1) / options.world_size + 1;
}

}  // namespace

Sampler::~Sampler() = default;

SequentialSampler::SequentialSampler(std::int64_t count)
    : count_(checked_count("SequentialSampler", count)) {}

Pass SequentialSampler::pass(std::uint64_t epoch) const { return whole_pass(sequence(count_), epoch); }

RandomSampler::RandomSampler(std::int64_t count, const RandomSamplerOptions& options)
    : count_(checked_count("RandomSampler", count)), options_(options) {}

Pass RandomSampler::pass(std::uint64_t epoch) const {
  if (options_.order == PermutationOrder::kPhilox)
    return whole_pass(permutation(count_, options_.seed, epoch), epoch);
  std::mt19937 engine = torch_engine(options_.seed);
  // A pass of PyTorch's sampler draws a second permutation for what is left beyond whole ones, even if that is nothing.
  if (count_ > 1) engine.discard(epoch * 2 * static_cast<std::uint64_t>(count_ - 1));
  return whole_pass(torch_randperm(count_, engine), epoch);
}

DistributedSampler::DistributedSampler(std::int64_t count, const DistributedSamplerOptions& options)
    : count_(checked_count("DistributedSampler", count)), options_(options) {
  TUTTI_CHECK(options.world_size >= 1, ValueError,
              "DistributedSampler: world_size must be at least 1, given ", options.world_size);
  TUTTI_CHECK(options.rank >= 0 && options.rank < options.world_size, ValueError,
              "DistributedSampler: rank must be in [0, ", options.world_size, "), given ", options.rank);
  TUTTI_CHECK(!options.drop_last || !options.exact, ValueError,
              "DistributedSampler: drop_last and exact exclude each other");
  if (options.exact) {
    size_ = positions_below(count, options);
  } else {
    const bool padded = !options.drop_last && count % options.world_size != 0;
    size_ = count / options.world_size + (padded ? 1 : 0);
  }
}

Pass DistributedSampler::pass(std::uint64_t epoch) const {
  std::vector<std::int64_t> all;
  if (options_.shuffle) {
    all = options_.order == PermutationOrder::kPhilox ? permutation(count_, options_.seed, epoch)
                                                      : torch_randperm(count_, options_.seed + epoch);
  }
  Pass pass;
  pass.epoch = epoch;
  pass.valid_count = static_cast<std::size_t>(std::min(size_, positions_below(count_, options_)));
  pass.indices = make_order(size_);
  for (std::int64_t i = 0; i < size_; ++i) {
    // Positions beyond the end stand for the padding: the list from its beginning, as often as it takes.
    const std::int64_t position = (options_.rank + i * options_.world_size) % count_;
    pass.indices[static_cast<std::size_t>(i)] =
        options_.shuffle ? all[static_cast<std::size_t>(position)] : position;
  }
  return pass;
}

}  // namespace tutti::data
