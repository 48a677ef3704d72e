// SPDX-License-Identifier: Apache-2.0
// Saved-tensor hooks, checkpoint, anomaly mode, gradcheck.
#include <limits>

#include "autograd/small_ops.hpp"
#include "tutti/core/random.hpp"

namespace tutti {
namespace {

using namespace small_ops;

// Multiplies by random bits of the default generator, as dropout does.
struct RandomMask : autograd::Function<RandomMask> {
  static Tensor forward(Context& ctx, const Tensor& a) {
    Tensor mask = map(a, [](double) { return static_cast<double>(default_generator().next_below(1000)); });
    ctx.save(mask);
    return multiply(a, mask);
  }
  static Tensor backward(Context& ctx, const Tensor& grad) { return multiply(grad, ctx.saved(0)); }
};
struct WrongBackward : autograd::Function<WrongBackward> {  // y = x^2, dy/dx = 2x; wrong in element 1
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save(x);
    return multiply(x, x);
  }
  static Tensor backward(Context& ctx, const Tensor& grad) {
    Tensor result = multiply(scale(ctx.saved(0), 2), grad);
    result.data<double>()[1] *= 1.01;
    return result;
  }
};

TEST(SavedTensorsHooks, PackAndUnpackSeeEachSavedTensor) {
  Tensor x = make({2, 3}, true);
  int packed = 0;
  int unpacked = 0;
  Tensor y;
  {
    autograd::SavedTensorsHooksGuard guard(
        [&](const Tensor& tensor) {
          ++packed;
          return std::make_shared<Values>(values(tensor));
        },
        [&](const std::shared_ptr<void>& data) {
          ++unpacked;
          return tensor(*static_cast<Values*>(data.get()));
        });
    y = sum(mul(x, x));
  }
  Tensor outside = sum(mul(x, x));
  y.backward();
  outside.backward();
  EXPECT_EQ(packed, 2);
  EXPECT_EQ(unpacked, 2);
  EXPECT_EQ(values(x.grad()), (Values{8, 12}));
}

TEST(SavedTensorsHooks, EmptyHookIsRefused) {
  const auto pack = [](const Tensor&) { return std::make_shared<int>(); };
  EXPECT_CONTAINS(message_of<ValueError>([] { autograd::SavedTensorsHooksGuard(nullptr, nullptr); }),
                  "SavedTensorsHooksGuard: the pack hook is empty");
  EXPECT_CONTAINS(message_of<ValueError>([&] { autograd::SavedTensorsHooksGuard(pack, nullptr); }),
                  "SavedTensorsHooksGuard: the unpack hook is empty");
}

TEST(SavedTensorsHooks, UnpackOfAnotherShapeIsAnError) {
  Tensor x = make({2, 3}, true);
  autograd::SavedTensorsHooksGuard guard([](const Tensor&) { return std::shared_ptr<void>(); },
                                         [](const std::shared_ptr<void>&) { return make({1}); });
  Tensor y = sum(exp(x));
  EXPECT_CONTAINS(message_of<AutogradError>([&] { y.backward(); }),
                  "Exp: the unpack hook of saved tensor 0 gave float64 [1]");
}

// Saves what it writes: the result, or what was there before, which a hook may copy in time.
template <bool kResult>
struct SquareInPlace : autograd::Function<SquareInPlace<kResult>> {
  using Context = autograd::Context<SquareInPlace>;
  static Tensor forward(Context& ctx, const Tensor& a) {
    if (!kResult) ctx.save(a);
    ctx.mark_dirty(0);
    for (std::int64_t i = 0; i < a.numel(); ++i) a.data<double>()[i] *= a.data<double>()[i];
    if (kResult) ctx.save(a);
    return a;
  }
  static Tensor backward(Context&, const Tensor& grad) { return grad; }
};

TEST(SavedTensorsHooks, HookThatKeepsATensorWrittenInPlaceMakesNoCycle) {
  const std::int64_t before = memory_stats().allocated_bytes;
  {
    Tensor x = make({2, 3}, true);
    autograd::SavedTensorsHooksGuard guard(
        [](const Tensor& tensor) { return std::make_shared<Tensor>(tensor); },
        [](const std::shared_ptr<void>& data) { return *static_cast<Tensor*>(data.get()); });
    Tensor result = scale(x, 1);
    SquareInPlace<true>::apply(result);
    Tensor before_the_write = scale(x, 1);
    SquareInPlace<false>::apply(before_the_write);
    Tensor written_later = scale(x, 1);
    AddInPlace::apply(written_later, mul(written_later, x));
  }
  EXPECT_EQ(memory_stats().allocated_bytes, before);
}

TEST(SavedTensorsHooks, PackSeesALeafItself) {
  Tensor x = make({2}, true);
  std::vector<Tensor> seen;
  autograd::SavedTensorsHooksGuard guard(
      [&](const Tensor& tensor) {
        seen.push_back(tensor);
        return std::shared_ptr<void>();
      },
      [](const std::shared_ptr<void>&) { return Tensor(); });
  Tensor h = scale(x, 3);
  mul(x, h);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].is_same(x));
  EXPECT_FALSE(seen[1].requires_grad());
  EXPECT_EQ(seen[1].data<double>(), h.data<double>());
}

struct CheckpointRun {
  Values x_grad;
  Values weight_grad;
  int hook_calls = 0;
};

// The same block twice, with a parameter that it captures.
CheckpointRun run_blocks(bool checkpointed) {
  manual_seed(7);
  CheckpointRun run;
  Tensor x = make({1, 2, 3}, true);
  Tensor weight = make({2, 1, 0.5}, true);
  auto handle =
      autograd::register_post_accumulate_grad_hook(weight, [&](const Tensor&) { ++run.hook_calls; });
  auto block = [&](const Tensor& a) { return scale(mul(RandomMask::apply(mul(a, a)), weight), 1e-3); };
  Tensor h = checkpointed ? autograd::checkpoint(block, x) : block(x);
  h = checkpointed ? autograd::checkpoint(block, h) : block(h);
  default_generator().next_u32();
  sum(h).backward();
  run.x_grad = values(x.grad());
  run.weight_grad = values(weight.grad());
  return run;
}

TEST(Checkpoint, GivesTheSameBitsAndHooksAsWithout) {
  const CheckpointRun without = run_blocks(false);
  const CheckpointRun with = run_blocks(true);
  EXPECT_EQ(with.x_grad, without.x_grad);
  EXPECT_EQ(with.weight_grad, without.weight_grad);
  EXPECT_EQ(with.hook_calls, 1);
  EXPECT_EQ(without.hook_calls, 1);
}

TEST(Checkpoint, LeavesTheGeneratorAsItWas) {
  Tensor x = make({1, 2}, true);
  Tensor y = autograd::checkpoint([](const Tensor& a) { return sum(RandomMask::apply(a)); }, x);
  const std::uint64_t offset = default_generator().state().offset;
  y.backward();
  EXPECT_EQ(default_generator().state().offset, offset);
}

TEST(Checkpoint, CapturedParameterGetsItsGradientEvenIfNoInputRequiresOne) {
  Tensor x = make({1, 2});
  Tensor weight = make({3, 4}, true);
  sum(autograd::checkpoint([&](const Tensor& a) { return mul(exp(a), weight); }, x)).backward();
  EXPECT_DOUBLE_EQ(values(weight.grad())[1], std::exp(2.0));
}

TEST(Checkpoint, SavesOnlyItsInputs) {
  Tensor x = empty({1000}, DType::kFloat64);
  raw::fill(x, 0.5);
  x.requires_grad_();
  auto block = [](const Tensor& a) { return exp(exp(exp(exp(a)))); };
  const std::int64_t before = memory_stats().allocated_bytes;
  Tensor y = autograd::checkpoint(block, x);
  EXPECT_LT(memory_stats().allocated_bytes - before, 2 * 8000) << "more than the output is alive";
  int runs = 0;
  Tensor z = sum(autograd::checkpoint(
      [&](const Tensor& a) {
        ++runs;
        return block(a);
      },
      x));
  z.backward();
  EXPECT_EQ(runs, 2);
}

TEST(Checkpoint, NestsAndReturnsSeveralTensors) {
  Tensor x = make({0.5}, true);
  auto inner = [](const Tensor& a) { return exp(exp(a)); };
  auto [two, three] = autograd::checkpoint(
      [&](const Tensor& a) { return TwoAndThree::apply(autograd::checkpoint(inner, a)); }, x);
  add(two, three).backward();
  const double e = std::exp(0.5);
  EXPECT_DOUBLE_EQ(values(x.grad())[0], 5 * std::exp(e) * e);
}

TEST(Checkpoint, EmptyFunctionIsRefused) {
  const Tensor x = make({1, 2}, true);
  const std::function<Tensor(const Tensor&)> empty;
  Tensor (*const null)(const Tensor&) = nullptr;
  EXPECT_CONTAINS(message_of<ValueError>([&] { autograd::checkpoint(empty, x); }),
                  "checkpoint: the function is empty");
  EXPECT_CONTAINS(message_of<ValueError>([&] { autograd::checkpoint(null, x); }),
                  "checkpoint: the function is empty");
  const autograd::NoGradGuard guard;
  EXPECT_CONTAINS(message_of<ValueError>([&] { autograd::checkpoint(empty, x); }),
                  "checkpoint: the function is empty");
}

TEST(Checkpoint, FunctionThatDoesSomethingElseTheSecondTimeIsAnError) {
  Tensor x = make({1, 2}, true);
  int calls = 0;
  auto more = [&](const Tensor& a) { return ++calls == 1 ? exp(a) : exp(exp(a)); };
  EXPECT_CONTAINS(message_of<AutogradError>([&] { sum(autograd::checkpoint(more, x)).backward(); }),
                  "saves more tensors");
  calls = 0;
  auto fewer = [&](const Tensor& a) { return ++calls == 1 ? exp(exp(a)) : exp(a); };
  EXPECT_CONTAINS(message_of<AutogradError>([&] { sum(autograd::checkpoint(fewer, x)).backward(); }),
                  "saves fewer tensors");
}

TEST(Checkpoint, InputModifiedInPlaceIsAnError) {
  Tensor x = make({1, 2});
  Tensor weight = make({1, 2}, true);
  Tensor y = sum(autograd::checkpoint([&](const Tensor& a) { return mul(a, weight); }, x));
  ScaleInPlace::apply(x, 2.0);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { y.backward(); }),
                  "checkpoint: input 0 (float64 [2]) was modified in place");
}

TEST(Checkpoint, ParameterModifiedBeforeBackwardIsAnError) {
  Tensor x = make({1, 2}, true);
  Tensor weight = make({1, 2}, true);
  Tensor y = sum(autograd::checkpoint([&](const Tensor& a) { return mul(a, weight); }, x));
  autograd::no_grad([&] { ScaleInPlace::apply(weight, 2.0); });
  EXPECT_CONTAINS(message_of<AutogradError>([&] { y.backward(); }),
                  "checkpoint: saved tensor 1 (float64 [2]) was modified");
}

TEST(Anomaly, ForwardNaNNamesTheOperation) {
  autograd::AnomalyGuard guard;
  Tensor x = make({-1, 2}, true);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { exp(Sqrt::apply(x)); }),
                  "anomaly: forward of Sqrt made NaN in output 0 (float64 [2])");
}

TEST(Anomaly, BackwardNaNNamesTheOperationThatMadeItFirst) {
  Tensor x = make({0, 2}, true);
  Tensor y = sum(scale(Sqrt::apply(mul(x, x)), 0.0));  // 0 * (0 / 0)
  EXPECT_CONTAINS(message_of<AutogradError>([&] {
                    autograd::AnomalyGuard guard;
                    y.backward();
                  }),
                  "anomaly: backward of Sqrt made NaN in the gradient of input 0");
}

TEST(Anomaly, NaNThatAnOperationWasGivenIsNotItsOwn) {
  autograd::AnomalyGuard guard;
  Tensor x = make({std::numeric_limits<double>::quiet_NaN(), 2}, true);
  EXPECT_CONTAINS(message_of<AutogradError>([&] {
                    mul(make({1, 1}), x);
                  }),
                  "anomaly: forward of Mul was given NaN in input 1 (float64 [2])");
}

struct NanBackward : autograd::Function<NanBackward> {
  static Tensor forward(Context&, const Tensor& x) { return scale(x, 1.0); }
  static Tensor backward(Context&, const Tensor& grad) { return Sqrt::apply(scale(grad, -1.0)); }
};
TEST(Anomaly, AnOperationInsideABackwardIsNamedWithIt) {
  Tensor x = make({1, 2}, true);
  Tensor y = sum(NanBackward::apply(x));
  EXPECT_CONTAINS(
      message_of<AutogradError>([&] {
        autograd::AnomalyGuard guard;
        y.backward();
      }),
      "anomaly: forward of Sqrt made NaN in output 0 (float64 [2]), in the backward of NanBackward");
}

TEST(Anomaly, OffByDefaultAndAfterTheGuard) {
  { autograd::AnomalyGuard guard; }
  Tensor x = make({-1}, true);
  EXPECT_TRUE(std::isnan(values(Sqrt::apply(x))[0]));
}

TEST(Gradcheck, PassesARightBackward) {
  const Tensor inputs[] = {make({0.3, -0.7, 1.1}, true), make({2, 3, 4}, true), make({1, 1, 1})};
  const autograd::GradcheckResult result = autograd::gradcheck(
      [](std::span<const Tensor> in) { return mul(exp(mul(in[0], in[1])), in[2]); }, inputs);
  EXPECT_LT(result.deviation, 1e-4);
  EXPECT_FALSE(inputs[0].grad().defined());
}

TEST(Gradcheck, CatchesAWrongBackwardAndSaysWhere) {
  const Tensor inputs[] = {make({1, 1, 1}), make({0.3, -0.7, 1.1}, true)};
  const std::string text = message_of<AutogradError>([&] {
    autograd::gradcheck([](std::span<const Tensor> in) { return WrongBackward::apply(in[1]); }, inputs);
  });
  EXPECT_CONTAINS(text, "gradcheck: input 1 (float64 [3]), element 1: backward gives -");
}

TEST(Gradcheck, NeedsFloat64) {
  const Tensor inputs[] = {ones({2}).requires_grad_()};
  EXPECT_CONTAINS(message_of<DTypeError>(
                      [&] { autograd::gradcheck([](std::span<const Tensor> in) { return in[0]; }, inputs); }),
                  "float64 inputs on the CPU, given float32 [2]");
}

}  // namespace
}  // namespace tutti
