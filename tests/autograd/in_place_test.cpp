// SPDX-License-Identifier: Apache-2.0
// Versions of saved tensors, in-place operations, views, inference mode.
#include "autograd/small_ops.hpp"

namespace tutti {
namespace {

using namespace small_ops;

TEST(InPlace, SavedTensorThatWasModifiedIsRefusedWithNames) {
  Tensor x = make({1, 2}, true);
  Tensor h = exp(x);
  Tensor y = sum(mul(h, x));
  ScaleInPlace::apply(h, 2.0);
  const std::string text = message_of<AutogradError>([&] { y.backward(); });
  EXPECT_CONTAINS(text, "Mul: saved tensor 0 (float64 [2]) was modified in place: version 1, wanted 0");
  EXPECT_CONTAINS(text, "made by ScaleInPlace");
}

TEST(InPlace, SavedOutputThatWasModifiedIsRefused) {
  Tensor x = make({1, 2}, true);
  Tensor h = exp(x);
  autograd::no_grad([&] { ScaleInPlace::apply(h, 2.0); });
  EXPECT_CONTAINS(message_of<AutogradError>([&] { sum(h).backward(); }), "Exp: saved tensor 0");
}

TEST(InPlace, ModificationTakesPartInTheGraph) {
  Tensor x = make({1, 2}, true);
  Tensor h = scale(x, 3);
  const Tensor same = h;
  ScaleInPlace::apply(h, 5.0);
  EXPECT_EQ(same.grad_fn_name(), "ScaleInPlace") << "all handles see the new history";
  sum(same).backward();
  EXPECT_EQ(values(x.grad()), (Values{15, 15}));
}

TEST(InPlace, TensorWithoutGradientBecomesPartOfTheGraph) {
  Tensor x = make({1, 2}, true);
  Tensor total = make({0, 0});
  AddInPlace::apply(total, x);
  AddInPlace::apply(total, x);
  sum(total).backward();
  EXPECT_EQ(values(x.grad()), (Values{2, 2}));
}

TEST(InPlace, LeafThatRequiresGradIsRefused) {
  Tensor x = make({1, 2}, true);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { ScaleInPlace::apply(x, 2.0); }),
                  "a leaf that requires grad is modified in place by ScaleInPlace");
  EXPECT_EQ(values(x), (Values{1, 2})) << "refused before the write";
  autograd::no_grad([&] { ScaleInPlace::apply(x, 2.0); });
  EXPECT_EQ(values(x), (Values{2, 4}));
  EXPECT_EQ(x.version(), 1U);
  EXPECT_TRUE(x.is_leaf());
}

TEST(InPlace, WithoutGradientsOnlyTheVersionCounts) {
  Tensor x = make({1});
  ScaleInPlace::apply(x, 2.0);
  EXPECT_EQ(x.version(), 1U);
  EXPECT_FALSE(x.requires_grad());
}

TEST(InPlace, ViewOfAGraphsTensorIsRefused) {
  Tensor x = make({1, 2}, true);
  Tensor h = scale(x, 1);
  Tensor view = Alias::apply(h);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { ScaleInPlace::apply(view, 2.0); }),
                  "a view of a tensor that is part of a graph");
  EXPECT_CONTAINS(message_of<AutogradError>([&] { ScaleInPlace::apply(Alias::apply(x), 2.0); }), "a view");
}

TEST(InPlace, ViewIsStaleOnceItsBaseHasANewHistory) {
  Tensor x = make({1, 2}, true);
  Tensor h = scale(x, 1);
  Tensor view = Alias::apply(Alias::apply(h));
  ScaleInPlace::apply(h, 2.0);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { sum(view); }),
                  "Sum: a view (float64 [2], made by Alias) is used after its base was modified in place by "
                  "ScaleInPlace");
  EXPECT_CONTAINS(
      message_of<AutogradError>([&] {
        view.backward(make({1, 1}));
      }),
      "backward: a view (float64 [2], made by Alias) is used after its base was modified in place by "
      "ScaleInPlace");
  sum(Alias::apply(h)).backward();  // a new view is right
  EXPECT_EQ(values(x.grad()), (Values{2, 2}));
}

TEST(InPlace, MemoryThatOthersSeeWithoutGradientIsRefused) {
  Tensor x = make({1, 2}, true);
  Tensor total = make({0, 0});
  Tensor row = raw::alias(total);
  EXPECT_CONTAINS(message_of<AutogradError>([&] { AddInPlace::apply(row, x); }),
                  "memory that other tensors see without one");
}

// Refuses where an operation checks its operands: behind mark_dirty, before the write.
struct RefusesInPlace : autograd::Function<RefusesInPlace> {
  static Tensor forward(Context& ctx, const Tensor& a) {
    ctx.mark_dirty(0);
    if (a.numel() > 1) throw ShapeError("RefusesInPlace: wanted one element");
    return a;
  }
  static Tensor backward(Context&, const Tensor& grad) { return grad; }
};

TEST(InPlace, RefusedWriteCountsNoVersion) {
  Tensor x = make({1, 2}, true);
  Tensor h = scale(x, 1);
  Tensor y = mul(h, h);
  const std::uint32_t before = h.version();
  EXPECT_CONTAINS(message_of<ShapeError>([&] { RefusesInPlace::apply(h); }), "wanted one element");
  EXPECT_EQ(h.version(), before);
  sum(y).backward();  // what was saved is as it was
  EXPECT_EQ(values(x.grad()), (Values{2, 4}));
  Tensor one = scale(make({3}, true), 1);
  RefusesInPlace::apply(one);
  EXPECT_EQ(one.version(), 1U);
  autograd::NoGradGuard no_grad;
  Tensor plain = make({3});
  RefusesInPlace::apply(plain);
  EXPECT_EQ(plain.version(), 1U);
}

// PyTorch 2.0 and later: the gradient of the tensor as it is, not as it was.
TEST(InPlace, RetainedGradientFollowsTheTensor) {
  Tensor x = make({3}, true);
  Tensor h = scale(x, 5);
  h.retain_grad();
  ScaleInPlace::apply(h, 2.0);
  mul(h, h).backward();
  EXPECT_EQ(values(h.grad()), Values{60});   // 2 h with h = 30
  EXPECT_EQ(values(x.grad()), Values{600});  // through both
}

TEST(InPlace, ResultSavedByItsOwnOperationIsNoCycle) {
  struct DoubleInPlace : autograd::Function<DoubleInPlace> {
    static Tensor forward(Context& ctx, const Tensor& a) {
      ctx.mark_dirty(0);
      for (std::int64_t i = 0; i < a.numel(); ++i) a.data<double>()[i] *= 2;
      ctx.save(a);
      return a;
    }
    static Tensor backward(Context& ctx, const Tensor& grad) {
      EXPECT_EQ(values(ctx.saved(0)), Values{6});
      return scale(grad, 2);
    }
  };
  const std::int64_t before = memory_stats().allocated_bytes;
  {
    Tensor x = make({3}, true);
    Tensor h = scale(x, 1);
    DoubleInPlace::apply(h).backward();
    EXPECT_EQ(values(x.grad()), Values{2});
    Tensor dropped = scale(x, 1);
    DoubleInPlace::apply(dropped);
  }
  EXPECT_EQ(memory_stats().allocated_bytes, before);
}

TEST(Inference, ResultsNeverEnterAGraph) {
  Tensor x = make({2}, true);
  Tensor y;
  {
    autograd::InferenceGuard guard;
    EXPECT_TRUE(autograd::inference_enabled());
    y = mul(x, x);
  }
  EXPECT_FALSE(autograd::inference_enabled());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_CONTAINS(message_of<AutogradError>([&] { mul(y, x); }),
                  "Mul: a result of inference mode (float64 [1]) can't be saved");
  EXPECT_CONTAINS(message_of<AutogradError>([&] { y.requires_grad_(); }), "inference mode");
}

TEST(Inference, ViewOfAnOrdinaryTensorStaysOrdinary) {
  Tensor x = make({2}, true);
  Tensor view;
  {
    autograd::InferenceGuard guard;
    view = Alias::apply(x);
  }
  mul(view, x).backward();
  EXPECT_EQ(values(x.grad()), Values{2});
}

}  // namespace
}  // namespace tutti
