// SPDX-License-Identifier: Apache-2.0
// Optimizer kernels against the formulas of torch.optim, written out in double, step after step.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "tutti/core/half.hpp"
#include "tutti/core/threads.hpp"

namespace tutti {
namespace {

using Values = std::vector<std::vector<double>>;

template <class T>
std::int32_t dtype_number() {
  return static_cast<std::int32_t>(dtype_of<T>);
}

// Arrays of T for params, grads and three states, and the same in double.
template <class T>
class Arrays {
 public:
  explicit Arrays(std::vector<std::int64_t> numels) : numels_(std::move(numels)) {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (int k = 0; k < 5; ++k) {
      for (const std::int64_t n : numels_) {
        std::vector<T> array;
        std::vector<double> wide;
        for (std::int64_t i = 0; i < n; ++i) {
          array.push_back(T(k < 2 ? normal(generator) : 0.0F));
          wide.push_back(static_cast<double>(array.back()));
        }
        arrays_[k].push_back(std::move(array));
        reference[k].push_back(std::move(wide));
      }
      for (auto& array : arrays_[k]) pointers_[k].push_back(array.data());
    }
  }

  tutti_tensor_list list(int states) {
    return {static_cast<std::int64_t>(numels_.size()),
            numels_.data(),
            dtype_number<T>(),
            pointers_[0].data(),
            pointers_[1].data(),
            states > 0 ? pointers_[2].data() : nullptr,
            states > 1 ? pointers_[3].data() : nullptr,
            states > 2 ? pointers_[4].data() : nullptr};
  }

  template <class Update>
  void for_each(const Update& update) {
    for (std::size_t a = 0; a < numels_.size(); ++a) {
      for (std::size_t i = 0; i < reference[0][a].size(); ++i) {
        update(reference[0][a][i], reference[1][a][i], reference[2][a][i], reference[3][a][i],
               reference[4][a][i]);
      }
    }
  }

  void expect_params_near(double tolerance) {
    for (std::size_t a = 0; a < numels_.size(); ++a) {
      for (std::size_t i = 0; i < reference[0][a].size(); ++i) {
        ASSERT_NEAR(static_cast<double>(arrays_[0][a][i]), reference[0][a][i], tolerance)
            << "array " << a << " at " << i;
      }
    }
  }

  std::vector<T> all_params() const {
    std::vector<T> all;
    for (const auto& array : arrays_[0]) all.insert(all.end(), array.begin(), array.end());
    return all;
  }

  Values reference[5];

 private:
  std::vector<std::int64_t> numels_;
  std::vector<std::vector<T>> arrays_[5];
  std::vector<void*> pointers_[5];
};

const std::vector<std::int64_t> kSizes = {1, 0, 64, 7, 70001, 3, 0};

template <class T>
struct Tolerance {
  static constexpr double kValue = 5e-6;
};
template <>
struct Tolerance<double> {
  static constexpr double kValue = 1e-13;
};
template <>
struct Tolerance<Half> {
  static constexpr double kValue = 0.02;
};
template <>
struct Tolerance<BFloat16> {
  static constexpr double kValue = 0.15;
};

template <class T>
class OptimizerOf : public testing::Test {};
using Floating = testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(OptimizerOf, Floating);

TYPED_TEST(OptimizerOf, SgdFollowsItsFormula) {
  struct Options {
    double momentum, dampening, weight_decay;
    bool nesterov, maximize;
  };
  for (const Options& o :
       {Options{0, 0, 0, false, false}, Options{0, 0, 0.1, false, true}, Options{0.9, 0, 0, false, false},
        Options{0.9, 0.5, 0.01, false, false}, Options{0.9, 0, 0.01, true, true}}) {
    Arrays<TypeParam> arrays(kSizes);
    for (int step = 1; step <= 3; ++step) {
      tutti_sgd call{};
      call.list = arrays.list(o.momentum != 0 ? 1 : 0);
      call.lr = 0.1;
      call.momentum = o.momentum;
      call.dampening = o.dampening;
      call.weight_decay = o.weight_decay;
      call.nesterov = o.nesterov;
      call.maximize = o.maximize;
      call.first_step = step == 1;
      ASSERT_EQ(cpu::sgd(&call), TUTTI_OK);
      arrays.for_each([&](double& p, double grad, double& buffer, double&, double&) {
        double g = (o.maximize ? -grad : grad) + o.weight_decay * p;
        if (o.momentum != 0) {
          buffer = step == 1 ? g : o.momentum * buffer + (1 - o.dampening) * g;
          g = o.nesterov ? g + o.momentum * buffer : buffer;
        }
        p -= 0.1 * g;
      });
      arrays.expect_params_near(Tolerance<TypeParam>::kValue);
    }
  }
}

TYPED_TEST(OptimizerOf, AdamFollowsItsFormula) {
  // f16's range ends below eps = 1e-8 and its squares lose bits; the kernel computes in f32 and stores the averages in f16.
  for (const bool decoupled : {false, true}) {
    for (const bool amsgrad : {false, true}) {
      for (const bool maximize : {false, true}) {
        Arrays<TypeParam> arrays(kSizes);
        for (int step = 1; step <= 3; ++step) {
          tutti_adam call{};
          call.list = arrays.list(amsgrad ? 3 : 2);
          call.lr = 0.01;
          call.beta1 = 0.9;
          call.beta2 = 0.99;
          call.eps = 1e-3;
          call.weight_decay = 0.1;
          call.step = step;
          call.decoupled = decoupled;
          call.amsgrad = amsgrad;
          call.maximize = maximize;
          ASSERT_EQ(cpu::adam(&call), TUTTI_OK);
          arrays.for_each([&](double& p, double grad, double& m, double& v, double& greatest) {
            double g = maximize ? -grad : grad;
            if (decoupled) {
              p -= 0.01 * 0.1 * p;
            } else {
              g += 0.1 * p;
            }
            m = 0.9 * m + 0.1 * g;
            v = 0.99 * v + 0.01 * g * g;
            greatest = std::max(greatest, v);
            const double spread =
                std::sqrt(amsgrad ? greatest : v) / std::sqrt(1 - std::pow(0.99, step)) + 1e-3;
            p -= 0.01 / (1 - std::pow(0.9, step)) * m / spread;
          });
          arrays.expect_params_near(Tolerance<TypeParam>::kValue);
        }
      }
    }
  }
}

TYPED_TEST(OptimizerOf, NormAndScaleGoOverAllArrays) {
  Arrays<TypeParam> arrays(kSizes);
  double sum = -1;
  const tutti_list_norm norm{nullptr, arrays.list(0), &sum};
  ASSERT_EQ(cpu::list_norm(&norm), TUTTI_OK);
  double wanted = 0;
  arrays.for_each([&](double& p, double, double&, double&, double&) { wanted += p * p; });
  EXPECT_NEAR(sum, wanted, 1e-10 * wanted);
  const tutti_list_scale scale{nullptr, arrays.list(0), -0.5};
  ASSERT_EQ(cpu::list_scale(&scale), TUTTI_OK);
  arrays.for_each([](double& p, double, double&, double&, double&) { p *= -0.5; });
  arrays.expect_params_near(std::is_same_v<TypeParam, Half> ? 0x1p-24
                                                            : 0.0);  // halves of odd subnormals are rounded
}

TEST(Optimizer, NormOfLargeFloatsDoesNotOverflow) {
  std::vector<float> values(100, 1e30F);
  void* pointer = values.data();
  const std::int64_t count = 100;
  double sum = 0;
  const tutti_list_norm call{
      nullptr, {1, &count, TUTTI_F32, &pointer, nullptr, nullptr, nullptr, nullptr}, &sum};
  ASSERT_EQ(cpu::list_norm(&call), TUTTI_OK);
  EXPECT_NEAR(sum / (100 * 1e60), 1.0, 1e-6);
}

TEST(Optimizer, EmptyListsAreLeftAlone) {
  double sum = 7;
  const tutti_list_norm norm{
      nullptr, {0, nullptr, TUTTI_F32, nullptr, nullptr, nullptr, nullptr, nullptr}, &sum};
  ASSERT_EQ(cpu::list_norm(&norm), TUTTI_OK);
  EXPECT_EQ(sum, 0.0);
  tutti_adam adam{};
  adam.list.dtype = TUTTI_F32;
  adam.step = 1;
  EXPECT_EQ(cpu::adam(&adam), TUTTI_OK);
}

TEST(Optimizer, IntegerArraysAreRefused) {
  tutti_sgd call{};
  call.list.dtype = TUTTI_I32;
  EXPECT_EQ(cpu::sgd(&call), TUTTI_UNSUPPORTED);
  char text[256];
  cpu::error_text(text, sizeof text);
  EXPECT_STREQ(text, "sgd: wanted arrays of a floating dtype, given int32");
}

TEST(Optimizer, BitsAreEqualForAnyNumberOfThreads) {
  const int before = get_num_threads();
  std::vector<float> first;
  double first_sum = 0;
  for (const int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    Arrays<float> arrays({5, 150001, 1, 90000, 64, 77777});
    tutti_adam call{};
    call.list = arrays.list(2);
    call.lr = 0.01;
    call.beta1 = 0.9;
    call.beta2 = 0.999;
    call.eps = 1e-8;
    call.step = 1;
    ASSERT_EQ(cpu::adam(&call), TUTTI_OK);
    double sum = 0;
    const tutti_list_norm norm{nullptr, arrays.list(0), &sum};
    ASSERT_EQ(cpu::list_norm(&norm), TUTTI_OK);
    const std::vector<float> params = arrays.all_params();
    if (first.empty()) {
      first = params;
      first_sum = sum;
    }
    EXPECT_EQ(std::memcmp(first.data(), params.data(), params.size() * sizeof(float)), 0) << threads;
    EXPECT_EQ(sum, first_sum) << threads;
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace tutti
