// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa/optimizer.hpp"

#include "kernels/functors/math.hpp"

namespace tutti::cpu::TUTTI_ISA {

extern const OptimizerLoops kOptimizerLoops;

namespace {

namespace math = functors::math;

template <class T, bool kMomentum, bool kFirst, bool kNesterov>
void sgd_loop(const OptimizerArrays& arrays, std::int64_t count, const SgdConstants& constants) {
  T* param = static_cast<T*>(arrays.param);
  const T* grad = static_cast<const T*>(arrays.grad);
  T* buffer = static_cast<T*>(arrays.state1);
  const T lr = static_cast<T>(constants.lr);
  const T momentum = static_cast<T>(constants.momentum);
  const T gradient_factor = static_cast<T>(constants.gradient_factor);
  const T weight_decay = static_cast<T>(constants.weight_decay);
  const T sign = static_cast<T>(constants.sign);
  const bool decays = weight_decay != T{0};  // 0 * p would make an infinite parameter NaN
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T p = param[i];
    T g = sign * grad[i] + (decays ? weight_decay * p : T{0});
    if constexpr (kMomentum) {
      const T b = kFirst ? g : momentum * buffer[i] + gradient_factor * g;
      buffer[i] = b;
      g = kNesterov ? g + momentum * b : b;
    }
    param[i] = p - lr * g;
  }
}

template <class T>
void sgd(const OptimizerArrays& arrays, std::int64_t count, const SgdConstants& constants) {
  if (!constants.has_momentum) {
    sgd_loop<T, false, false, false>(arrays, count, constants);
  } else if (constants.first_step) {
    constants.nesterov ? sgd_loop<T, true, true, true>(arrays, count, constants)
                       : sgd_loop<T, true, true, false>(arrays, count, constants);
  } else {
    constants.nesterov ? sgd_loop<T, true, false, true>(arrays, count, constants)
                       : sgd_loop<T, true, false, false>(arrays, count, constants);
  }
}

template <class T, bool kAmsgrad>
void adam_loop(const OptimizerArrays& arrays, std::int64_t count, const AdamConstants& constants) {
  T* param = static_cast<T*>(arrays.param);
  const T* grad = static_cast<const T*>(arrays.grad);
  T* average = static_cast<T*>(arrays.state1);
  T* average_square = static_cast<T*>(arrays.state2);
  T* greatest_square = static_cast<T*>(arrays.state3);
  const T beta1 = static_cast<T>(constants.beta1);
  const T beta2 = static_cast<T>(constants.beta2);
  const T rest1 = static_cast<T>(1.0 - constants.beta1);
  const T rest2 = static_cast<T>(1.0 - constants.beta2);
  const T eps = static_cast<T>(constants.eps);
  const T sign = static_cast<T>(constants.sign);
  const T step_size = static_cast<T>(constants.step_size);
  const T inverse_sqrt_bias = static_cast<T>(constants.inverse_sqrt_bias);
  const T weight_decay = static_cast<T>(constants.weight_decay);
  const T keep = static_cast<T>(constants.keep);
  const bool decays = weight_decay != T{0};
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T p = param[i];
    const T g = sign * grad[i] + (decays ? weight_decay * p : T{0});
    const T m = beta1 * average[i] + rest1 * g;
    const T v = beta2 * average_square[i] + rest2 * (g * g);
    average[i] = m;
    average_square[i] = v;
    T spread = v;
    if constexpr (kAmsgrad) {
      const T before = greatest_square[i];
      spread = before > v ? before : v;
      greatest_square[i] = spread;
    }
    param[i] = keep * p - step_size * m / (math::sqrt(spread) * inverse_sqrt_bias + eps);
  }
}

template <class T>
void adam(const OptimizerArrays& arrays, std::int64_t count, const AdamConstants& constants) {
  constants.amsgrad ? adam_loop<T, true>(arrays, count, constants)
                    : adam_loop<T, false>(arrays, count, constants);
}

// In f64, so that no f32 overflows; sixteen partial sums, added pairwise.
template <class T>
double sum_of_squares(const void* x, std::int64_t count) {
  constexpr int kPartials = 16;
  const T* values = static_cast<const T*>(x);
  double partial[kPartials] = {};
  std::int64_t i = 0;
  for (; i + kPartials <= count; i += kPartials) {
    for (int lane = 0; lane < kPartials; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      partial[lane] += value * value;
    }
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    const double value = static_cast<double>(values[i]);
    partial[lane] += value * value;
  }
  for (int width = kPartials / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
  }
  return partial[0];
}

template <class T>
void scale(void* x, std::int64_t count, double factor) {
  T* values = static_cast<T*>(x);
  const T by = static_cast<T>(factor);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) values[i] *= by;
}

}  // namespace

constexpr OptimizerLoops kOptimizerLoops{{&sgd<float>, &sgd<double>},
                                         {&adam<float>, &adam<double>},
                                         {&sum_of_squares<float>, &sum_of_squares<double>},
                                         {&scale<float>, &scale<double>}};

}  // namespace tutti::cpu::TUTTI_ISA
