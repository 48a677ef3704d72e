// SPDX-License-Identifier: Apache-2.0
// Ops whose tensors lie on two devices, for which the plugin of the backend's tests stands.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backend/backend.h"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using tutti::testing::expect_error;

class TwoDevices : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("TUTTI_CUDA_PLUGIN", TUTTI_TEST_PLUGIN, 1);
    setenv("TUTTI_TEST_BUILD_ID", tutti_cpu_backend()->build_id, 1);
    const std::string count = std::to_string(tutti_cpu_backend()->kernels.pointwise_count);
    setenv("TUTTI_TEST_POINTWISE_COUNT", count.c_str(), 1);
    ASSERT_EQ(unavailable_reason(DeviceType::kCuda), "");
  }
  static Tensor here(const Dims& sizes, DType dtype = DType::kFloat32) { return ones(sizes, dtype); }
  static Tensor there(const Dims& sizes, DType dtype = DType::kFloat32) {
    return empty(sizes, dtype, "cuda:0");
  }
};

TEST_F(TwoDevices, PointwiseOpsNameBoth) {
  const Tensor a = here({2}), b = there({2});
  expect_error<DeviceError>([&] { a + b; }, "add: tensors on cpu and cuda:0; move them to one device first");
  expect_error<DeviceError>([&] { b* a; }, "mul: tensors on cuda:0 and cpu; move them to one device first");
  expect_error<DeviceError>([&] { lt(a, b); }, "lt: tensors on cpu and cuda:0");
  expect_error<DeviceError>([&] { where(here({2}, DType::kBool), b, b); },
                            "where: tensors on cpu and cuda:0");
  expect_error<DeviceError>([&] { here({2}).add_(b); }, "add: tensors on cpu and cuda:0");
  expect_error<DeviceError>([&] { here({}).add_(b); }, "add: the result is on cpu, the inputs on cuda:0");
  expect_error<DeviceError>([&] { here({2}) + there({}); }, "add: tensors on cpu and cuda:0");
}

TEST_F(TwoDevices, OtherOpsNameBoth) {
  expect_error<DeviceError>(
      [&] {
        matmul(here({2, 2}), there({2, 2}));
      },
      "matmul: operands on cpu and cuda:0");
  expect_error<DeviceError>(
      [&] {
        linear(here({2, 2}), there({3, 2}));
      },
      "linear: operands on cpu and cuda:0");
  expect_error<DeviceError>(
      [&] {
        linear(here({2, 2}), here({3, 2}), there({3}));
      },
      "linear: operands on cpu and cuda:0");
  expect_error<DeviceError>(
      [&] {
        conv2d(here({1, 1, 3, 3}), there({1, 1, 3, 3}));
      },
      "conv2d: x is on cpu, weight on cuda:0");
  expect_error<DeviceError>(
      [&] {
        conv2d(here({1, 1, 3, 3}), here({1, 1, 3, 3}), there({1}));
      },
      "conv2d: x is on cpu, bias on cuda:0");
  expect_error<DeviceError>(
      [&] {
        batch_norm(here({2, 2}), there({2}), there({2}));
      },
      "batch_norm: x is on cpu, running_mean on cuda:0");
  expect_error<DeviceError>(
      [&] {
        cross_entropy(here({2, 2}), there({2}, DType::kInt64));
      },
      "cross_entropy: logits are on cpu, targets on cuda:0");
  expect_error<DeviceError>(
      [&] {
        cross_entropy(here({2, 2}), here({2}, DType::kInt64), {.weight = there({2})});
      },
      "cross_entropy: logits are on cpu, weight on cuda:0");
  expect_error<DeviceError>(
      [&] {
        cat({here({2}), there({2})});
      },
      "cat: tensor 0 is on cpu, tensor 1 on cuda:0");
  expect_error<DeviceError>(
      [&] {
        stack({here({2}), there({2})});
      },
      "tensor 0 is on cpu, tensor 1 on cuda:0");
  expect_error<DeviceError>([&] { index_select(here({2}), 0, there({1}, DType::kInt64)); },
                            "index_select: x is on cpu, indices on cuda:0");
}

}  // namespace
}  // namespace tutti
