// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "tutti/data/data_loader.hpp"

namespace tutti::data {

// ValueError naming the option that is outside its domain.
void validate(const DataLoaderOptions& options);
// The sampler of a dataset of `size` samples, for this rank of the world.
std::shared_ptr<Sampler> sampler_of(const DataLoaderOptions& options, std::int64_t size);

}  // namespace tutti::data
