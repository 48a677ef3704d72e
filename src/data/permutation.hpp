// SPDX-License-Identifier: Apache-2.0
// PyTorch's CPU generator and randperm.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tutti::data {

// torch.Generator().manual_seed(seed): the Mersenne Twister takes the low half of the seed.
inline std::mt19937 torch_engine(std::uint64_t seed) {
  return std::mt19937(static_cast<std::uint32_t>(seed));
}
// An order of `count` samples, to be written. MemoryError if that many don't fit.
std::vector<std::int64_t> make_order(std::int64_t count);
// torch.randperm(count, generator=engine), which goes on.
std::vector<std::int64_t> torch_randperm(std::int64_t count, std::mt19937& engine);

}  // namespace tutti::data
