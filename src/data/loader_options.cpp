// SPDX-License-Identifier: Apache-2.0
// Checks of a loader's options, and the sampler that they describe.
#include "data/loader_options.hpp"

#include <cmath>

#include "tutti/comm/process_group.hpp"
#include "tutti/core/error.hpp"

namespace tutti::data {

void validate(const DataLoaderOptions& options) {
  const char* name = "DataLoader";
  TUTTI_CHECK(options.batch_size >= 1, ValueError, name, ": batch_size must be at least 1, given ",
              options.batch_size);
  TUTTI_CHECK(options.num_workers >= 0, ValueError, name, ": num_workers must be at least 0, given ",
              options.num_workers);
  TUTTI_CHECK(options.prefetch_factor >= 1, ValueError, name, ": prefetch_factor must be at least 1, given ",
              options.prefetch_factor);
  constexpr std::int64_t kMostAhead = 1 << 20;
  TUTTI_CHECK(std::int64_t{options.num_workers} * options.prefetch_factor <= kMostAhead, ValueError, name,
              ": num_workers times prefetch_factor is the number of batches loaded ahead, at most ",
              kMostAhead, ", given ", options.num_workers, " times ", options.prefetch_factor);
  TUTTI_CHECK(std::isfinite(options.timeout_s) && options.timeout_s >= 0, ValueError, name,
              ": timeout_s must be finite and at least 0, given ", options.timeout_s);
  TUTTI_CHECK(options.sampler == nullptr || !options.shuffle, ValueError, name,
              ": shuffle and a sampler exclude each other");
}

std::shared_ptr<Sampler> sampler_of(const DataLoaderOptions& options, std::int64_t size) {
  if (options.sampler != nullptr) return options.sampler;
  int world_size = 1;
  int rank = 0;
  if (options.distributed != Sharding::kNone) {
    const auto world = comm::world();
    world_size = world->size();
    rank = world->rank();
  }
  if (world_size > 1) {
    return std::make_shared<DistributedSampler>(
        size, DistributedSamplerOptions{.world_size = world_size,
                                        .rank = rank,
                                        .shuffle = options.shuffle,
                                        .seed = options.seed,
                                        .exact = options.distributed == Sharding::kExact,
                                        .order = options.order});
  }
  if (!options.shuffle) return std::make_shared<SequentialSampler>(size);
  return std::make_shared<RandomSampler>(size,
                                         RandomSamplerOptions{.seed = options.seed, .order = options.order});
}

}  // namespace tutti::data
