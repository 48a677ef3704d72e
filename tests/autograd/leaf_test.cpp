// SPDX-License-Identifier: Apache-2.0
// Leaves: their members on Tensor, hooks, gradient destinations.
#include <optional>
#include <thread>

#include "autograd/small_ops.hpp"

namespace tutti {
namespace {

using namespace small_ops;

// y = weight, with a backward that writes where it may.
struct WritesInPlace : autograd::Function<WritesInPlace> {
  struct State {
    int* granted = nullptr;
  };
  static Tensor forward(Context& ctx, const Tensor& weight, int& granted) {
    ctx.state().granted = &granted;
    return scale(weight, 1);
  }
  static Tensor backward(Context& ctx, const Tensor& grad) {
    const std::optional<autograd::GradDestination> destination = ctx.grad_destination(0);
    if (!destination) return scale(grad, 1);
    ++*ctx.state().granted;
    const Values in = values(grad);
    double* out = destination->tensor.data<double>();
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i] = in[i] + (destination->accumulate ? out[i] : 0);
    }
    return destination->tensor;
  }
};

TEST(Leaf, RequiresGradOnlyForFloatingPoint) {
  EXPECT_CONTAINS(message_of<DTypeError>([] { zeros({2}, DType::kInt64).requires_grad_(); }), "int64 [2]");
  EXPECT_TRUE(zeros({2}, DType::kBFloat16).requires_grad_().requires_grad());
}

TEST(Leaf, RequiresGradOfANonLeafIsAnError) {
  Tensor x = make({1}, true);
  Tensor y = mul(x, x);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { y.requires_grad_(false); }), "Mul made");
}

TEST(Leaf, FrozenLeafGetsNoGradient) {
  Tensor x = make({2}, true);
  Tensor weight = make({3}, true);
  weight.requires_grad_(false);
  mul(x, weight).backward();
  EXPECT_FALSE(weight.grad().defined());
  weight.requires_grad_(true);
  mul(x, weight).backward();
  EXPECT_EQ(values(weight.grad()), Values{2});
}

TEST(Leaf, DetachSharesMemoryAndHasNoHistory) {
  Tensor x = make({2}, true);
  Tensor y = mul(x, x);
  Tensor d = y.detach();
  EXPECT_TRUE(d.shares_storage(y));
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_leaf());
  mul(d, x).backward();
  EXPECT_EQ(values(x.grad()), Values{4});
}

TEST(Leaf, SetGradChecksWhatItIsGiven) {
  Tensor x = make({1, 2}, true);
  EXPECT_CONTAINS(message_of<ShapeError>([&] { x.set_grad(make({1})); }),
                  "set_grad of float64 [2] with float64 [1]");
  EXPECT_CONTAINS(message_of<DTypeError>([&] { x.set_grad(ones({2})); }),
                  "set_grad of float64 [2] with float32 [2]");
  Tensor g = make({5, 6});
  x.set_grad(g);
  EXPECT_TRUE(x.grad().is_same(g));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Leaf, ExpandedGradientThatWasSetIsNotWrittenOver) {
  Tensor x = make({1, 2}, true);
  x.set_grad(raw::expand(make({5}), {2}));
  sum(scale(x, 3)).backward();
  EXPECT_EQ(values(x.grad()), (Values{8, 8}));
}

TEST(Leaf, RetainGradKeepsANonLeafsGradient) {
  Tensor x = make({3}, true);
  Tensor y = mul(x, x);
  y.retain_grad();
  scale(y, 5).backward({}, {.retain_graph = true});
  EXPECT_EQ(values(y.grad()), Values{5});
  scale(y, 5).backward();
  EXPECT_EQ(values(y.grad()), Values{10});
}

TEST(Leaf, RetainGradOfATensorThatDiedIsHarmless) {
  Tensor x = make({3}, true);
  Tensor z;
  {
    Tensor y = mul(x, x);
    y.retain_grad();
    z = scale(y, 5);
  }
  z.backward();
  EXPECT_EQ(values(x.grad()), Values{30});
}

TEST(Hooks, RunInOrderAndMayReplaceTheGradient) {
  Tensor x = make({1}, true);
  std::vector<std::string> log;
  auto first = autograd::register_hook(x, [&](const Tensor& grad) {
    log.push_back("first " + std::to_string(values(grad)[0]).substr(0, 1));
    return scale(grad, 3);
  });
  auto second = autograd::register_hook(x, [&](const Tensor& grad) {
    log.push_back("second " + std::to_string(values(grad)[0]).substr(0, 1));
    return Tensor();
  });
  scale(x, 2).backward();
  EXPECT_EQ(log, (std::vector<std::string>{"first 2", "second 6"}));
  EXPECT_EQ(values(x.grad()), Values{6});
}

TEST(Hooks, LeafsHookSeesTheCompleteGradientOnce) {
  Tensor x = make({1}, true);
  int calls = 0;
  auto handle = autograd::register_hook(x, [&](const Tensor& grad) {
    ++calls;
    EXPECT_EQ(values(grad), Values{5});
    return Tensor();
  });
  add(scale(x, 2), scale(x, 3)).backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, HookOnANonLeafChangesWhatFlowsOn) {
  Tensor x = make({2}, true);
  Tensor y = mul(x, x);
  auto handle = autograd::register_hook(y, [](const Tensor& grad) { return scale(grad, 10); });
  scale(y, 1).backward();
  EXPECT_EQ(values(x.grad()), Values{40});
}

TEST(Hooks, ReplacementOfAnotherShapeIsAnError) {
  Tensor x = make({2}, true);
  auto handle = autograd::register_hook(x, [](const Tensor&) { return make({1, 2, 3}); });
  EXPECT_CONTAINS(message_of<AutogradError>([&] { scale(x, 1).backward(); }),
                  "a hook on a leaf returned float64 [3]");
}

TEST(Hooks, EmptyHookIsRefused) {
  Tensor x = make({2}, true);
  EXPECT_CONTAINS(message_of<ValueError>([&] { static_cast<void>(autograd::register_hook(x, nullptr)); }),
                  "register_hook: the hook is empty");
  EXPECT_CONTAINS(message_of<ValueError>(
                      [&] { static_cast<void>(autograd::register_post_accumulate_grad_hook(x, nullptr)); }),
                  "register_post_accumulate_grad_hook: the hook is empty");
}

TEST(Hooks, HandleRemovesItsHookWhenItDies) {
  Tensor x = make({2}, true);
  int calls = 0;
  {
    auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { ++calls; });
    scale(x, 1).backward();
    auto moved = std::move(handle);
    scale(x, 1).backward();
  }
  scale(x, 1).backward();
  EXPECT_EQ(calls, 2);
}

TEST(Hooks, DetachedHandleLeavesItsHook) {
  Tensor x = make({2}, true);
  int calls = 0;
  autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { ++calls; }).detach();
  scale(x, 1).backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, HookMayRemoveItselfAndLaterOnes) {
  Tensor x = make({2}, true);
  int calls = 0;
  std::optional<autograd::HookHandle> self;
  std::optional<autograd::HookHandle> later;
  self = autograd::register_post_accumulate_grad_hook(x, [&, kept = std::make_shared<int>(7)](const Tensor&) {
    self.reset();
    later.reset();
    calls += *kept;  // still alive
  });
  later = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor&) { calls += 100; });
  scale(x, 1).backward();
  scale(x, 1).backward();
  EXPECT_EQ(calls, 7);
}

TEST(Hooks, HandleMayOutliveTheTensor) {
  autograd::HookHandle handle;
  {
    Tensor x = make({2}, true);
    handle = autograd::register_hook(x, [](const Tensor&) { return Tensor(); });
  }
  handle.remove();
}

TEST(Hooks, PostAccumulateHookSeesTheLeafWithItsGradient) {
  Tensor x = make({2}, true);
  auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor& leaf) {
    EXPECT_TRUE(leaf.is_same(x));
    EXPECT_EQ(values(leaf.grad()), Values{3});
  });
  scale(x, 3).backward();
  EXPECT_CONTAINS(message_of<AutogradError>([&] {
                    auto none =
                        autograd::register_post_accumulate_grad_hook(scale(x, 1), [](const Tensor&) {});
                  }),
                  "was made by Scale");
}

TEST(GradDestination, GradientLandsInTheView) {
  Tensor x = make({1, 2}, true);
  Tensor bucket = zeros({5}, DType::kFloat64);
  autograd::set_grad_destination(x, raw::slice(bucket, 0, 2, 4, 1));
  sum(scale(x, 3)).backward();
  EXPECT_EQ(values(bucket), (Values{0, 0, 3, 3, 0}));
  EXPECT_TRUE(x.grad().shares_storage(bucket));
  sum(scale(x, 3)).backward();
  EXPECT_EQ(values(bucket), (Values{0, 0, 6, 6, 0}));
  x.set_grad({});
  sum(scale(x, 4)).backward();
  EXPECT_EQ(values(bucket), (Values{0, 0, 4, 4, 0})) << "the view is overwritten, not added to";
  autograd::clear_grad_destination(x);
  x.set_grad({});
  sum(scale(x, 1)).backward();
  EXPECT_FALSE(x.grad().shares_storage(bucket));
}

TEST(GradDestination, ViewOfAnotherShapeIsAnError) {
  Tensor x = make({1, 2}, true);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { autograd::set_grad_destination(x, make({1})); }),
                  "the view is float64 [1]");
}

TEST(GradDestination, ViewOfAnotherDTypeThanTheLeafHasByNowIsLeftAlone) {
  Tensor x = make({1, 2}, true);
  Tensor bucket = make({7, 7});
  autograd::set_grad_destination(x, bucket);
  raw::set_data(x, x.detach().to(DType::kFloat32));
  x.backward(ones({2}));
  EXPECT_EQ(x.grad().dtype(), DType::kFloat32);
  EXPECT_EQ(values(bucket), (Values{7, 7}));
}

TEST(GradDestination, BackwardWritesItDirectly) {
  Tensor x = make({1, 2}, true);
  Tensor bucket = zeros({2}, DType::kFloat64);
  autograd::set_grad_destination(x, bucket);
  int granted = 0;
  int hooks = 0;
  auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor& leaf) {
    ++hooks;
    EXPECT_TRUE(leaf.grad().shares_storage(bucket));
  });
  sum(WritesInPlace::apply(x, granted)).backward();
  EXPECT_EQ(values(bucket), (Values{1, 1}));
  sum(scale(WritesInPlace::apply(x, granted), 2)).backward();
  EXPECT_EQ(values(bucket), (Values{3, 3}));
  EXPECT_EQ(granted, 2);
  EXPECT_EQ(hooks, 2);
}

TEST(GradDestination, AskingTwiceGivesTheSameAnswer) {
  struct AsksTwice : autograd::Function<AsksTwice> {
    static Tensor forward(Context&, const Tensor& weight) { return scale(weight, 1); }
    static Tensor backward(Context& ctx, const Tensor& grad) {
      const auto first = ctx.grad_destination(0), second = ctx.grad_destination(0);
      EXPECT_TRUE(first && second && first->tensor.is_same(second->tensor));
      EXPECT_EQ(first->accumulate, second->accumulate);
      raw::copy(second->tensor, grad);
      return first->tensor;
    }
  };
  Tensor x = make({1, 2}, true);
  Tensor bucket = zeros({2}, DType::kFloat64);
  autograd::set_grad_destination(x, bucket);
  sum(scale(AsksTwice::apply(x), 3)).backward();
  EXPECT_EQ(values(bucket), (Values{3, 3}));
}

// [2, 2] in a bucket, handed out by a hook with its dims exchanged: the same address, other places.
TEST(GradDestination, TransposedViewOfItselfIsCopied) {
  Tensor x = raw::view(make({1, 2, 3, 4}), {2, 2}).requires_grad_();
  Tensor bucket = raw::view(make({10, 20, 30, 40}), {2, 2});
  autograd::set_grad_destination(x, bucket);
  auto handle = autograd::register_hook(x, [&](const Tensor&) { return raw::transpose(bucket, 0, 1); });
  sum(scale(x, 1)).backward();
  EXPECT_EQ(values(x.grad()), (Values{10, 30, 20, 40}));
  sum(scale(x, 1)).backward();  // adds its transpose
  EXPECT_EQ(values(x.grad()), (Values{20, 50, 50, 80}));
}

TEST(GradDestination, ThreadsThatClaimTheSameLeafLoseNothing) {
  Tensor x = make({1, 2}, true);
  Tensor other = make({1, 2}, true);
  autograd::set_grad_destination(x, zeros({2}, DType::kFloat64));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      int granted = 0;
      for (int i = 0; i < 200; ++i)
        sum(mul(WritesInPlace::apply(x, granted), WritesInPlace::apply(other, granted))).backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values(x.grad()), (Values{800, 1600}));
  EXPECT_EQ(values(other.grad()), (Values{800, 1600}));
}

TEST(GradDestination, NothingIfTheLeafIsUsedTwice) {
  Tensor x = make({1, 2}, true);
  int granted = 0;
  autograd::set_grad_destination(x, zeros({2}, DType::kFloat64));
  sum(add(WritesInPlace::apply(x, granted), WritesInPlace::apply(x, granted))).backward();
  EXPECT_EQ(granted, 0);
  EXPECT_EQ(values(x.grad()), (Values{2, 2}));
}

TEST(GradDestination, NothingIfAHookWantsToSeeTheGradient) {
  Tensor x = make({1, 2}, true);
  int granted = 0;
  autograd::set_grad_destination(x, zeros({2}, DType::kFloat64));
  auto handle = autograd::register_hook(x, [](const Tensor& grad) { return scale(grad, 7); });
  sum(WritesInPlace::apply(x, granted)).backward();
  EXPECT_EQ(granted, 0);
  EXPECT_EQ(values(x.grad()), (Values{7, 7}));
}

TEST(GradDestination, NothingWithoutAGradientOrAView) {
  Tensor x = make({1, 2}, true);
  int granted = 0;
  sum(WritesInPlace::apply(x, granted)).backward();
  EXPECT_EQ(granted, 0);
  const Tensor inputs[] = {x};
  EXPECT_EQ(values(autograd::grad(sum(WritesInPlace::apply(x, granted)), inputs)[0]), (Values{1, 1}));
  EXPECT_EQ(granted, 0) << "grad() must not write .grad";
  EXPECT_EQ(values(x.grad()), (Values{1, 1}));
}

}  // namespace
}  // namespace tutti
