// SPDX-License-Identifier: Apache-2.0
// One block of Philox4x32-10 (Salmon et al. 2011), from Random123: four 32-bit numbers of a counter and a
// key.
#pragma once

#include <array>
#include <cstdint>

#include "tutti/core/random.hpp"

namespace tutti {

// key = seed, counter = (offset, stream), the low half of each first.
std::array<std::uint32_t, 4> philox_block(const PhiloxState& at) noexcept;

}  // namespace tutti
