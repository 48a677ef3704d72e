// SPDX-License-Identifier: Apache-2.0
// Permutations: Tutti's own and PyTorch's.
#include <exception>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "data/mixing.hpp"
#include "data/permutation.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/random.hpp"
#include "tutti/data/sampler.hpp"

namespace tutti::data {

std::vector<std::int64_t> make_order(std::int64_t count) {
  try {
    return std::vector<std::int64_t>(static_cast<std::size_t>(count));
  } catch (const std::exception&) {  // too long for a vector, or for the memory
    throw MemoryError(concat("there is no memory for the order of ", count, " samples"));
  }
}

namespace {

std::vector<std::int64_t> identity(std::int64_t count) {
  TUTTI_CHECK(count >= 0, ValueError, "a permutation of ", count, " elements");
  std::vector<std::int64_t> order = make_order(count);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

}  // namespace

// Fisher and Yates's shuffle in Durstenfeld's form.
std::vector<std::int64_t> permutation(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order = identity(count);
  Generator generator(key_of(Purpose::kOrder, seed, epoch));
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[static_cast<std::size_t>(generator.next_below(left))]);
  return order;
}

// randperm_cpu of aten/src/ATen/native/TensorFactories.cpp. From 2^32 / 20 elements on PyTorch takes another way.
std::vector<std::int64_t> torch_randperm(std::int64_t count, std::mt19937& engine) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::uint32_t>::max() / 20;
  TUTTI_CHECK(count < kLimit, ValueError, "PyTorch's order is reproduced for fewer than ", kLimit,
              " samples, given ", count);
  std::vector<std::int64_t> order = identity(count);
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    std::swap(order[i], order[i + static_cast<std::size_t>(engine()) % (order.size() - i)]);
  return order;
}

std::vector<std::int64_t> torch_randperm(std::int64_t count, std::uint64_t seed) {
  std::mt19937 engine = torch_engine(seed);
  return torch_randperm(count, engine);
}

}  // namespace tutti::data
