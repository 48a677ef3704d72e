// SPDX-License-Identifier: Apache-2.0
/// \file
/// Initialisation of parameters, in place, outside autograd. Random numbers come from `generator`, or from the calling
/// thread's default generator. fan_in = elements / size(0); fan_out = elements / size(1). [Glorot and Bengio 2010; He et al. 2015]
#pragma once

#include "tutti/core/export.hpp"
#include "tutti/core/random.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::nn::init {

/// Which number of connections keeps its variance: those into an output (forward) or out of an input (backward).
enum class FanMode : std::uint8_t { kFanIn, kFanOut };
/// The nonlinearity that follows; it sets the gain.
enum class Nonlinearity : std::uint8_t { kLinear, kSigmoid, kTanh, kReLU, kLeakyReLU };

/// Factor by which a nonlinearity shrinks a deviation, to be made up for: 1 for linear and sigmoid, 5 / 3 for tanh, sqrt(2) for
/// ReLU, sqrt(2 / (1 + slope^2)) for LeakyReLU with the negative slope `slope`.
TUTTI_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);
/// Uniform in [low, high). Any shape; floating dtypes (DTypeError otherwise), so for all below that draw numbers. ValueError
/// unless low <= high, both finite.
TUTTI_API void uniform_(const Tensor& tensor, double low = 0, double high = 1,
                        Generator* generator = nullptr);
/// Normal with the given mean and standard deviation. ValueError for a negative deviation, or if one
/// of them is not finite.
TUTTI_API void normal_(const Tensor& tensor, double mean = 0, double deviation = 1,
                       Generator* generator = nullptr);
/// Every element becomes `value`. Any shape and dtype; ValueError if an integer dtype can't hold it.
TUTTI_API void constant_(const Tensor& tensor, double value);
TUTTI_API void zeros_(const Tensor& tensor);  ///< Every element becomes 0.
TUTTI_API void ones_(const Tensor& tensor);   ///< Every element becomes 1.
/// Uniform in +-gain sqrt(6 / (fan_in + fan_out)). ShapeError for less than two dims; so the others below.
TUTTI_API void xavier_uniform_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);
/// Normal with deviation gain sqrt(2 / (fan_in + fan_out)).
TUTTI_API void xavier_normal_(const Tensor& tensor, double gain = 1, Generator* generator = nullptr);
/// Uniform in +-gain sqrt(3 / fan), where the gain is that of the nonlinearity with this slope. PyTorch's initialisation of
/// Linear and Conv2d is slope sqrt(5): +-1 / sqrt(fan_in).
TUTTI_API void kaiming_uniform_(const Tensor& tensor, double slope = 0, FanMode mode = FanMode::kFanIn,
                                Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU,
                                Generator* generator = nullptr);
/// Normal with deviation gain / sqrt(fan); the gain as in kaiming_uniform_().
TUTTI_API void kaiming_normal_(const Tensor& tensor, double slope = 0, FanMode mode = FanMode::kFanIn,
                               Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU,
                               Generator* generator = nullptr);

}  // namespace tutti::nn::init
