// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/init.hpp"

#include <cmath>

#include "ops/dispatch.hpp"
#include "tutti/core/error.hpp"

namespace tutti::nn::init {

namespace {

void draw(const char* name, const Tensor& tensor, int kind, double a, double b, Generator* generator) {
  TUTTI_CHECK(is_floating_point(tensor.dtype()), DTypeError, name, ": wanted a floating dtype, given ",
              tensor.dtype());
  raw::check_writable(tensor, name);
  Generator& source = generator != nullptr ? *generator : default_generator();
  const std::uint64_t numbers =
      static_cast<std::uint64_t>(tensor.numel()) * (tensor.dtype() == DType::kFloat64 ? 2 : 1);
  const PhiloxState state = source.reserve(numbers);
  tutti_random args;
  args.stream = dispatch::stream_of(tensor.device());
  args.kind = kind;
  args.philox = {state.seed, state.stream, state.offset};
  args.a = a;
  args.b = b;
  args.low = args.high = 0;
  raw::fill_view(args.out, tensor);
  dispatch::check(tensor.device(), dispatch::backend_of(tensor.device()).kernels.random(&args), name);
  raw::bump_version(tensor);
}

void draw_uniform(const char* name, const Tensor& tensor, double low, double high, Generator* generator) {
  TUTTI_CHECK(low <= high && std::isfinite(low) && std::isfinite(high), ValueError, name,
              ": wanted finite bounds, low not above high, given ", low, " and ", high);
  draw(name, tensor, TUTTI_UNIFORM, low, high, generator);
}
void draw_normal(const char* name, const Tensor& tensor, double mean, double deviation,
                 Generator* generator) {
  TUTTI_CHECK(std::isfinite(mean) && deviation >= 0 && std::isfinite(deviation), ValueError, name,
              ": wanted a finite mean and deviation, the deviation not negative, given ", mean, " and ",
              deviation);
  draw(name, tensor, TUTTI_NORMAL, mean, deviation, generator);
}

struct Fans {
  double in, out;
};
Fans fans_of(const char* name, const Tensor& tensor) {
  TUTTI_CHECK(tensor.dim() >= 2, ShapeError, name, ": fan in and fan out need at least two dims, given ",
              tensor.sizes());
  TUTTI_CHECK(tensor.numel() > 0, ShapeError, name, ": an empty tensor has no fan in and fan out, given ",
              tensor.sizes());
  const auto numel = static_cast<double>(tensor.numel());
  return {numel / static_cast<double>(tensor.size(0)), numel / static_cast<double>(tensor.size(1))};
}
double kaiming_deviation(const char* name, const Tensor& tensor, double slope, FanMode mode,
                         Nonlinearity nonlinearity) {
  const Fans fans = fans_of(name, tensor);
  return calculate_gain(nonlinearity, slope) / std::sqrt(mode == FanMode::kFanIn ? fans.in : fans.out);
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::kLinear:
    case Nonlinearity::kSigmoid: return 1;
    case Nonlinearity::kTanh: return 5.0 / 3;
    case Nonlinearity::kReLU: return std::sqrt(2.0);
    case Nonlinearity::kLeakyReLU: return std::sqrt(2 / (1 + slope * slope));
  }
  detail::fail<ValueError>("calculate_gain: unknown nonlinearity ", static_cast<int>(nonlinearity));
}

void uniform_(const Tensor& tensor, double low, double high, Generator* generator) {
  draw_uniform("uniform_", tensor, low, high, generator);
}
void normal_(const Tensor& tensor, double mean, double deviation, Generator* generator) {
  draw_normal("normal_", tensor, mean, deviation, generator);
}
void constant_(const Tensor& tensor, double value) {
  raw::check_writable(tensor, "constant_");
  raw::fill(tensor, value, "constant_");
  raw::bump_version(tensor);
}
void zeros_(const Tensor& tensor) { constant_(tensor, 0); }
void ones_(const Tensor& tensor) { constant_(tensor, 1); }

void xavier_uniform_(const Tensor& tensor, double gain, Generator* generator) {
  const Fans fans = fans_of("xavier_uniform_", tensor);
  const double bound = gain * std::sqrt(6 / (fans.in + fans.out));
  draw_uniform("xavier_uniform_", tensor, -bound, bound, generator);
}
void xavier_normal_(const Tensor& tensor, double gain, Generator* generator) {
  const Fans fans = fans_of("xavier_normal_", tensor);
  draw_normal("xavier_normal_", tensor, 0, gain * std::sqrt(2 / (fans.in + fans.out)), generator);
}
void kaiming_uniform_(const Tensor& tensor, double slope, FanMode mode, Nonlinearity nonlinearity,
                      Generator* generator) {
  const double bound =
      std::sqrt(3.0) * kaiming_deviation("kaiming_uniform_", tensor, slope, mode, nonlinearity);
  draw_uniform("kaiming_uniform_", tensor, -bound, bound, generator);
}
void kaiming_normal_(const Tensor& tensor, double slope, FanMode mode, Nonlinearity nonlinearity,
                     Generator* generator) {
  draw_normal("kaiming_normal_", tensor, 0,
              kaiming_deviation("kaiming_normal_", tensor, slope, mode, nonlinearity), generator);
}

}  // namespace tutti::nn::init
