// SPDX-License-Identifier: Apache-2.0
// Log-softmax and negative log likelihood of a row in one go.
#include "kernels/cpu/isa/exp.hpp"
#include "kernels/cpu/isa/row_steps.hpp"
#include "kernels/cpu/isa/softmax_loops.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

template <class T>
CrossEntropyRow forward(const void* logits, const void* weights, int64_t n, bool smoothing) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(logits);
  const N* w = static_cast<const N*>(weights);
  const N greatest = greatest_of_row(x, n);
  const double sum = sum_of_row<N>(n, [&](int64_t i, const auto& access) {
    return exp_of(access.load(x + i, -static_cast<N>(__builtin_inf())) - greatest);
  });
  CrossEntropyRow row{static_cast<double>(greatest), __builtin_log(sum), 0.0};
  if (smoothing && w != nullptr) {
    row.weighted_sum = sum_of_row<N>(n, [&](int64_t i, const auto& access) {
      return (access.load(x + i, greatest) - greatest) * access.load(w + i, N{0});
    });
  } else if (smoothing) {
    row.weighted_sum = sum_of_row<N>(
        n, [&](int64_t i, const auto& access) { return access.load(x + i, greatest) - greatest; });
  }
  return row;
}

template <class T>
void backward(const void* logits, const void* weights, void* grad, int64_t n, const CrossEntropyGrad& row) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(logits);
  const N* w = static_cast<const N*>(weights);
  T* out = static_cast<T*>(grad);
  const N log_sum_exp = static_cast<N>(row.log_sum_exp);
  const N scale = static_cast<N>(row.probability_scale);
  const N smoothing = static_cast<N>(row.smoothing_scale);
  // The target's element is computed by itself, before grad, which may be the logits' memory, is written.
  const double probability = static_cast<double>(exp_of(
      broadcast<typename Lanes<T>::Vector>(static_cast<N>(to_double(x[row.target])) - log_sum_exp))[0]);
  const double target_weight = w != nullptr ? static_cast<double>(w[row.target]) : 1.0;
  const double at_target =
      probability * row.probability_scale - target_weight * row.smoothing_scale - row.target_scale;
  if (w != nullptr && row.smoothing_scale != 0.0) {
    for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
      const auto p = exp_of(access.load(x + i, N{0}) - log_sum_exp);
      access.store(out + i, p * scale - access.load(w + i, N{0}) * smoothing);
    });
  } else {
    for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
      access.store(out + i, exp_of(access.load(x + i, N{0}) - log_sum_exp) * scale - smoothing);
    });
  }
  Lanes<T>::store(out + row.target, broadcast<typename Lanes<T>::Vector>(static_cast<N>(at_target)), 1);
}

template <class... Ts>
constexpr CrossEntropyLoops make_loops() {
  return {{forward<Ts>...}, {backward<Ts>...}};
}

}  // namespace

constinit const CrossEntropyLoops kCrossEntropyLoops = make_loops<double, float, Half, BFloat16>();

}  // namespace tutti::cpu::TUTTI_ISA
