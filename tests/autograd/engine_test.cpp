// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "autograd/small_ops.hpp"

namespace tutti {
namespace {

using namespace small_ops;

TEST(Engine, GradientAddsUpOverBackwards) {
  Tensor x = make({2}, true);
  mul(x, x).backward();
  const Tensor first = x.grad();
  mul(x, x).backward();
  EXPECT_EQ(values(x.grad()), Values{8});
  EXPECT_TRUE(first.is_same(x.grad())) << "the gradient is accumulated in place";
}

TEST(Engine, TensorUsedManyTimesGetsTheSum) {
  Tensor x = make({2}, true);
  Tensor y = mul(x, x);
  add(add(y, y), mul(y, x)).backward();  // 2x^2 + x^3
  EXPECT_DOUBLE_EQ(values(x.grad())[0], 8 + 12);
}

TEST(Engine, GivenGradientIsNeverAliased) {
  Tensor x = make({1, 2}, true);
  Tensor weight = make({3, 4});
  Add::apply(x, make({0, 0})).backward(weight);
  EXPECT_FALSE(x.grad().shares_storage(weight));
  Add::apply(x, make({0, 0})).backward(weight);
  EXPECT_EQ(values(weight), (Values{3, 4}));
  EXPECT_EQ(values(x.grad()), (Values{6, 8}));
}

TEST(Engine, TwoLeavesDoNotShareOneGradient) {
  Tensor x = make({1, 2}, true);
  Tensor y = make({1, 2}, true);
  sum(add(x, y)).backward();  // Add hands the same tensor to both
  EXPECT_FALSE(x.grad().shares_storage(y.grad()));
  EXPECT_TRUE(x.grad().is_contiguous());
  EXPECT_EQ(values(y.grad()), (Values{1, 1}));
}

TEST(Engine, GradientTakesTheLeafsLayout) {
  Tensor x = raw::as_strided(zeros({6}, DType::kFloat64), {2, 3}, {1, 2});
  x.requires_grad_();
  struct Ones : autograd::Function<Ones> {
    static Tensor forward(Context&, const Tensor& a) { return full({}, 0.0, a.dtype()); }
    static Tensor backward(Context&, const Tensor&) { return ones({2, 3}, DType::kFloat64); }
  };
  Ones::apply(x).backward();
  EXPECT_EQ(x.grad().strides(), x.strides());
}

TEST(Engine, RootMustBeAScalarOrHaveAGradient) {
  Tensor x = make({1, 2}, true);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { mul(x, x).backward(); }),
                  "backward of float64 [2] needs a gradient");
  EXPECT_CONTAINS(message_of<ShapeError>([&] { mul(x, x).backward(make({1})); }),
                  "the gradient given is float64 [1]");
  EXPECT_CONTAINS(message_of<DTypeError>([&] { mul(x, x).backward(ones({2})); }), "float32 [2]");
}

TEST(Engine, RootWithoutGraphIsAnError) {
  Tensor x = make({1});
  EXPECT_CONTAINS(message_of<AutogradError>([&] { mul(x, x).backward(); }), "requires grad");
}

TEST(Engine, LeafMayBeARoot) {
  Tensor x = make({1}, true);
  x.backward();
  EXPECT_EQ(values(x.grad()), Values{1});
}

TEST(Engine, SeveralRootsOneOfWhichDependsOnAnother) {
  Tensor x = make({3}, true);
  Tensor y = mul(x, x);
  Tensor z = scale(y, 2);
  const Tensor roots[] = {y, z};
  autograd::backward(roots);  // d(x^2 + 2x^2)/dx
  EXPECT_EQ(values(x.grad()), Values{18});
}

TEST(Engine, SecondBackwardIsAClearError) {
  Tensor x = make({1}, true);
  Tensor y = mul(x, x);
  y.backward();
  EXPECT_CONTAINS(message_of<AutogradError>([&] { y.backward(); }),
                  "Mul: backward ran through this operation before and freed its saved tensors; pass "
                  "retain_graph = true");
  EXPECT_EQ(values(x.grad()), Values{2});
}

TEST(Engine, RetainGraphAllowsASecondBackward) {
  Tensor x = make({1}, true);
  Tensor y = mul(x, x);
  y.backward({}, {.retain_graph = true});
  y.backward();
  EXPECT_EQ(values(x.grad()), Values{4});
}

TEST(Engine, DoubleBackwardIsRefused) {
  Tensor x = make({1}, true);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { mul(x, x).backward({}, {.create_graph = true}); }),
                  "double backward (create_graph = true) is not supported");
}

// Runs f on a thread with a small stack: recursion over a graph of 100,000 nodes would overflow it.
void on_small_stack(void (*f)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{256} << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* body) -> void* {
                  reinterpret_cast<void (*)()>(body)();
                  return nullptr;
                },
                reinterpret_cast<void*>(f)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Engine, LongChainRunsBackwardOnASmallStack) {
  on_small_stack([] {
    Tensor x = make({1}, true);
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = mul(y, x);
    y.backward();
    EXPECT_EQ(values(x.grad()), Values{100'001});
  });
}

TEST(Engine, LongChainIsDestroyedOnASmallStackWithoutBackward) {
  on_small_stack([] {
    Tensor x = make({1}, true);
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i)
      y = exp(scale(mul(y, y), 1e-9));  // saved inputs and outputs, which hold nodes too
  });
}

TEST(Engine, LongChainOfCheckpointsIsDestroyedOnASmallStack) {
  on_small_stack([] {
    Tensor y = make({1}, true);
    for (int i = 0; i < 10'000; ++i) y = autograd::checkpoint([](const Tensor& a) { return mul(a, a); }, y);
  });
}

TEST(Engine, ThreadsMayRunBackwardOnGraphsThatShareLeaves) {
  Tensor x = make({1, 2, 3}, true);
  std::atomic<int> hook_calls{0};
  auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { ++hook_calls; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) sum(mul(scale(x, 1), make({1, 1, 1}))).backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values(x.grad()), (Values{800, 800, 800}));
  EXPECT_EQ(hook_calls, 800);
}

TEST(Engine, HookMayCallBackward) {
  Tensor x = make({2}, true);
  Tensor other = make({5}, true);
  Tensor y = mul(x, x);
  auto handle = autograd::register_hook(y, [&](const Tensor&) {
    autograd::EnableGradGuard guard;
    mul(other, x).backward();  // reaches the outer call's leaf too
    return Tensor();
  });
  scale(y, 1).backward();
  EXPECT_EQ(values(other.grad()), Values{2});
  EXPECT_EQ(values(x.grad()), Values{9});
}

TEST(Engine, CallbacksRunOnceAtTheEndOfTheOutermostBackward) {
  Tensor x = make({2}, true);
  std::vector<std::string> log;
  auto post = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { log.push_back("x"); });
  Tensor y = scale(x, 3);
  auto handle = autograd::register_hook(y, [&](const Tensor&) {
    autograd::queue_callback([&] {
      log.push_back("first");
      autograd::queue_callback([&] { log.push_back("third"); });
    });
    autograd::queue_callback([&] { log.push_back("second"); });
    autograd::EnableGradGuard guard;
    scale(make({1}, true), 1).backward();
    return Tensor();
  });
  y.backward();
  EXPECT_EQ(log, (std::vector<std::string>{"x", "first", "second", "third"}));
}

// What a callback owns may be the last reference to something whose end calls backward, as a communication hook may.
TEST(Engine, DroppedCallbackMayCallBackwardWhenItDies) {
  struct AtItsEnd {
    explicit AtItsEnd(std::function<void()> then) : action(std::move(then)) {}
    AtItsEnd(const AtItsEnd&) = delete;
    AtItsEnd& operator=(const AtItsEnd&) = delete;
    ~AtItsEnd() { action(); }
    std::function<void()> action;
  };
  Tensor x = make({2}, true);
  Tensor other = make({5}, true);
  std::vector<std::string> log;
  Tensor y = scale(x, 3);
  auto handle = autograd::register_hook(y, [&](const Tensor&) -> Tensor {
    const auto owner = std::make_shared<AtItsEnd>([&] {
      autograd::EnableGradGuard guard;
      Tensor z = scale(other, 2);
      auto inner = autograd::register_hook(z, [&](const Tensor&) {
        for (int i = 0; i < 20; ++i) autograd::queue_callback([&] { log.push_back("inner"); });
        return Tensor();
      });
      z.backward();
    });
    autograd::queue_callback([owner] {});
    autograd::queue_callback([&] { log.push_back("dropped"); });
    throw std::runtime_error("the hook fails");
  });
  EXPECT_CONTAINS(message_of<std::runtime_error>([&] { y.backward(); }), "the hook fails");
  EXPECT_EQ(log, std::vector<std::string>(20, "inner"));
  EXPECT_EQ(values(other.grad()), Values{2});
}

TEST(Engine, CallbackOutsideOfABackwardIsAnError) {
  EXPECT_CONTAINS(message_of<AutogradError>([] { autograd::queue_callback([] {}); }),
                  "outside of a backward");
}

TEST(Engine, OrderOfHooksDoesNotDependOnTheOrderOfArguments) {
  std::vector<std::string> log;
  Tensor weight = make({2}, true);
  Tensor x = make({3}, true);
  auto a =
      autograd::register_post_accumulate_grad_hook(weight, [&](const Tensor&) { log.push_back("weight"); });
  auto b = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { log.push_back("x"); });
  mul(weight, x).backward();
  const std::vector<std::string> first = std::exchange(log, {});
  mul(x, weight).backward();
  EXPECT_EQ(log, first);
  EXPECT_EQ(log.size(), 2U);
}

TEST(Engine, LeafAccumulatesBeforeEarlierOperationsRun) {
  std::vector<std::string> log;
  Tensor x = make({2}, true);
  Tensor weight = make({3}, true);
  Tensor h = scale(x, 2);
  auto a = autograd::register_hook(h, [&](const Tensor&) {
    log.push_back("h");
    return Tensor();
  });
  auto b =
      autograd::register_post_accumulate_grad_hook(weight, [&](const Tensor&) { log.push_back("weight"); });
  mul(h, weight).backward();
  EXPECT_EQ(log, (std::vector<std::string>{"weight", "h"}));
}

TEST(Grad, ReturnsGradientsAndTouchesNoLeaf) {
  Tensor x = make({2}, true);
  Tensor unused = make({1}, true);
  bool post = false;
  auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { post = true; });
  Tensor h = mul(x, x);
  Tensor y = mul(h, x);
  const Tensor inputs[] = {x, h};
  const std::vector<Tensor> gradients = autograd::grad(y, inputs, {}, {.retain_graph = true});
  EXPECT_EQ(values(gradients[0]), Values{12});
  EXPECT_EQ(values(gradients[1]), Values{2});
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(post);
  const Tensor also_unused[] = {x, unused};
  EXPECT_CONTAINS(
      message_of<AutogradError>([&] { autograd::grad(y, also_unused, {}, {.retain_graph = true}); }),
      "don't depend on input 1");
  EXPECT_FALSE(autograd::grad(y, also_unused, {}, {.allow_unused = true})[1].defined());
}

TEST(Grad, RunsOnlyWhatLeadsToAnInput) {
  struct MustNotRun : autograd::Function<MustNotRun> {
    static Tensor forward(Context&, const Tensor& a) { return scale(a, 1); }
    static Tensor backward(Context&, const Tensor&) { throw std::runtime_error("ran"); }
  };
  Tensor x = make({2}, true);
  Tensor other = make({2}, true);
  Tensor h = MustNotRun::apply(other);
  Tensor y = mul(mul(h, x), x);
  const Tensor inputs[] = {x};
  EXPECT_EQ(values(autograd::grad(y, inputs)[0]), Values{8});
}

TEST(Grad, InputThatOtherInputsDependOnGetsItsOwnGradient) {
  Tensor x = make({3}, true);
  Tensor h = scale(x, 2);
  Tensor y = mul(h, h);
  const Tensor inputs[] = {h, x, y};
  const std::vector<Tensor> gradients = autograd::grad(y, inputs);
  EXPECT_EQ(values(gradients[0]), Values{12});
  EXPECT_EQ(values(gradients[1]), Values{24});
  EXPECT_EQ(values(gradients[2]), Values{1});
}

}  // namespace
}  // namespace tutti
