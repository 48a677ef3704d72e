// SPDX-License-Identifier: Apache-2.0
// Autograd with the real ops: long chains, order of hooks, activation checkpoints, anomaly mode.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/errors.hpp"
#include "tutti/autograd/autograd.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using tutti::testing::expect_error;

Tensor leaf(const Tensor& tensor) { return tensor.clone().requires_grad_(); }

// Runs f in a thread whose stack has 8 MB, whatever this process's limit is.
void on_8mb_stack(const std::function<void()>& f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 8 << 20);
  pthread_t thread{};
  const auto run = [](void* function) -> void* {
    (*static_cast<const std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&f)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(OpChain, ThousandOpsHaveTheGradientOfTheirProduct) {
  Tensor x = leaf(full({3}, 2.0, DType::kFloat64));
  Tensor h = x;
  double slope = 1;
  for (int i = 0; i < 250; ++i) {  // h = (h * f + x - x) / 1
    const double factor = 1 + 0.001 * (i % 7 - 3);
    h = div(sub(add(mul(h, factor), x), x), 1.0);
    slope *= factor;
  }
  h.sum().backward();
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(h.detach()[i].item(), 2 * slope, 1e-12);
    EXPECT_NEAR(x.grad()[i].item(), slope, 1e-12);
  }
}

TEST(OpChain, HundredThousandOpsRunBackwardAndDieOnAnOrdinaryStack) {
  on_8mb_stack([] {
    constexpr int kPairs = 50000;
    Tensor x = leaf(ones({2}, DType::kFloat64)), w = leaf(ones({2}, DType::kFloat64));
    {
      Tensor h = x;
      for (int i = 0; i < kPairs; ++i) h = h * w + x;
      h.sum().backward();
    }
    // h_n = n + 1 at w = x = 1; dh/dx = n + 1; dh/dw = sum of h_0 to h_(n-1).
    EXPECT_EQ(x.grad()[0].item(), kPairs + 1.0);
    EXPECT_EQ(w.grad()[1].item(), 0.5 * kPairs * (kPairs + 1.0));
    Tensor dropped = x;
    for (int i = 0; i < kPairs; ++i) dropped = dropped * w + x;
  });
}

TEST(OpHooks, OrderDoesNotDependOnTheOrderOfArguments) {
  const auto order_of = [](const std::function<Tensor(const Tensor& w, const Tensor& h)>& f) {
    const Tensor x = leaf(randn({3, 3})), w = leaf(randn({3, 3})), b = leaf(randn({3, 3}));
    std::string order;
    const auto record = [&](const Tensor& tensor, char name) {
      return autograd::register_post_accumulate_grad_hook(tensor,
                                                          [&order, name](const Tensor&) { order += name; });
    };
    const auto of_x = record(x, 'x'), of_w = record(w, 'w'), of_b = record(b, 'b');
    const Tensor hidden = f(w, matmul(x, x));
    f(b, relu(hidden)).sum().backward();
    return order;
  };
  EXPECT_EQ(order_of([](const Tensor& w, const Tensor& h) { return matmul(w, h); }), "bwx");
  EXPECT_EQ(order_of([](const Tensor& w, const Tensor& h) { return matmul(h, w); }), "bwx");
  EXPECT_EQ(order_of([](const Tensor& w, const Tensor& h) { return w * h; }), "bwx");
  EXPECT_EQ(order_of([](const Tensor& w, const Tensor& h) { return h * w; }), "bwx");
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() &&
         std::memcmp(x.raw_data(), y.raw_data(), static_cast<std::size_t>(x.numel()) * x.element_size()) == 0;
}

TEST(OpCheckpoint, ConvolutionLinearAndDropoutGiveTheSameBits) {
  manual_seed(11);
  const Tensor image = randn({4, 3, 8, 8}), kernel = randn({5, 3, 3, 3}), weight = randn({7, 180}),
               bias = randn({7});
  const auto gradients = [&](bool checkpointed) {
    manual_seed(12);
    const Tensor x = leaf(image), k = leaf(kernel), w = leaf(weight), b = leaf(bias);
    const auto block = [&k, &w, &b](const Tensor& h) {
      const Tensor c = dropout(relu(conv2d(h, k)), 0.3);
      return dropout(linear(c.flatten(1), w, b), 0.5);
    };
    const Tensor y = checkpointed ? autograd::checkpoint(block, x) : block(x);
    const Tensor more = dropout(y, 0.5);  // the generator goes on as without the checkpoint
    (more * more).sum().backward();
    return std::vector<Tensor>{more.detach(), x.grad(), k.grad(), w.grad(), b.grad()};
  };
  const std::vector<Tensor> plain = gradients(false), recomputed = gradients(true);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(same_bits(plain[i], recomputed[i])) << i;
  EXPECT_GT(plain[1].max().item(), 0);
}

// One generator that the function is given, and one that it makes and that is gone when it is called again.
TEST(OpCheckpoint, ExplicitGeneratorsGiveTheSameNumbersAgainAndGoOn) {
  const Tensor image = ones({4, 50});
  const auto gradient = [&](bool checkpointed) {
    Generator given(3);
    const Tensor x = leaf(image);
    const auto block = [&given](const Tensor& h) {
      Generator own(given.next_u64());
      Tensor y = dropout(h * h, 0.5, true, &given);
      y = dropout(y * y, 0.5, true, &own);
      return y * y * rand(y.sizes(), DType::kFloat32, {}, &own);
    };
    Tensor y = checkpointed ? autograd::checkpoint(block, x) : block(x);
    y = checkpointed ? autograd::checkpoint(block, y) : block(y);
    y = dropout(y, 0.5, true, &given);
    const std::uint64_t offset = given.state().offset;
    y.sum().backward();
    EXPECT_EQ(given.state().offset, offset);
    return x.grad();
  };
  EXPECT_TRUE(same_bits(gradient(false), gradient(true)));
}

TEST(OpCheckpoint, InsideAnotherRepeatsItsRandomNumbersToo) {
  const auto gradient = [](bool checkpointed) {
    Generator given(3);
    const Tensor x = leaf(ones({4, 50}));
    const auto inner = [&given](const Tensor& h) { return dropout(h * h, 0.5, true, &given); };
    const auto outer = [&](const Tensor& h) {
      const Tensor y = inner(h);
      const Tensor z = checkpointed ? autograd::checkpoint(inner, y) : inner(y);
      return inner(z * z);
    };
    const Tensor y = checkpointed ? autograd::checkpoint(outer, x) : outer(x);
    y.sum().backward();
    return x.grad();
  };
  EXPECT_TRUE(same_bits(gradient(false), gradient(true)));
}

TEST(OpCheckpoint, AnotherNumberOfDrawsIsAnError) {
  int calls = 0;
  Generator given(3);
  const Tensor x = leaf(ones({4}));
  const Tensor y = autograd::checkpoint(
      [&](const Tensor& h) { return ++calls == 1 ? h * h : h * h * given.next_double(); }, x);
  expect_error<AutogradError>([&] { y.sum().backward(); }, "draws random numbers");
}

TEST(OpCheckpoint, BatchNormUpdatesItsStatisticsOnce) {
  const Tensor image = randn({8, 3});
  const auto run = [&](bool checkpointed) {
    const Tensor mean = zeros({3}), variance = ones({3}), x = leaf(image);
    const auto block = [&](const Tensor& h) {
      return batch_norm(h * h, mean, variance, {}, {}, {.training = true});
    };
    const Tensor y = checkpointed ? autograd::checkpoint(block, x) : block(x);
    (y * y * y).sum().backward();
    return std::vector<Tensor>{x.grad(), mean, variance};
  };
  const std::vector<Tensor> plain = run(false), recomputed = run(true);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(same_bits(plain[i], recomputed[i])) << i;
}

TEST(OpAnomaly, TheOpThatMadeTheFirstNaNIsNamed) {
  const autograd::AnomalyGuard guard;
  const Tensor x = leaf(tensor({-1, 2}));
  expect_error<AutogradError>([&] { exp(log(x) + 1.0); }, "Log");
  expect_error<AutogradError>([&] { relu(sqrt(x)); }, "Sqrt");
  const Tensor zero = leaf(tensor({0}));
  expect_error<AutogradError>([&] { div(zero, zero); }, "Div");
  // 0 times the infinite slope of sqrt at 0: forward is fine, backward is not.
  const Tensor y = sqrt(zero) * 0.0;
  expect_error<AutogradError>([&] { y.sum().backward(); }, "Sqrt");
}

TEST(OpsAutograd, ARowOfLogitsAloneAndA0DimSelectionKeepTheirShapes) {
  Tensor logits = tensor({1, 3, 2}).requires_grad_();
  const Tensor rows = logits.detach().view({1, 3}).requires_grad_();
  const Tensor target = full({}, 2, DType::kInt64);
  const Tensor loss = cross_entropy(logits, target, {.reduction = Reduction::kNone});
  EXPECT_EQ(loss.dim(), 0);
  EXPECT_EQ(loss.item<float>(), cross_entropy(rows, target.view({1})).item<float>());
  loss.backward();
  cross_entropy(rows, target.view({1})).backward();
  EXPECT_EQ(logits.grad().to_vector<float>(), rows.grad().to_vector<float>());
  EXPECT_FLOAT_EQ(cross_entropy(logits, tensor({0, 0, 1})).item<float>(), loss.item<float>());

  Tensor x = scalar_tensor(3.0).requires_grad_();
  const Tensor y = index_select(x, 0, zeros({1}, DType::kInt64));
  EXPECT_EQ(y.dim(), 0);
  y.backward();
  EXPECT_EQ(x.grad().item<float>(), 1);
}

}  // namespace
}  // namespace tutti
