// SPDX-License-Identifier: Apache-2.0
// What a user-defined Function may take, return and say.
#include <functional>

#include "autograd/small_ops.hpp"

namespace tutti {
namespace {

using namespace small_ops;

struct WrongShape : autograd::Function<WrongShape> {
  static Tensor forward(Context&, const Tensor& a) { return scale(a, 1); }
  static Tensor backward(Context&, const Tensor&) { return zeros({7}, DType::kFloat64); }
};
struct WrongDType : autograd::Function<WrongDType> {
  static Tensor forward(Context&, const Tensor& a) { return scale(a, 1); }
  static Tensor backward(Context&, const Tensor& grad) { return zeros(grad.sizes(), DType::kFloat32); }
};
struct TooFewGradients : autograd::Function<TooFewGradients> {
  static Tensor forward(Context&, const Tensor& a, const Tensor& b) { return add(a, b); }
  static Tensor backward(Context&, const Tensor& grad) { return grad; }
};
struct ThrowsInBackward : autograd::Function<ThrowsInBackward> {
  static Tensor forward(Context& ctx, const Tensor& a) {
    ctx.save(a);
    return scale(a, 1);
  }
  static Tensor backward(Context&, const Tensor&) { throw std::runtime_error("out of coffee"); }
};
struct Identity : autograd::Function<Identity> {
  static Tensor forward(Context&, const Tensor& a) { return a; }
  static Tensor backward(Context&, const Tensor& grad) { return grad; }
};
struct OptionalBias : autograd::Function<OptionalBias> {
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& bias) {
    ctx.save(bias);
    return bias.defined() ? add(a, bias) : scale(a, 1);
  }
  static std::pair<Tensor, Tensor> backward(Context& ctx, const Tensor& grad) {
    EXPECT_EQ(ctx.saved(0).defined(), ctx.needs_input_grad(1));
    return {grad, ctx.needs_input_grad(1) ? grad : Tensor()};
  }
};
struct Split : autograd::Function<Split> {  // n copies; the last is declared without gradient
  static std::vector<Tensor> forward(Context& ctx, const Tensor& a, std::size_t count) {
    ctx.mark_non_differentiable(count - 1);
    std::vector<Tensor> copies;
    for (std::size_t i = 0; i < count; ++i) copies.push_back(scale(a, 1));
    return copies;
  }
  static Tensor backward(Context&, std::span<const Tensor> grads) {
    EXPECT_FALSE(grads.back().defined());
    Tensor total = grads[0];
    for (const Tensor& grad : grads.first(grads.size() - 1).subspan(1)) total = add(total, grad);
    return total;
  }
};
struct SeesUndefined : autograd::Function<SeesUndefined> {
  static std::pair<Tensor, Tensor> forward(Context& ctx, const Tensor& a) {
    ctx.set_materialize_grads(false);
    return {scale(a, 1), scale(a, 1)};
  }
  static Tensor backward(Context&, const Tensor& first, const Tensor& second) {
    EXPECT_FALSE(second.defined());
    return first;
  }
};
struct WithIndices : autograd::Function<WithIndices> {
  static std::pair<Tensor, Tensor> forward(Context&, const Tensor& a) {
    return {scale(a, 2), zeros({2}, DType::kInt64)};
  }
  static Tensor backward(Context&, const Tensor& grad, const Tensor& grad_indices) {
    EXPECT_FALSE(grad_indices.defined());
    return scale(grad, 2);
  }
};
struct Recorded : autograd::Function<Recorded> {
  static Tensor forward(Context& ctx, const Tensor& a, bool& recording) {
    recording = ctx.recording();
    EXPECT_FALSE(autograd::grad_enabled());
    return scale(a, 1);
  }
  static Tensor backward(Context&, const Tensor& grad) {
    EXPECT_FALSE(autograd::grad_enabled());
    return grad;
  }
};
struct Named : autograd::Function<Named> {
  static constexpr std::string_view kName = "Hadamard";
  static Tensor forward(Context&, const Tensor& a) { return scale(a, 1); }
  static Tensor backward(Context&, const Tensor& grad) { return grad; }
};

TEST(Function, GradientsFollowTheChainRule) {
  Tensor x = make({1, 2, 3}, true);
  Tensor y = make({4, 5, 6}, true);
  sum(add(mul(mul(x, x), y), exp(x))).backward();  // d/dx = 2xy + e^x, d/dy = x^2
  const Values gx = values(x.grad());
  for (std::size_t i = 0; i < 3; ++i) {
    const double xi = static_cast<double>(i) + 1;
    EXPECT_DOUBLE_EQ(gx[i], 2 * xi * (xi + 3) + std::exp(xi));
  }
  EXPECT_EQ(values(y.grad()), (Values{1, 4, 9}));
}

TEST(Function, NameIsTheTypesNameWithoutNamespaces) {
  Tensor x = make({1}, true);
  EXPECT_EQ(mul(x, x).grad_fn_name(), "Mul");
  EXPECT_EQ(Named::apply(x).grad_fn_name(), "Hadamard");
  EXPECT_EQ(x.grad_fn_name(), "");
}

TEST(Function, SeveralOutputsOfWhichOneIsUnusedGetZeros) {
  Tensor x = make({1, 2}, true);
  auto [two, three] = TwoAndThree::apply(x);
  sum(three).backward();
  EXPECT_EQ(values(x.grad()), (Values{3, 3}));
}

TEST(Function, WithoutMaterializedGradientsAnUnusedOutputIsUndefined) {
  Tensor x = make({1, 2}, true);
  auto [first, second] = SeesUndefined::apply(x);
  sum(first).backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 1}));
}

TEST(Function, SpanOfInputsGetsAGradientEach) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 12; ++i) inputs.push_back(make({1.0 * i}, i % 2 == 0));
  Tensor result = SumAll::apply(inputs);
  EXPECT_EQ(values(result), Values{66});
  result.backward();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(inputs[i].grad().defined(), i % 2 == 0);
  EXPECT_EQ(values(inputs[4].grad()), Values{1});
}

TEST(Function, VectorOfOutputsWithOneNotDifferentiable) {
  Tensor x = make({1, 2}, true);
  std::vector<Tensor> copies = Split::apply(x, std::size_t{4});
  EXPECT_FALSE(copies[3].requires_grad());
  sum(add(copies[0], add(copies[1], copies[2]))).backward();
  EXPECT_EQ(values(x.grad()), (Values{3, 3}));
}

TEST(Function, IntegerOutputsHaveNoGradient) {
  Tensor x = make({1, 2}, true);
  auto [y, indices] = WithIndices::apply(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(indices.requires_grad());
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 2}));
}

TEST(Function, UndefinedInputIsAllowed) {
  Tensor x = make({1, 2}, true);
  Tensor bias = make({1, 1}, true);
  sum(OptionalBias::apply(x, Tensor())).backward();
  sum(OptionalBias::apply(x, bias)).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 2}));
  EXPECT_EQ(values(bias.grad()), (Values{1, 1}));
}

TEST(Function, RecordsOnlyIfAnInputRequiresGradAndGradientsAreEnabled) {
  bool recording = false;
  Tensor x = make({1}, true);
  EXPECT_TRUE(Recorded::apply(x, recording).requires_grad());
  EXPECT_TRUE(recording);
  EXPECT_FALSE(Recorded::apply(make({1}), recording).requires_grad());
  EXPECT_FALSE(recording);
  autograd::no_grad([&] { EXPECT_FALSE(Recorded::apply(x, recording).requires_grad()); });
  EXPECT_FALSE(recording);
  autograd::NoGradGuard outer;
  autograd::EnableGradGuard inner;
  Recorded::apply(x, recording).backward();
  EXPECT_TRUE(recording);
}

TEST(Function, InputReturnedAsItIsKeepsItsOwnHistory) {
  Tensor x = make({3}, true);
  Tensor y = Identity::apply(x);
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_TRUE(y.shares_storage(x));
  y.backward();
  EXPECT_EQ(values(x.grad()), Values{1});
}

TEST(Function, WrongGradientShapeNamesTheOperation) {
  Tensor x = make({1, 2}, true);
  const std::string text = message_of<AutogradError>([&] { sum(WrongShape::apply(x)).backward(); });
  EXPECT_CONTAINS(text, "WrongShape: the gradient of input 0 is float64 [7]");
  EXPECT_CONTAINS(text, "wanted float64 [2]");
}

TEST(Function, WrongGradientDTypeNamesTheOperation) {
  Tensor x = make({1, 2}, true);
  const std::string text = message_of<AutogradError>([&] { sum(WrongDType::apply(x)).backward(); });
  EXPECT_CONTAINS(text, "WrongDType: the gradient of input 0 is float32 [2]");
}

TEST(Function, WrongNumberOfGradientsNamesTheOperation) {
  Tensor x = make({1, 2}, true);
  const std::string text = message_of<AutogradError>([&] { sum(TooFewGradients::apply(x, x)).backward(); });
  EXPECT_CONTAINS(text, "TooFewGradients: backward returned 1 gradients, wanted 2");
}

TEST(Function, ExceptionOfABackwardPassesThroughAndLeavesTheThreadUsable) {
  Tensor x = make({1, 2}, true);
  bool called = false;
  Tensor y = sum(ThrowsInBackward::apply(x));
  auto handle = autograd::register_hook(y, [&](const Tensor&) {
    autograd::queue_callback([&] { called = true; });
    return Tensor();
  });
  EXPECT_EQ(message_of<std::runtime_error>([&] { y.backward(); }), "out of coffee");
  EXPECT_FALSE(autograd::in_backward());
  EXPECT_TRUE(autograd::grad_enabled());
  EXPECT_FALSE(x.grad().defined());
  sum(mul(x, x)).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 4}));
  EXPECT_FALSE(called) << "a callback of the failed backward ran in a later one";
}

// Calls what its argument says, in forward or in backward.
struct Calls : autograd::Function<Calls> {
  using Action = std::function<void(Context&)>;
  struct State {
    Action backward;
  };
  static Tensor forward(Context& ctx, const Tensor& a, const Action& in_forward, const Action& in_backward) {
    ctx.state().backward = in_backward;
    if (in_forward) in_forward(ctx);
    return a.defined() ? scale(a, 1) : make({1});
  }
  static Tensor backward(Context& ctx, const Tensor& grad) {
    ctx.state().backward(ctx);
    return grad;
  }
};
std::string forward_error(const Calls::Action& action, const Tensor& input) {
  return message_of<AutogradError>([&] { Calls::apply(input, action, Calls::Action()); });
}
std::string backward_error(const Calls::Action& action) {
  Tensor x = make({1}, true);
  return message_of<AutogradError>([&] { Calls::apply(x, Calls::Action(), action).backward(); });
}

TEST(Function, InputThatDoesNotExistIsRefused) {
  for (const bool recorded : {false, true}) {
    const Tensor x = make({1}, recorded);
    EXPECT_EQ(forward_error([](auto& ctx) { ctx.needs_input_grad(0); }, x), "");
    EXPECT_EQ(forward_error([](auto& ctx) { ctx.needs_input_grad(1); }, x),
              "Calls: needs_input_grad(1) of 1 differentiable inputs");
    EXPECT_EQ(forward_error([](auto& ctx) { ctx.mark_dirty(1); }, x),
              "Calls: mark_dirty(1) of 1 differentiable inputs");
    EXPECT_EQ(forward_error([](auto& ctx) { ctx.mark_non_differentiable(0, 64); }, x),
              "Calls: mark_non_differentiable(64); it takes outputs below 64");
  }
  EXPECT_EQ(forward_error([](auto& ctx) { ctx.mark_dirty(0); }, Tensor()),
            "Calls: mark_dirty(0) of an undefined tensor; it has no memory to modify");
}

TEST(Function, MemberOfTheOtherPhaseIsRefused) {
  for (const bool recorded : {false, true}) {
    const Tensor x = make({1}, recorded);
    EXPECT_EQ(forward_error([](auto& ctx) { ctx.saved(0); }, x),
              "Calls: saved is called outside of backward");
    EXPECT_EQ(forward_error([](auto& ctx) { ctx.grad_destination(0); }, x),
              "Calls: grad_destination is called outside of backward");
  }
  EXPECT_EQ(backward_error([](auto& ctx) { ctx.save(make({1})); }),
            "Calls: save is called outside of forward");
  EXPECT_EQ(backward_error([](auto& ctx) { ctx.mark_dirty(0); }),
            "Calls: mark_dirty is called outside of forward");
  EXPECT_EQ(backward_error([](auto& ctx) { ctx.mark_non_differentiable(0); }),
            "Calls: mark_non_differentiable is called outside of forward");
}

TEST(Function, SavedOutputDoesNotKeepItsNodeAlive) {
  const std::int64_t before = memory_stats().allocated_bytes;
  {
    Tensor x = make({1, 2}, true);
    Tensor y = exp(exp(x));
    EXPECT_GT(memory_stats().allocated_bytes, before);
  }
  EXPECT_EQ(memory_stats().allocated_bytes, before);
}

TEST(Function, SavedTensorsAreFreedByBackward) {
  Tensor x = make({1, 2}, true);
  Tensor loss = sum(exp(exp(x)));
  const std::int64_t before = memory_stats().allocated_bytes;
  loss.backward();
  // Two saved outputs went, the gradient came.
  EXPECT_LT(memory_stats().allocated_bytes, before);
}

}  // namespace
}  // namespace tutti
