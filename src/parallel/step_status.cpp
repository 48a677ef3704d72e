// SPDX-License-Identifier: Apache-2.0
#include "parallel/step_status.hpp"

#include <algorithm>
#include <vector>

#include "tensor/raw.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::parallel {

namespace {

constexpr std::size_t kBits = 7;

}  // namespace

// A bit's mean is 0 or 1 if all ranks have the same, and lies between otherwise. In bfloat16 the mean of hundreds of ranks may be
// rounded up to 1 though one of them has 0; its complement's is then 1 / size, which is not rounded to 0. So complements
// follow the bits where there is room, that is, in all dtypes but float64, which has no need of them.
void write_status(const Tensor& status, bool failed, std::uint64_t skipped) {
  std::vector<double> values(static_cast<std::size_t>(status.numel()));
  values[0] = failed ? 1 : 0;
  for (std::size_t bit = 0; bit < kBits; ++bit) {
    const bool is_set = (skipped >> bit & 1U) != 0;
    values[1 + bit] = is_set ? 1 : 0;
    if (const std::size_t place = 1 + kBits + bit; place < values.size()) values[place] = is_set ? 0 : 1;
  }
  raw::copy(status, tensor(values).to(status.device()));
}

StepStatus read_status(const Tensor& mean) {
  const std::vector<double> values = mean.to_vector<double>();
  return {values[0] != 0, std::any_of(values.begin() + 1, values.end(),
                                      [](double value) { return value != 0 && value != 1; })};
}

}  // namespace tutti::parallel
