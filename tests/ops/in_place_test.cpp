// SPDX-License-Identifier: Apache-2.0
// In-place ops: what they write, what autograd makes of them, and what they refuse.
#include <gtest/gtest.h>

#include <vector>

#include "support/errors.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using tutti::testing::expect_error;
using Values = std::vector<double>;

Values values(const Tensor& tensor) { return tensor.to_vector<double>(); }
Tensor make(std::initializer_list<double> numbers, bool requires_grad = false) {
  Tensor result = tensor(numbers, DType::kFloat64);
  if (requires_grad) result.requires_grad_();
  return result;
}

TEST(InPlaceOps, WriteTheirFirstOperand) {
  Tensor x = make({1, -2, 3});
  const Tensor same = x;
  EXPECT_EQ(values(x.add_(make({1, 1, 1}), 2)), (Values{3, 0, 5}));
  EXPECT_EQ(values(x.sub_(make({1, 1, 1}))), (Values{2, -1, 4}));
  EXPECT_EQ(values(x.mul_(make({2, 2, 2}))), (Values{4, -2, 8}));
  EXPECT_EQ(values(x.div_(make({2, 4, 8}))), (Values{2, -0.5, 1}));
  EXPECT_EQ(values(x.relu_()), (Values{2, 0, 1}));
  EXPECT_EQ(values(x.add_(1.0)), (Values{3, 1, 2}));
  EXPECT_EQ(values(x.mul_(3.0)), (Values{9, 3, 6}));
  EXPECT_EQ(values(x.div_(3.0)), (Values{3, 1, 2}));
  EXPECT_EQ(values(x.copy_(make({7}))), (Values{7, 7, 7}));
  EXPECT_EQ(values(x.fill_(5)), (Values{5, 5, 5}));
  EXPECT_EQ(values(x.zero_()), (Values{0, 0, 0}));
  EXPECT_TRUE(x.is_same(same));
  EXPECT_EQ(x.version(), 11U) << "each write counts once";
}

TEST(InPlaceOps, AssigningOperatorsWriteThroughEveryHandle) {
  Tensor x = make({1, -2, 3});
  const Tensor same = x;
  EXPECT_EQ(values(x += make({1, 1, 5})), (Values{2, -1, 8}));
  EXPECT_EQ(values(x -= make({1, 1, 2})), (Values{1, -2, 6}));
  EXPECT_EQ(values(x *= make({2, 3, 4})), (Values{2, -6, 24}));
  EXPECT_EQ(values(x /= make({2, 4, 8})), (Values{1, -1.5, 3}));
  EXPECT_EQ(values(x += 3.0), (Values{4, 1.5, 6}));
  EXPECT_EQ(values(x -= 1), (Values{3, 0.5, 5}));
  EXPECT_EQ(values(x *= 4), (Values{12, 2, 20}));
  EXPECT_EQ(values(x /= 2), (Values{6, 1, 10}));
  EXPECT_TRUE(x.is_same(same));
  EXPECT_EQ(x.version(), 8U) << "each write counts once";
  EXPECT_TRUE((x += x).is_same(x));
  EXPECT_EQ(values(x), (Values{12, 2, 20}));
  x[1] -= 7;  // a view
  x.slice(0, 1) *= make({2, 3});
  EXPECT_EQ(values(x), (Values{12, -10, 60}));
}

TEST(InPlaceOps, AssigningOperatorsFollowTheRulesOfTheirMembers) {
  Tensor a = make({1, 2}, true), b = make({3, 5}, true);
  Tensor h = a * 1.0;
  h *= b;
  h += b;
  h /= b;  // a + 1
  h -= a;  // 1
  h *= 2;
  h += 3;
  h -= 1;
  h /= 4;
  h.sum().backward();
  EXPECT_EQ(values(h.detach()), (Values{1, 1}));
  EXPECT_EQ(values(a.grad()), (Values{0, 0}));
  expect_error<AutogradError>([&] { a += b; }, "a leaf that requires grad is modified in place");
  expect_error<AutogradError>([&] { a *= 2; }, "a leaf that requires grad is modified in place");
  autograd::no_grad([&] { a -= 0.5; });
  EXPECT_EQ(values(a.detach()), (Values{0.5, 1.5}));
  Tensor counts = ones({2}, DType::kInt64);
  expect_error<DTypeError>([&] { counts += 0.5; },
                           "add_: a result of float32 cannot be stored in a tensor of int64");
  expect_error<DTypeError>([&] { counts -= 0.5; },
                           "sub_: a result of float32 cannot be stored in a tensor of int64");
  expect_error<DTypeError>([&] { counts *= 0.5; },
                           "mul_: a result of float32 cannot be stored in a tensor of int64");
  expect_error<DTypeError>([&] { counts /= 2; },
                           "div_: a result of float32 cannot be stored in a tensor of int64");
  expect_error<ShapeError>([&] { counts += ones({3}, DType::kInt64); }, "[2]");
  EXPECT_EQ(counts.version(), 0U);
}

TEST(InPlaceOps, KeepTheirDTypeAndRefuseAHigherKind) {
  Tensor half = ones({2}, DType::kFloat16);
  half.add_(make({0.5, 0.25}));  // computed in float64
  EXPECT_EQ(half.dtype(), DType::kFloat16);
  EXPECT_EQ(values(half), (Values{1.5, 1.25}));
  Tensor count = ones({2}, DType::kInt32);
  count.add_(2);
  count.mul_(full({2}, 3, DType::kInt64));
  EXPECT_EQ(count.dtype(), DType::kInt32);
  EXPECT_EQ(values(count), (Values{9, 9}));
  expect_error<DTypeError>([&] { count.mul_(0.5); },
                           "mul_: a result of float32 cannot be stored in a tensor of int32");
  expect_error<DTypeError>([&] { count.div_(2); },
                           "div_: a result of float32 cannot be stored in a tensor of int32");
  expect_error<DTypeError>([&] { count.add_(make({1, 1})); }, "add_: a result of float64 cannot be stored");
  expect_error<DTypeError>([&] { count.sub_(make({1, 1})); }, "sub_: a result of float64 cannot be stored");
  expect_error<DTypeError>([&] { count.pow_(make({1, 1})); }, "pow_: a result of float64 cannot be stored");
  EXPECT_EQ(values(count), (Values{9, 9})) << "refused before the write";
  EXPECT_EQ(values(count.pow_(full({2}, 2, DType::kInt64))), (Values{81, 81}));
}

TEST(InPlaceOps, BroadcastTheOtherOperandOnly) {
  Tensor x = ones({2, 3});
  x.add_(tensor({1, 2, 3}));
  EXPECT_EQ(values(x), (Values{2, 3, 4, 2, 3, 4}));
  Tensor row = ones({3});
  expect_error<ShapeError>([&] { row.add_(x); },
                           "add: the result of shape [2, 3] does not fit into a tensor of shape [3]");
  expect_error<ShapeError>([&] { x.mul_(ones({2})); }, "[2, 3] and [2]");
  expect_error<ShapeError>([&] { row.copy_(x); }, "copy: shape [2, 3] does not broadcast to [3]");
}

TEST(InPlaceOps, GradientsFlowThroughEachOfThem) {
  Tensor a = make({1, 2}, true), b = make({3, 5}, true);
  Tensor h = a * 1.0;
  h.mul_(b);     // a b
  h.add_(b, 2);  // a b + 2 b
  h.div_(b);     // a + 2
  h.mul_(4.0);
  h.sub_(a);  // 4 (a + 2) - a
  h.sum().backward();
  EXPECT_EQ(values(h.detach()), (Values{11, 14}));
  EXPECT_EQ(values(a.grad()), (Values{3, 3}));
  EXPECT_NEAR(values(b.grad())[0], 0, 1e-15);
  EXPECT_NEAR(values(b.grad())[1], 0, 1e-15);
}

TEST(InPlaceOps, OverwritingCutsTheGradient) {
  Tensor a = make({-1, 2}, true), b = make({3, 4}, true);
  Tensor h = a * 2.0;
  h.relu_();
  h.sum().backward();
  EXPECT_EQ(values(a.grad()), (Values{0, 2}));
  a.set_grad({});
  h = a * 2.0;
  h.copy_(b);
  h.sum().backward();
  EXPECT_EQ(values(a.grad()), (Values{0, 0}));
  EXPECT_EQ(values(b.grad()), (Values{1, 1}));
}

TEST(InPlaceOps, SavedTensorThatWasWrittenIsNamedWithTheOp) {
  Tensor x = make({1, 2}, true);
  Tensor h = exp(x);
  const Tensor loss = h.sum();
  h.mul_(2.0);
  expect_error<AutogradError>([&] { loss.backward(); },
                              "Exp: saved tensor 0 (float64 [2]) was modified in place: version 1, wanted 0");
  Tensor weight = make({1, 2}, true);
  const Tensor product = (weight * x).sum();
  autograd::no_grad([&] { weight.add_(1.0); });
  expect_error<AutogradError>([&] { product.backward(); },
                              "Mul: saved tensor 0 (float64 [2]) was modified in place");
}

TEST(InPlaceOps, LeafAndViewOfAGraphAreRefusedBeforeTheWrite) {
  Tensor x = make({1, 2}, true);
  expect_error<AutogradError>([&] { x.add_(1.0); },
                              "a leaf that requires grad is modified in place by AddScalarInPlace");
  expect_error<AutogradError>([&] { x.zero_(); },
                              "a leaf that requires grad is modified in place by FillInPlace");
  Tensor h = x * 2.0;
  Tensor row = h.narrow(0, 0, 1);
  expect_error<AutogradError>([&] { row.mul_(2.0); }, "a view");
  EXPECT_EQ(values(x.detach()), (Values{1, 2}));
  EXPECT_EQ(values(h.detach()), (Values{2, 4}));
  autograd::no_grad([&] { x.add_(1.0); });
  EXPECT_EQ(values(x.detach()), (Values{2, 3}));
}

TEST(InPlaceOps, RefusedWritesCountNoVersion) {
  Tensor counts = ones({2}, DType::kInt64);
  expect_error<DTypeError>([&] { counts.add_(0.5); }, "cannot be stored in a tensor of int64");
  expect_error<DTypeError>([&] { counts.add_(counts, 0.5); }, "add: alpha = 0.5 is no factor for int64");
  expect_error<DTypeError>([&] { counts.div_(counts); }, "cannot be stored in a tensor of int64");
  expect_error<ShapeError>([&] { counts.mul_(ones({3}, DType::kInt64)); }, "[2]");
  expect_error<ShapeError>([&] { counts.copy_(ones({3}, DType::kInt64)); }, "[2]");
  expect_error<ValueError>([&] { counts.fill_(1e30); }, "1e+30");
  EXPECT_EQ(counts.version(), 0U);
  Tensor flags = ones({2}, DType::kBool);
  expect_error<DTypeError>([&] { flags.sub_(flags); }, "sub_: bool has no difference; use ne()");
  EXPECT_EQ(flags.version(), 0U);
}

TEST(InPlaceOps, ViewWritesItsBase) {
  Tensor x = zeros({3, 4});
  x.select(0, 1).fill_(2);
  x.slice(1, 0, 4, 2).add_(1.0);
  x.t().select(0, 3).mul_(10.0);
  EXPECT_EQ(values(x), (Values{1, 0, 1, 0, 3, 2, 3, 20, 1, 0, 1, 0}));
  EXPECT_EQ(x.version(), 3U);
}

TEST(InPlaceOps, OperandThatOverlapsTheResultElsewhereIsRefused) {
  Tensor x = arange(0.0, 9.0).view({3, 3});
  expect_error<ShapeError>([&] { x.add_(x.t()); },
                           "add: the tensor written in place and an operand overlap in memory");
  expect_error<ShapeError>([&] { x.mul_(x[1]); },
                           "mul: the tensor written in place and an operand overlap in memory");
  expect_error<ShapeError>([&] { x.narrow(0, 0, 2).add_(x.narrow(0, 1, 2)); }, "overlap in memory");
  expect_error<ShapeError>(
      [&] {
        ones({1, 3}).expand({2, 3}).add_(1.0);
      },
      "add: elements of the tensor to be written share memory");
  EXPECT_EQ(values(x), values(arange(0.0, 9.0)));
  x.add_(x);  // the same elements at the same places
  EXPECT_EQ(values(x), values(arange(0.0, 18.0, 2.0)));
  x.slice(1, 0, 3, 2).copy_(x.slice(1, 1, 2));  // interleaved, nothing in common
  x.slice(1, 0, 1).add_(x.slice(1, 1, 2));
  EXPECT_EQ(values(x.select(1, 0)), (Values{4, 16, 28}));
}

TEST(InPlaceOps, ZeroDimAndEmptyTensors) {
  Tensor scalar = full({}, 2.0);
  scalar.mul_(3.0);
  scalar.add_(scalar);
  EXPECT_EQ(scalar.item(), 12);
  expect_error<ShapeError>([&] { scalar.add_(ones({2})); }, "does not fit into a tensor of shape []");
  Tensor nothing = zeros({0, 3});
  nothing.add_(ones({3})).mul_(2.0).relu_();
  EXPECT_EQ(nothing.numel(), 0);
  EXPECT_EQ(nothing.version(), 3U);
}

TEST(Layout, ChannelsLastStaysThroughOps) {
  const Tensor x = randn({2, 3, 5, 4}).contiguous(MemoryFormat::kChannelsLast);
  const Tensor weight = randn({6, 3, 3, 3});
  const auto expect_channels_last = [](const Tensor& y, const char* what) {
    EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast)) << what;
  };
  expect_channels_last(relu(x), "relu");
  expect_channels_last(x + 1.0, "scalar");
  expect_channels_last(x * x, "binary");
  expect_channels_last(x + randn({3, 1, 1}), "broadcast");
  expect_channels_last(lt(x, 0.0), "comparison");
  expect_channels_last(conv2d(x, weight, {}, {.padding = 1}), "conv2d");
  expect_channels_last(max_pool2d(x, {.kernel_size = 2}), "max_pool2d");
  expect_channels_last(avg_pool2d(x, {.kernel_size = 2}), "avg_pool2d");
  expect_channels_last(batch_norm(x, zeros({3}), ones({3})), "batch_norm");
  expect_channels_last(dropout(x, 0.5), "dropout");
  expect_channels_last(x.clone(), "clone");
  expect_channels_last(x.to(DType::kBFloat16), "to");
  const Tensor leaf = x.clone().requires_grad_();
  max_pool2d(relu(conv2d(leaf, weight)), {.kernel_size = 2}).sum().backward();
  expect_channels_last(leaf.grad(), "gradient");
}

}  // namespace
}  // namespace tutti
