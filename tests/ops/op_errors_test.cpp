// SPDX-License-Identifier: Apache-2.0
// What each op says about shapes, dtypes, indices and numbers that it can't take. Devices: device_errors_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using tutti::testing::error_of;
using tutti::testing::expect_error;

Tensor f32(const Dims& sizes) { return ones(sizes); }
Tensor i64(const Dims& sizes) { return ones(sizes, DType::kInt64); }

TEST(PointwiseErrors, ShapesThatDoNotBroadcastAreNamed) {
  const Tensor a = f32({2, 3}), b = f32({2, 4});
  expect_error<ShapeError>([&] { a + b; }, "add: shapes [2, 3] and [2, 4] do not broadcast");
  expect_error<ShapeError>([&] { a - b; }, "sub: shapes [2, 3] and [2, 4] do not broadcast");
  expect_error<ShapeError>([&] { a* b; }, "mul: shapes [2, 3] and [2, 4] do not broadcast");
  expect_error<ShapeError>([&] { a / b; }, "div: shapes [2, 3] and [2, 4] do not broadcast");
  expect_error<ShapeError>([&] { pow(a, b); }, "pow: shapes [2, 3] and [2, 4] do not broadcast");
  expect_error<ShapeError>([&] { lt(a, b); }, "lt: shapes [2, 3] and [2, 4] do not broadcast");
  expect_error<ShapeError>([&] { where(ones({5}, DType::kBool), a, a); }, "[2, 3]");
}

TEST(PointwiseErrors, DTypesThatHaveNoMeaningAreNamed) {
  const Tensor flags = ones({2}, DType::kBool);
  expect_error<DTypeError>([&] { neg(flags); }, "neg: bool has no negative; use logical_not");
  expect_error<DTypeError>([&] { relu(flags); }, "relu: bool is not a number");
  expect_error<DTypeError>([&] { gelu(i64({2})); }, "gelu: wanted a floating dtype, given int64");
  expect_error<DTypeError>([&] { where(f32({2}), f32({2}), f32({2})); },
                           "where: the condition must be bool, given float32");
  expect_error<DTypeError>([&] { add(i64({2}), i64({2}), 0.5); }, "add: alpha = 0.5 is no factor for int64");
  expect_error<DTypeError>([&] { add(flags, flags, 2); }, "add: alpha = 2 is no factor for bool");
  expect_error<ValueError>([&] { pow(i64({2}), -2); },
                           "pow: integers to a negative integer power (-2) are not integers");
}

TEST(PointwiseErrors, BoolHasNoDifference) {
  const Tensor flags = ones({2}, DType::kBool);
  Tensor written = ones({2}, DType::kBool);
  const std::string text = "bool has no difference; use ne() or logical_not()";
  expect_error<DTypeError>([&] { flags - flags; }, "sub: " + text);
  expect_error<DTypeError>([&] { flags - 1; }, "sub: " + text);
  expect_error<DTypeError>([&] { flags - true; }, "sub: " + text);
  expect_error<DTypeError>([&] { flags - 1.5; }, "sub: " + text);
  expect_error<DTypeError>([&] { 1 - flags; }, "sub: " + text);
  expect_error<DTypeError>([&] { 1.5 - flags; }, "sub: " + text);
  expect_error<DTypeError>([&] { written -= flags; }, "sub_: " + text);
  expect_error<DTypeError>([&] { written -= 1; }, "sub_: " + text);
  expect_error<DTypeError>([&] { written -= true; }, "sub_: " + text);
}

const std::map<std::string, Tensor (*)(const Tensor&, Scalar)> kComparisons = {
    {"eq", eq}, {"ne", ne}, {"lt", lt}, {"le", le}, {"gt", gt}, {"ge", ge}};
struct OutsideRange {
  DType dtype;
  Scalar number;
  std::string text;
};
const std::vector<OutsideRange> kOutsideRange = {
    {DType::kInt8, 1000, "int8 can't hold the value 1000"},
    {DType::kInt8, -129, "int8 can't hold the value -129"},
    {DType::kUInt8, 257, "uint8 can't hold the value 257"},
    {DType::kUInt8, -256, "uint8 can't hold the value -256"},
    {DType::kInt16, 32768, "int16 can't hold the value 32768"},
    {DType::kInt32, (std::int64_t{1} << 32U) + 1, "int32 can't hold the value 4294967297"},
    {DType::kInt64, std::numeric_limits<std::uint64_t>::max(),
     "int64 can't hold the value 18446744073709551615"}};

TEST(PointwiseErrors, ComparedNumberOutsideTheDTypesRangeIsNamed) {
  for (const auto& [name, compare] : kComparisons) {
    for (const OutsideRange& outside : kOutsideRange) {
      expect_error<ValueError>([&, op = compare] { op(ones({2}, outside.dtype), outside.number); },
                               name + ": " + outside.text);
    }
    expect_error<ValueError>([op = compare] { op(ones({2}, DType::kUInt8), -1); },
                             name + ": uint8 can't hold the value -1");
  }
}

TEST(PointwiseErrors, OperandOutsideTheResultsRangeIsNamed) {
  for (const OutsideRange& outside : kOutsideRange) {
    const Scalar number = outside.number;
    const Tensor x = ones({2}, outside.dtype);
    Tensor written = ones({2}, outside.dtype);
    expect_error<ValueError>([&] { x + number; }, "add: " + outside.text);
    expect_error<ValueError>([&] { x - number; }, "sub: " + outside.text);
    expect_error<ValueError>([&] { number - x; }, "sub: " + outside.text);
    expect_error<ValueError>([&] { x* number; }, "mul: " + outside.text);
    expect_error<ValueError>([&] { written += number; }, "add: " + outside.text);
    expect_error<ValueError>([&] { written -= number; }, "sub: " + outside.text);
    expect_error<ValueError>([&] { written *= number; }, "mul: " + outside.text);
    EXPECT_EQ(written.to_vector<double>(), x.to_vector<double>());
    if (number.to_double() < 0) continue;
    expect_error<ValueError>([&] { pow(x, number); }, "pow: " + outside.text);
    expect_error<ValueError>([&] { written.pow_(number); }, "pow_: " + outside.text);
  }
  const Tensor small = ones({2}, DType::kInt8);
  Tensor written = ones({2}, DType::kInt8);
  expect_error<ValueError>([&] { add(small, small, 1000); }, "add: int8 can't hold the value 1000");
  expect_error<ValueError>([&] { written.add_(small, -129); }, "add: int8 can't hold the value -129");
  expect_error<ValueError>([&] { add(i64({2}), i64({2}), 0x1p63); },
                           "add: int64 can't hold the value 9223372036854775808");
}

TEST(ReductionErrors, DimsOutsideTwiceOrEmptyAreNamed) {
  const Tensor x = f32({2, 3});
  expect_error<IndexError>([&] { sum(x, {2}); }, "sum: dim 2");
  expect_error<IndexError>([&] { mean(x, {-3}); }, "mean: dim -3");
  expect_error<IndexError>([&] { max(x, 5); }, "max: dim 5");
  expect_error<IndexError>([&] { argmax(x, 2); }, "argmax: dim 2");
  expect_error<Error>([&] { sum(x, {1, -1}); }, "sum");
  expect_error<DTypeError>([&] { mean(i64({2})); }, "mean: wanted a floating dtype, given int64");
  const Tensor nothing = f32({2, 0});
  expect_error<ShapeError>([&] { max(nothing); },
                           "max: dim 1 of shape [2, 0] is empty and has no greatest element");
  expect_error<ShapeError>([&] { amax(nothing, {1}); }, "amax: dim 1 of shape [2, 0] is empty");
  expect_error<ShapeError>([&] { max(nothing, 1); }, "max: dim 1 of shape [2, 0] is empty");
  expect_error<ShapeError>([&] { argmax(nothing); }, "argmax: an empty tensor of shape [2, 0]");
  expect_error<ShapeError>([&] { argmax(nothing, 1); }, "argmax: dim 1 of shape [2, 0] is empty");
}

TEST(MatmulErrors, ShapesAndDTypesAreNamed) {
  expect_error<ShapeError>(
      [&] {
        matmul(f32({2, 3}), f32({4, 5}));
      },
      "matmul: inner sizes differ: [2, 3] times [4, 5]");
  expect_error<ShapeError>([&] { matmul(f32({3}), f32({4})); }, "[3] times [4]");
  expect_error<ShapeError>([&] { matmul(f32({}), f32({4})); },
                           "matmul: a 0-dim tensor is no matrix, given shapes [] and [4]; use mul");
  expect_error<ShapeError>([&] { matmul(f32({2, 3, 4}), f32({5, 4, 3})); }, "[2] and [5]");
  expect_error<DTypeError>(
      [&] {
        matmul(f32({2, 3}), f32({3, 2}).to(DType::kFloat64));
      },
      "matmul: both operands must have one dtype, given float32 [2, 3] and float64 [3, 2]");
  expect_error<Error>([&] { matmul(ones({2, 2}, DType::kBool), ones({2, 2}, DType::kBool)); }, "matmul");
  expect_error<ShapeError>(
      [&] {
        linear(f32({2, 3}), f32({5, 4}));
      },
      "linear: x has shape [2, 3], its last size must be the weight's in = 4 (weight [5, 4])");
  expect_error<ShapeError>(
      [&] {
        linear(f32({2, 3}), f32({3}));
      },
      "linear: weight must be [out, in], given [3]");
  expect_error<ShapeError>(
      [&] {
        linear(f32({2, 3}), f32({5, 3}), f32({4}));
      },
      "linear: bias must be [5], given [4]");
  expect_error<DTypeError>(
      [&] {
        linear(f32({2, 3}), f32({5, 3}).to(DType::kBFloat16));
      },
      "linear: both operands must have one dtype, given float32 [2, 3] and bfloat16 [5, 3]");
}

TEST(ConvolutionErrors, ShapesDTypesAndOptionsAreNamed) {
  const Tensor x = f32({1, 3, 5, 5}), w = f32({4, 3, 3, 3});
  expect_error<ShapeError>(
      [&] {
        conv2d(f32({5, 5}), w);
      },
      "conv2d: x must be [N, C, H, W] or [C, H, W], given [5, 5]");
  expect_error<ShapeError>(
      [&] {
        conv2d(x, f32({4, 3, 3}));
      },
      "conv2d: weight must be [O, C / groups, kh, kw], given [4, 3, 3]");
  expect_error<ShapeError>(
      [&] {
        conv2d(x, f32({4, 2, 3, 3}));
      },
      "conv2d: x [1, 3, 5, 5] has 3 channels, weight [4, 2, 3, 3] with 1 groups wants 2");
  expect_error<ShapeError>([&] { conv2d(x, f32({4, 3, 3, 3}), {}, {.groups = 3}); }, "with 3 groups");
  expect_error<ShapeError>([&] { conv2d(x, w, {}, {.groups = 0}); }, "groups");
  expect_error<ShapeError>([&] { conv2d(x, w, f32({3})); }, "conv2d: bias must be [4], given [3]");
  expect_error<ShapeError>(
      [&] {
        conv2d(x, f32({4, 3, 7, 3}));
      },
      "is larger than the padded image of x [1, 3, 5, 5]");
  expect_error<ValueError>([&] { conv2d(x, w, {}, {.stride = 0}); },
                           "conv2d: stride and dilation must be positive");
  expect_error<ValueError>([&] { conv2d(x, w, {}, {.padding = -1}); }, "padding not negative");
  expect_error<DTypeError>([&] { conv2d(x, w.to(DType::kFloat64)); },
                           "conv2d: x, weight and bias must have one dtype, given float32 and float64");
  expect_error<DTypeError>(
      [&] {
        conv2d(i64({1, 3, 5, 5}), i64({4, 3, 3, 3}));
      },
      "conv2d: wanted a floating dtype, given int64");
}

TEST(PoolingErrors, WindowsAreNamed) {
  const Tensor x = f32({1, 1, 4, 4});
  expect_error<ShapeError>([&] { max_pool2d(x, {}); },
                           "max_pool2d: kernel_size is required and must be positive");
  expect_error<ShapeError>(
      [&] {
        max_pool2d(f32({4, 4}), {.kernel_size = 2});
      },
      "max_pool2d: x must be [N, C, H, W] or [C, H, W], given [4, 4]");
  expect_error<ValueError>(
      [&] { max_pool2d(x, {.kernel_size = 2, .padding = 2}); },
      "max_pool2d: padding must be at most half of kernel_size, given 2 x 2 with a kernel of 2 x 2");
  expect_error<ShapeError>([&] { avg_pool2d(x, {.kernel_size = 5}); },
                           "avg_pool2d: a window of 5 x 5 is larger than the padded image of x [1, 1, 4, 4]");
  expect_error<ValueError>([&] { avg_pool2d(x, {.kernel_size = 2, .stride = -1}); },
                           "stride and dilation must be positive");
  expect_error<ValueError>([&] { avg_pool2d(x, {.kernel_size = 2, .divisor_override = -1}); },
                           "avg_pool2d: divisor_override must be positive, given -1");
  expect_error<DTypeError>(
      [&] {
        max_pool2d(i64({1, 1, 4, 4}), {.kernel_size = 2});
      },
      "max_pool2d: wanted a floating dtype, given int64");
}

TEST(NormalizationErrors, ShapesAndOptionsAreNamed) {
  const Tensor x = f32({4, 3}), three = f32({3});
  expect_error<ShapeError>([&] { batch_norm(f32({3}), three, three); },
                           "batch_norm: x must be [N, C, ...], given [3]");
  expect_error<ShapeError>([&] { batch_norm(x, f32({4}), f32({4})); },
                           "batch_norm: running_mean must be [3] for x [4, 3], given [4]");
  expect_error<ShapeError>([&] { batch_norm(x, three, three, f32({2})); }, "batch_norm: weight must be [3]");
  expect_error<ValueError>([&] { batch_norm(x, three, {}); },
                           "running_mean and running_var come together or not at all");
  expect_error<ShapeError>(
      [&] {
        batch_norm(f32({1, 3}), three, three, {}, {}, {.training = true});
      },
      "batch_norm: training needs more than one value per channel, given x [1, 3]");
  expect_error<DTypeError>(
      [&] {
        batch_norm(i64({4, 3}), three, three);
      },
      "batch_norm: wanted a floating dtype, given int64");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error<ValueError>([&] { batch_norm(x, three, three, {}, {}, {.momentum = nan}); },
                           "batch_norm: momentum must lie in [0, 1], given nan");
  expect_error<ValueError>([&] { batch_norm(x, three, three, {}, {}, {.momentum = -0.1}); },
                           "batch_norm: momentum must lie in [0, 1], given -0.1");
  expect_error<ValueError>([&] { batch_norm(x, three, three, {}, {}, {.eps = -1}); },
                           "batch_norm: eps must be finite and at least 0, given -1");
  expect_error<ValueError>([&] { batch_norm(x, three, three, {}, {}, {.eps = nan}); },
                           "batch_norm: eps must be finite and at least 0, given nan");
  expect_error<ValueError>([&] { dropout(x, 1.5); }, "dropout: p must lie in [0, 1], given 1.5");
  expect_error<ValueError>([&] { dropout(x, nan); }, "dropout: p must lie in [0, 1]");
  expect_error<DTypeError>([&] { dropout(i64({3})); }, "dropout: wanted a floating dtype, given int64");
}

TEST(LossErrors, LogitsTargetsAndOptionsAreNamed) {
  const Tensor logits = f32({2, 3}), targets = i64({2});
  expect_error<ShapeError>([&] { cross_entropy(f32({}), targets); },
                           "cross_entropy: logits must be [C], [N, C] or [N, C, ...], given []");
  expect_error<ShapeError>([&] { cross_entropy(f32({3}), targets); },
                           "cross_entropy: logits [1, 3] want targets [1], given [1, 2]");
  expect_error<ShapeError>([&] { cross_entropy(logits, i64({3})); },
                           "cross_entropy: logits [2, 3] want targets [2], given [3]");
  expect_error<ShapeError>([&] { cross_entropy(logits, f32({2})); },
                           "cross_entropy: logits [2, 3] want probabilities [2, 3], given [2]");
  expect_error<DTypeError>([&] { cross_entropy(logits, zeros({2}, DType::kInt32)); },
                           "cross_entropy: targets must be int64 class indices, or probabilities of the "
                           "logits' dtype float32, given int32");
  expect_error<DTypeError>(
      [&] {
        cross_entropy(i64({2, 3}), targets);
      },
      "cross_entropy: logits must be floating, given int64");
  expect_error<IndexError>([&] { cross_entropy(logits, full({2}, 3, DType::kInt64)); },
                           "cross_entropy on cpu: target 3");
  expect_error<IndexError>([&] { cross_entropy(logits, full({2}, -1, DType::kInt64)); },
                           "cross_entropy on cpu: target -1");
  expect_error<IndexError>([&] { cross_entropy(f32({2, 0, 3}), i64({2, 3})); }, "there are 0 classes");
  expect_error<ValueError>([&] { cross_entropy(logits, targets, {.label_smoothing = 1.5}); },
                           "cross_entropy: label_smoothing must lie in [0, 1], given 1.5");
  expect_error<ShapeError>([&] { cross_entropy(logits, targets, {.weight = f32({2})}); },
                           "cross_entropy: weight must be [3], given [2]");
  expect_error<DTypeError>([&] { cross_entropy(logits, targets, {.weight = i64({3})}); },
                           "cross_entropy: weight must have the logits' dtype float32, given int64");
  expect_error<DTypeError>([&] { softmax(i64({2, 3}), 1); }, "softmax: wanted a floating dtype, given int64");
  expect_error<IndexError>([&] { softmax(logits, 2); }, "softmax: dim 2");
  expect_error<IndexError>([&] { log_softmax(logits, -3); }, "log_softmax: dim -3");
}

TEST(IndexingErrors, ShapesAndIndicesAreNamed) {
  const Tensor x = f32({2, 3});
  expect_error<ValueError>([&] { cat({}); }, "cat: no tensors given");
  expect_error<ShapeError>(
      [&] {
        cat({x, f32({2, 4})});
      },
      "cat: all sizes but dim 0 must be equal: tensor 0 has shape [2, 3], tensor 1 [2, 4]");
  expect_error<ShapeError>([&] { cat({x, f32({2, 3, 1})}, 1); }, "tensor 1 [2, 3, 1]");
  expect_error<ShapeError>(
      [&] {
        cat({f32({}), f32({})});
      },
      "cat: 0-dim tensors cannot be joined; use stack");
  expect_error<IndexError>([&] { cat({x, x}, 2); }, "cat: dim 2");
  const Tensor huge = f32({1}).expand({std::int64_t{1} << 62});
  expect_error<ShapeError>([&] { cat({huge, huge}); }, "cat: the sizes in dim 0 together exceed 63 bits");
  expect_error<ValueError>([&] { stack({}); }, "stack: no tensors given");
  expect_error<ShapeError>(
      [&] {
        stack({x, f32({3, 2})});
      },
      "stack: all shapes must be equal: tensor 0 has shape [2, 3], tensor 1 [3, 2]");
  expect_error<IndexError>(
      [&] {
        stack({x, x}, 3);
      },
      "stack: dim 3 is not in [-3, 2], where a tensor of 2 dims");
  expect_error<IndexError>([&] { index_select(x, 0, full({1}, 2, DType::kInt64)); },
                           "index_select on cpu: index 2");
  expect_error<IndexError>([&] { index_select(x, 1, full({1}, -1, DType::kInt64)); },
                           "index_select on cpu: index -1");
  expect_error<DTypeError>([&] { index_select(x, 0, f32({1})); },
                           "index_select: indices must be int64 or int32, given float32");
  expect_error<ShapeError>(
      [&] {
        index_select(x, 0, i64({1, 1}));
      },
      "index_select: indices must be [K], given [1, 1]");
  expect_error<ShapeError>([&] { index_select(f32({}), 0, i64({2})); },
                           "index_select: x is 0-dim and takes one index, given 2");
  expect_error<IndexError>([&] { index_select(f32({}), 0, ones({1}, DType::kInt64)); }, "index 1");
}

// A kernel's text begins with the kernel's name, which the exception has named already.
TEST(KernelErrors, OperationIsNamedOnce) {
  const Tensor x = f32({2, 3}), flags = ones({2, 2}, DType::kBool);
  const std::map<std::string, std::function<void()>> refused = {
      {"cross_entropy", [&] { cross_entropy(x, full({2}, 3, DType::kInt64)); }},
      {"index_select", [&] { index_select(x, 0, full({1}, 2, DType::kInt64)); }},
      {"matmul", [&] { matmul(flags, flags); }},
      {"pow", [&] { pow(flags, flags); }},
  };
  for (const auto& [name, call] : refused) {
    const std::string text = error_of<Error>(call);
    EXPECT_TRUE(text.starts_with(name + " on cpu: ")) << text;
    EXPECT_EQ(text.find(name + ":"), std::string::npos) << text;
  }
}

TEST(ViewErrors, DimsAndSizesAreNamed) {
  const Tensor x = f32({2, 3});
  expect_error<ShapeError>([&] { x.view({4, 2}); }, "[4, 2]");
  expect_error<ShapeError>([&] { x.t().view({6}); }, "[3, 2]");
  expect_error<ShapeError>([&] { x.reshape({-1, 4}); }, "[-1, 4]");
  expect_error<IndexError>([&] { x.select(0, 2); }, "2");
  expect_error<IndexError>([&] { x[-3]; }, "-3");
  expect_error<IndexError>([&] { x.narrow(1, 2, 2); },
                           "narrow: [2, 2 + 2) lies outside dim 1 of shape [2, 3]");
  expect_error<IndexError>([&] { x.transpose(0, 2); }, "transpose: dim 2");
  expect_error<Error>([&] { x.permute({0}); }, "permute");
  expect_error<Error>([&] { x.permute({0, 0}); }, "permute");
  expect_error<ShapeError>([&] { x.expand({4, 3}); }, "[2, 3]");
  expect_error<ShapeError>([&] { f32({1, 2, 3}).t(); }, "t: wanted at most 2 dims, given shape [1, 2, 3]");
  expect_error<ShapeError>([&] { x.flatten(1, 0); },
                           "flatten: start_dim 1 comes after end_dim 0 in shape [2, 3]");
  expect_error<IndexError>([&] { f32({3}).unsqueeze(2); },
                           "unsqueeze: dim 2 is not in [-2, 1], where a tensor of 1 dim can get a new one");
  expect_error<IndexError>([&] { x.unsqueeze(-4); },
                           "unsqueeze: dim -4 is not in [-3, 2], where a tensor of 2 dims can get a new one");
  expect_error<IndexError>([&] { f32({}).unsqueeze(1); }, "unsqueeze: dim 1 is not in [-1, 0]");
  expect_error<ShapeError>([&] { x.contiguous(MemoryFormat::kChannelsLast); }, "[2, 3]");
}

}  // namespace
}  // namespace tutti
