// SPDX-License-Identifier: Apache-2.0
#include "tutti/autograd/gradcheck.hpp"

#include <cmath>
#include <limits>

#include "autograd/meta.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/engine.hpp"
#include "tutti/core/random.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::autograd {

namespace {

using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// Weights in [0.5, 1.5), so that no element of an output goes unseen.
std::vector<Tensor> random_weights(std::span<const Tensor> outputs) {
  Generator generator(1);
  std::vector<Tensor> weights;
  for (const Tensor& output : outputs) {
    Tensor weight = empty(output.sizes(), DType::kFloat64);
    for (std::int64_t i = 0; i < weight.numel(); ++i)
      weight.data<double>()[i] = 0.5 + generator.next_double();
    weights.push_back(std::move(weight));
  }
  return weights;
}

double weighted_sum(std::span<const Tensor> outputs, std::span<const Tensor> weights) {
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<double> values = outputs[i].to_vector<double>();
    for (std::size_t j = 0; j < values.size(); ++j) sum += values[j] * weights[i].data<double>()[j];
  }
  return sum;
}

// Address of a row-major element.
double& element(const Tensor& tensor, std::int64_t index) {
  std::int64_t offset = 0;
  for (int d = tensor.dim() - 1; d >= 0; --d) {
    offset += index % tensor.sizes()[d] * tensor.strides()[d];
    index /= tensor.sizes()[d];
  }
  return tensor.data<double>()[offset];
}

// The outputs that have a gradient.
std::vector<Tensor> differentiable_outputs(const Function& f, std::span<const Tensor> inputs) {
  const EnableGradGuard guard;
  std::vector<Tensor> outputs = f(inputs);
  std::erase_if(outputs, [](const Tensor& output) {
    return !output.defined() || output.dtype() != DType::kFloat64 || !output.requires_grad();
  });
  return outputs;
}

class Checker {
 public:
  Checker(const Function& f, std::span<const Tensor> inputs, const GradcheckOptions& options)
      : f_(f), inputs_(inputs), options_(options) {}

  GradcheckResult run() {
    std::vector<Tensor> checked;
    for (const Tensor& input : inputs_) {
      if (!input.defined() || !input.requires_grad()) continue;
      TUTTI_CHECK(input.dtype() == DType::kFloat64 && input.device().is_cpu(), DTypeError,
                  "gradcheck needs float64 inputs on the CPU, given ", describe(input), " on ",
                  input.device());
      checked.push_back(input);
    }
    const std::vector<Tensor> outputs = differentiable_outputs(f_, inputs_);
    TUTTI_CHECK(!outputs.empty(), AutogradError,
                "gradcheck: no float64 output of the function requires grad");
    const std::vector<Tensor> gradients =
        grad(outputs, checked, random_weights(outputs), {.allow_unused = true});
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].defined() && inputs_[i].requires_grad()) check_input(i, gradients[next++]);
    }
    TUTTI_CHECK(worst_excess_ <= 0, AutogradError, "gradcheck: input ", worst_.input, " (",
                describe(inputs_[worst_.input]), "), element ", worst_.element, ": backward gives ",
                worst_.analytic, ", central differences ", worst_.numeric);
    return worst_;
  }

 private:
  double evaluate_at(const Tensor& input, double& element, double value) const {
    element = value;
    raw::bump_version(input);  // kernels keep copies of weights by version
    const std::vector<Tensor> outputs = differentiable_outputs(f_, inputs_);
    return weighted_sum(outputs, random_weights(outputs));
  }

  void check_input(std::size_t input, const Tensor& gradient) {
    const Tensor& tensor = inputs_[input];
    const std::vector<double> analytic = gradient.defined()
                                             ? gradient.to_vector<double>()
                                             : std::vector<double>(static_cast<std::size_t>(tensor.numel()));
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      double& value = element(tensor, i);
      const double original = value;
      const double above = evaluate_at(tensor, value, original + options_.eps);
      const double below = evaluate_at(tensor, value, original - options_.eps);
      value = original;
      raw::bump_version(tensor);
      compare({0, input, i, analytic[static_cast<std::size_t>(i)], (above - below) / (2 * options_.eps)});
    }
  }

  void compare(GradcheckResult result) {
    result.deviation = std::abs(result.analytic - result.numeric);
    double excess = result.deviation - options_.atol - options_.rtol * std::abs(result.numeric);
    if (std::isnan(excess)) excess = std::numeric_limits<double>::infinity();
    if (excess <= worst_excess_) return;
    worst_excess_ = excess;
    worst_ = result;
  }

  const Function& f_;
  std::span<const Tensor> inputs_;
  GradcheckOptions options_;
  GradcheckResult worst_;  // by how much it is off beyond what the options allow
  double worst_excess_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

GradcheckResult gradcheck(const Function& f, std::span<const Tensor> inputs, GradcheckOptions options) {
  TUTTI_CHECK(f != nullptr, ValueError, "gradcheck: the function is empty");
  return Checker(f, inputs, options).run();
}

GradcheckResult gradcheck(const std::function<Tensor(std::span<const Tensor>)>& f,
                          std::span<const Tensor> inputs, GradcheckOptions options) {
  TUTTI_CHECK(f != nullptr, ValueError, "gradcheck: the function is empty");
  return gradcheck(
      Function([&f](std::span<const Tensor> arguments) { return std::vector<Tensor>{f(arguments)}; }), inputs,
      options);
}

}  // namespace tutti::autograd
