// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools with options whose sums and products do not fit an int.
#include <gtest/gtest.h>

#include <climits>

#include "support/errors.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using testing::expect_error;
using Floats = std::vector<float>;

// One window is left of such a stride: at -2, over the corner of the image.
TEST(Windows, StrideBeyondTheImageLeavesOneWindow) {
  for (const int stride : {6, 9, 1000, INT_MAX}) {
    Tensor x = ones({1, 1, 4, 4}).requires_grad_();
    Tensor w = ones({1, 1, 3, 3}).requires_grad_();
    const Tensor y = conv2d(x, w, {}, {.stride = stride, .padding = 2});
    ASSERT_EQ(y.sizes(), (Dims{1, 1, 1, 1})) << stride;
    EXPECT_EQ(y.item<float>(), 1);
    y.sum().backward();
    Floats corner(16, 0), weights(9, 0);
    corner[0] = 1;
    weights[8] = 1;
    EXPECT_EQ(x.grad().to_vector<float>(), corner);
    EXPECT_EQ(w.grad().to_vector<float>(), weights);
  }
}

TEST(Windows, StrideBetweenKernelAndPaddedImageIsKept) {
  const Tensor x = arange(16).to(DType::kFloat32).view({1, 1, 4, 4});
  const Tensor y = conv2d(x, ones({1, 1, 3, 3}), {}, {.stride = 5, .padding = 2});
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 3, 12, 15}));
}

TEST(Windows, PoolsTakeAnyStride) {
  Tensor x = arange(16).to(DType::kFloat32).view({1, 1, 4, 4}).requires_grad_();
  for (const int stride : {4, 5, INT_MAX}) {
    x.set_grad({});
    const Tensor y = max_pool2d(x, {.kernel_size = 2, .stride = stride});
    EXPECT_EQ(y.to_vector<float>(), Floats{5});
    y.sum().backward();
    Floats grad(16, 0);
    grad[5] = 1;
    EXPECT_EQ(x.grad().to_vector<float>(), grad);
    EXPECT_EQ(avg_pool2d(x, {.kernel_size = 2, .stride = stride}).to_vector<float>(), Floats{2.5});
  }
}

TEST(Windows, DilationOfAKernelOfOneHasNoEffect) {
  const Tensor x = arange(16).to(DType::kFloat32).view({1, 1, 4, 4});
  const Floats values = x.to_vector<float>();
  EXPECT_EQ(conv2d(x, ones({1, 1, 1, 1}), {}, {.dilation = INT_MAX}).to_vector<float>(), values);
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 1, .dilation = INT_MAX}).to_vector<float>(), values);
}

TEST(Windows, ConvolutionsOptionsThatAreTooLargeAreNamed) {
  const Tensor x = ones({1, 1, 4, 4}), w = ones({1, 1, 3, 3});
  expect_error<ShapeError>([&] { conv2d(x, w, {}, {.padding = INT_MAX}); },
                           "conv2d: padding 2147483647 x 2147483647 makes the image of x [1, 1, 4, 4] larger "
                           "than 2147483647 on a side");
  expect_error<ShapeError>([&] { conv2d(x, w, {}, {.padding = {0, INT_MAX / 2}}); }, "conv2d: padding 0 x");
  expect_error<ShapeError>([&] { conv2d(x, w, {}, {.padding = 1000000000}); }, "conv2d: ");
  for (const int dilation : {INT_MAX, INT_MAX / 2 + 1, 1 << 30}) {
    expect_error<ShapeError>(
        [&] { conv2d(x, w, {}, {.dilation = dilation}); },
        "conv2d: the kernel of weight [1, 1, 3, 3] is larger than the padded image of x");
  }
  const Tensor expanded = ones({1, 1, 1, 1}).expand({1, 1, std::int64_t{1} << 33, 1});
  expect_error<ShapeError>([&] { conv2d(x, expanded); }, "is larger than the padded image");
  expect_error<ShapeError>([&] { conv2d(expanded, w); }, "larger than 2147483647 on a side");
}

TEST(Windows, PoolsOptionsThatAreTooLargeAreNamed) {
  const Tensor x = ones({1, 1, 4, 4});
  expect_error<ShapeError>([&] { max_pool2d(x, {.kernel_size = 3, .dilation = INT_MAX}); },
                           "max_pool2d: a window of 3 x 3 is larger than the padded image");
  expect_error<ShapeError>([&] { max_pool2d(x, {.kernel_size = 1 << 16}); },
                           "max_pool2d: a window of 65536 x 65536 has more than 2147483647 places");
  expect_error<ShapeError>([&] { avg_pool2d(x, {.kernel_size = INT_MAX, .padding = INT_MAX / 2}); },
                           "avg_pool2d: a window of 2147483647 x 2147483647 has more than");
  expect_error<ShapeError>(
      [&] {
        max_pool2d(x, {.kernel_size = {INT_MAX, 1}, .padding = {INT_MAX / 2, 0}});
      },
      "max_pool2d: padding 1073741823 x 0 makes the image of x [1, 1, 4, 4] larger");
}

// Five columns: the third window has one inside; with a stride of 4 it would begin behind the padding, and is none.
TEST(Windows, CeilModeTakesWhatIsLeft) {
  Tensor x = arange(5).to(DType::kFloat32).view({1, 1, 1, 5}).detach().requires_grad_();
  const Tensor y = max_pool2d(x, {.kernel_size = {1, 2}, .ceil_mode = true});
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 3, 4}));
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 1, 0, 1, 1}));
  EXPECT_EQ(avg_pool2d(x, {.kernel_size = {1, 2}, .ceil_mode = true}).to_vector<float>(),
            (Floats{0.5, 2.5, 4}));
  EXPECT_EQ(max_pool2d(x, {.kernel_size = {1, 2}}).to_vector<float>(), (Floats{1, 3}));
  const MaxPool2dOptions behind{
      .kernel_size = {1, 3}, .stride = {1, 6}, .padding = {0, 1}, .ceil_mode = true};
  EXPECT_EQ(max_pool2d(x, behind).to_vector<float>(), (Floats{1}));
  // Padding counts in the mean, what lies beyond it doesn't: (3 + 4 + 0) / 3 of columns 3, 4 and 5.
  const AvgPool2dOptions padded{
      .kernel_size = {1, 4}, .stride = {1, 4}, .padding = {0, 1}, .ceil_mode = true};
  EXPECT_EQ(avg_pool2d(x, padded).to_vector<float>(), (Floats{0.75, 7.0F / 3}));
}

// No whole window fits, but one begins inside the image.
TEST(Windows, CeilModeTakesAWindowLargerThanTheImage) {
  const Tensor x = tensor({1, 2, 3, 5}).view({1, 1, 2, 2});
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 3, .stride = 2, .ceil_mode = true}).to_vector<float>(),
            (Floats{5}));
  EXPECT_EQ(avg_pool2d(x, {.kernel_size = 3, .stride = 2, .ceil_mode = true}).to_vector<float>(),
            (Floats{2.75}));
  expect_error<ShapeError>([&] { max_pool2d(x, {.kernel_size = 3, .stride = 1, .ceil_mode = true}); },
                           "is larger than the padded image");
  expect_error<ShapeError>(
      [&] { max_pool2d(x, {.kernel_size = INT_MAX, .stride = INT_MAX, .ceil_mode = true}); }, "max_pool2d");
}

TEST(Windows, AnImageAloneIsABatchOfOne) {
  Generator generator(5);
  Tensor x = randn({2, 6, 5}, DType::kFloat32, {}, &generator).requires_grad_();
  const Tensor batch = x.detach().view({1, 2, 6, 5}).requires_grad_();
  const Tensor w = randn({3, 2, 3, 3}, DType::kFloat32, {}, &generator);
  const auto pooled = [&w](const Tensor& t) {
    return avg_pool2d(max_pool2d(conv2d(t, w, {}, {.padding = 1}), {.kernel_size = 2}), {.kernel_size = 2});
  };
  const Tensor y = pooled(x);
  EXPECT_EQ(y.sizes(), (Dims{3, 1, 1}));
  EXPECT_EQ(y.to_vector<float>(), pooled(batch).to_vector<float>());
  y.sum().backward();
  pooled(batch).sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(x.grad().to_vector<float>(), batch.grad().to_vector<float>());
}

}  // namespace
}  // namespace tutti
