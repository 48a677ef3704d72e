// SPDX-License-Identifier: Apache-2.0
// The weights by formula of tests/golden/README.md: the same numbers in every framework, without a file.
#pragma once

#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/tensor/factories.hpp"
#include "tutti/tensor/state_dict.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::testing {

// In [-1, 1): element k of the entry `name`.
inline double formula_unit(std::string_view name, std::uint64_t k) {
  const std::uint64_t crc =
      crc32(0, reinterpret_cast<const Bytef*>(name.data()), static_cast<uInt>(name.size()));
  std::uint64_t z = (crc << 32U) + k + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  return 2 * static_cast<double>(z >> 11U) * 0x1p-53 - 1;
}

// The value of an entry of a state_dict, float32 (zeros for an integer entry).
inline Tensor formula_weight(const std::string& name, const Tensor& like) {
  if (!is_floating_point(like.dtype())) return zeros(like.sizes(), like.dtype());
  Tensor value = empty(like.sizes(), DType::kFloat32);
  const double fan_in =
      like.dim() > 0 ? static_cast<double>(like.numel()) / static_cast<double>(like.size(0)) : 1;
  for (std::int64_t k = 0; k < like.numel(); ++k) {
    const double u = formula_unit(name, static_cast<std::uint64_t>(k));
    double element = 0.1 * u;
    if (name.ends_with("running_var")) {
      element = 1 + 0.5 * std::abs(u);
    } else if (name.ends_with("weight")) {
      element = like.dim() > 1 ? u * std::sqrt(3 / fan_in) : 1 + 0.1 * u;
    }
    value.data<float>()[k] = static_cast<float>(element);
  }
  return value;
}

inline StateDict formula_weights(const StateDict& like) {
  StateDict weights;
  for (const auto& [name, value] : like) weights.set(name, formula_weight(name, std::get<Tensor>(value)));
  return weights;
}

}  // namespace tutti::testing
