// SPDX-License-Identifier: Apache-2.0
// Expected texts are PyTorch's, but for the names of dtypes, devices and bools.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tensor/raw.hpp"

namespace tutti {
namespace {

TEST(Print, WholeNumbersHaveAPoint) {
  EXPECT_EQ(tensor({1, 2, 3}).to_string(), "tensor([1., 2., 3.])");
  EXPECT_EQ(tensor({-1, 20, 0}).to_string(), "tensor([-1., 20.,  0.])");
  EXPECT_EQ(scalar_tensor(3.0).to_string(), "tensor(3.)");
}

TEST(Print, FractionsHaveFourDecimals) {
  EXPECT_EQ(tensor({1.5, 22.25}).to_string(), "tensor([ 1.5000, 22.2500])");
  EXPECT_EQ(tensor({0.1, NAN, INFINITY}).to_string(), "tensor([0.1000,    nan,    inf])");
}

TEST(Print, WideRangesAreScientific) {
  EXPECT_EQ(tensor({1e-5, 1}).to_string(), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(tensor({1, 1e9}).to_string(), "tensor([1.0000e+00, 1.0000e+09])");
}

TEST(Print, IntegersAndBools) {
  EXPECT_EQ(arange(3).to_string(), "tensor([0, 1, 2], dtype=int64)");
  EXPECT_EQ(tensor({0, 100}, DType::kUInt8).to_string(), "tensor([  0, 100], dtype=uint8)");
  EXPECT_EQ(tensor(std::vector<bool>{true, false}).to_string(), "tensor([ true, false], dtype=bool)");
}

TEST(Print, RowsStandBelowEachOther) {
  EXPECT_EQ(raw::view(tensor({1, 2, 3, 4}), {2, 2}).to_string(),
            "tensor([[1., 2.],\n"
            "        [3., 4.]])");
  EXPECT_EQ(raw::view(arange(8), {2, 2, 2}).to_string(),
            "tensor([[[0, 1],\n"
            "         [2, 3]],\n"
            "\n"
            "        [[4, 5],\n"
            "         [6, 7]]], dtype=int64)");
}

TEST(Print, ReadsStrides) {
  EXPECT_EQ(raw::transpose(raw::view(tensor({1, 2, 3, 4}), {2, 2}), 0, 1).to_string(),
            "tensor([[1., 3.],\n"
            "        [2., 4.]])");
}

TEST(Print, LongRowsAreWrapped) {
  EXPECT_EQ(arange(0.0, 30.0).to_string(),
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
            "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
            "        28., 29.])");
}

TEST(Print, ManyElementsAreSummarized) {
  EXPECT_EQ(arange(0.0, 1001.0).to_string(), "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])");
  EXPECT_EQ(zeros({100, 100}).to_string(),
            "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        ...,\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.]])");
  EXPECT_EQ(arange(0.0, 1000.0).to_string().find("..."), std::string::npos);
}

TEST(Print, EmptyTensorsShowTheirShape) {
  EXPECT_EQ(empty({0}).to_string(), "tensor([])");
  EXPECT_EQ(empty({2, 0}, DType::kBool).to_string(), "tensor([], size=[2, 0], dtype=bool)");
  EXPECT_EQ(Tensor().to_string(), "tensor(undefined)");
}

TEST(Print, StreamsTheSameText) {
  std::ostringstream stream;
  stream << full({1}, 0.5, DType::kBFloat16);
  EXPECT_EQ(stream.str(), "tensor([0.5000], dtype=bfloat16)");
}

}  // namespace
}  // namespace tutti
