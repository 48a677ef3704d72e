// SPDX-License-Identifier: Apache-2.0
// Tutti's side of the benchmarks; peer.py is the other. compare.py starts both and has them work in turns:
//
//   prepare <case> <mode>    makes the case and warms up; answers "ready"
//   run <count>              answers the seconds that <count> repetitions took
//
// The modes are the peer's; this side has one. As a rank of a job the program gives the same commands to every rank. Besides:
//
//   ours --first-step        one step of LeNet, then a line; what start-up costs
//   ours --memory            100 steps of LeNet; its peak memory is what counts
//   ours --once              every case once, for a test that they run
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "models.hpp"

namespace perf {
namespace {

using tutti::DType;
using Step = std::function<void()>;

constexpr int kWarmUp = 5;

template <class Net>
Step training(const tutti::Dims& batch) {
  const tutti::Environment* environment = tutti::Environment::current();
  auto trainer = std::make_shared<Trainer<Net>>(batch, environment->is_distributed());
  return [trainer] { trainer->step(); };
}

// 200 operations on 8 elements, forward and backward.
Step chain() {
  const Tensor z = tutti::randn({8}).requires_grad_();
  return [z] {
    Tensor y = z;
    for (int i = 0; i < 100; ++i) y = y * 1.01 + 0.1;
    y.sum().backward();
  };
}

// 1,000 trace points while tracing is off.
Step ranges() {
  return [] {
    for (int i = 0; i < 1000; ++i) const tutti::trace::Range range("step");
  };
}

std::vector<Tensor> parameters_with_gradients(int count, std::int64_t size) {
  std::vector<Tensor> parameters;
  for (int i = 0; i < count; ++i) {
    parameters.push_back(tutti::randn({size}).requires_grad_());
    parameters.back().set_grad(tutti::randn({size}));
  }
  return parameters;
}

Step adamw(int count, std::int64_t size) {
  auto optimizer = std::make_shared<tutti::optim::AdamW>(parameters_with_gradients(count, size),
                                                         tutti::optim::AdamWOptions{.lr = 1e-3});
  return [optimizer] { optimizer->step(); };
}

Step clip_grad_norm() {
  return [parameters = parameters_with_gradients(50, 500'000)] {
    tutti::optim::clip_grad_norm_(parameters, 1.0);
  };
}

template <class Op>
Step forward_only(Op op) {
  return [op, x = tutti::randn({4096, 1024})] {
    const tutti::autograd::NoGradGuard no_grad;
    const Tensor y = op(x);
  };
}

template <class Op>
Step forward_backward(Op op) {
  const Tensor x = tutti::randn({4096, 1024}).requires_grad_();
  const Tensor grad_y = tutti::ones_like(op(x.detach()));
  return [op, x, grad_y] { tutti::autograd::grad(op(x), std::vector<Tensor>{x}, grad_y); };
}

Step cross_entropy() {
  const Tensor targets = tutti::randint(0, 1024, {4096});
  return forward_backward([targets](const Tensor& x) { return tutti::cross_entropy(x, targets); });
}

struct Case {
  std::string_view name;
  Step (*make)();
};

// clang-format off
constexpr Case kCases[] = {
    {"lenet", [] { return training<LeNet>(lenet_batch()); }},
    {"mlp", [] { return training<Mlp>(mlp_batch()); }},
    {"chain", chain},
    {"ranges", ranges},
    {"adamw_small", [] { return adamw(1000, 64); }},
    {"adamw_large", [] { return adamw(50, 500'000); }},
    {"clip_grad_norm", clip_grad_norm},
    {"add", [] { return forward_only([](const Tensor& x) { return x + x; }); }},
    {"exp", [] { return forward_only([](const Tensor& x) { return tutti::exp(x); }); }},
    {"gelu", [] { return forward_only([](const Tensor& x) { return tutti::gelu(x); }); }},
    {"gelu_backward", [] { return forward_backward([](const Tensor& x) { return tutti::gelu(x); }); }},
    {"softmax_backward", [] { return forward_backward([](const Tensor& x) { return tutti::softmax(x, -1); }); }},
    {"cross_entropy_backward", cross_entropy},
};
// clang-format on

Step make(std::string_view name) {
  for (const Case& each : kCases) {
    if (each.name == name) return each.make();
  }
  throw tutti::ValueError(tutti::concat("no benchmark is named ", name));
}

double seconds_of(const Step& step, long count) {
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < count; ++i) step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Every rank has its own pipe with the same commands, so none waits in a collective while the peer works.
void serve() {
  const auto world = tutti::comm::world();
  Step step;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, argument;
    words >> command >> argument;
    if (command == "prepare") {
      step = Step();  // the memory of the case before goes first
      step = make(argument);
      for (int i = 0; i < kWarmUp; ++i) step();
      std::cout << "ready" << std::endl;
    } else if (command == "run") {
      world->barrier();
      const double seconds = seconds_of(step, std::stol(argument));
      std::cout << seconds << std::endl;
    } else {
      throw tutti::ValueError(tutti::concat("wanted prepare or run, given '", line, "'"));
    }
  }
}

void train_lenet(int steps) {
  Trainer<LeNet> trainer(lenet_batch(), false);
  for (int i = 0; i < steps; ++i) trainer.step();
  std::puts("done");
  std::fflush(stdout);
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  const tutti::Environment environment(argc, argv);
  tutti::manual_seed(0);
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (option == "--first-step") {
    perf::train_lenet(1);
  } else if (option == "--memory") {
    perf::train_lenet(100);
  } else if (option == "--once") {
    for (const perf::Case& each : perf::kCases) perf::make(each.name)();
  } else {
    perf::serve();
  }
}
