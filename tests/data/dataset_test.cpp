// SPDX-License-Identifier: Apache-2.0
#include "tutti/data/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "support/errors.hpp"
#include "tutti/data/data_loader.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::data {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;

template <class D>
Batch first_batch(D dataset, std::int64_t batch_size) {
  DataLoader loader{std::move(dataset), {.batch_size = batch_size}};
  Batch batch;
  loader.start_pass();
  EXPECT_TRUE(loader.next(batch));
  return batch;
}

TEST(Batch, IsTupleLikeOfInputsAndTargets) {
  const Batch batch = first_batch(TensorDataset(arange(6).reshape({3, 2}), arange(3)), 3);
  const auto& [inputs, targets] = batch;
  EXPECT_TRUE(inputs.is_same(batch.inputs));
  EXPECT_TRUE(targets.is_same(batch.targets));
  EXPECT_EQ(batch.size(), 3);
  static_assert(std::tuple_size_v<Batch> == 2);
}

TEST(TensorDataset, GivesRowsOfAnyDtypeAndLayout) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kUInt8, DType::kInt64}) {
    const Tensor values = arange(0, 12, 1, dtype).reshape({3, 4}).t();  // [4, 3], not contiguous
    const Batch batch = first_batch(TensorDataset(values, arange(4)), 4);
    EXPECT_EQ(batch.inputs.dtype(), dtype);
    EXPECT_EQ(batch.inputs.to_vector<double>(), values.to_vector<double>());
    EXPECT_EQ(batch.targets.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  }
}

TEST(TensorDataset, TargetsMayBeMissing) {
  const Batch batch = first_batch(TensorDataset(ones({2, 3})), 2);
  EXPECT_FALSE(batch.targets.defined());
  EXPECT_FALSE(TensorDataset(ones({2, 3}))[1].target.defined());
}

TEST(TensorDataset, TensorsThatDontFitAreRefused) {
  EXPECT_TRUE(contains(error_of<ShapeError>([] {
                         TensorDataset(ones({2, 3}), ones({3}));
                       }),
                       "2 inputs [2, 3] and 3 targets [3]"));
  EXPECT_TRUE(contains(error_of<ShapeError>([] { TensorDataset(ones({})); }), "inputs have no dim"));
}

TEST(Dataset, AnIndexOutOfRangeIsRefused) {
  EXPECT_EQ(error_of<IndexError>([] {
              TensorDataset(ones({2, 3}))[2];
            }),
            "TensorDataset: there is no sample 2 of 2");
}

struct Squares : Dataset<Squares> {
  std::size_t size() const { return 5; }
  Example get(std::size_t index) const {
    const auto value = static_cast<double>(index);
    return {full({2}, value), scalar_tensor(value * value, DType::kFloat64)};
  }
};

TEST(Dataset, ExamplesAreStacked) {
  const Batch batch = first_batch(Squares{}, 3);
  EXPECT_EQ(batch.inputs.sizes(), (Dims{3, 2}));
  EXPECT_EQ(batch.inputs.to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(batch.targets.sizes(), (Dims{3}));
  EXPECT_EQ(batch.targets.dtype(), DType::kFloat64);
  EXPECT_EQ(batch.targets.to_vector<double>(), (std::vector<double>{0, 1, 4}));
  EXPECT_EQ(Squares{}[3].target.item<double>(), 9.0);
}

struct Weighted : Dataset<Weighted> {
  std::size_t size() const { return 3; }
  void read(std::size_t index, Row& row) const {
    row.input<float>() = 1;
    row.target<std::uint8_t>() = static_cast<std::uint8_t>(index);
    if (index == 1) row.set_weight(0.25F);
  }
};

TEST(Dataset, RowsOfOneNumberAndWeights) {
  const Batch batch = first_batch(Weighted{}, 3);
  EXPECT_EQ(batch.inputs.sizes(), (Dims{3}));
  EXPECT_EQ(batch.targets.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_EQ(batch.weights.to_vector<float>(), (std::vector<float>{1, 0.25F, 1}));
  EXPECT_EQ(batch.mask.to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(batch.indices.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2}));
}

struct OwnBatch {
  std::vector<std::int64_t> ids;
  Tensor sum;
};
struct WholeBatches : Dataset<WholeBatches> {
  using Batch = OwnBatch;
  std::size_t size() const { return 5; }
  OwnBatch batch(std::span<const std::int64_t> indices) const {
    return {{indices.begin(), indices.end()}, scalar_tensor(static_cast<std::int64_t>(indices.size()))};
  }
};

TEST(Dataset, MayMakeBatchesOfItsOwnType) {
  DataLoader loader{WholeBatches{}, {.batch_size = 3, .num_workers = 2}};
  std::vector<std::vector<std::int64_t>> seen;
  for (const auto& [ids, sum] : loader) seen.push_back(ids);
  EXPECT_EQ(seen, (std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {3, 4}}));
}

// What a row does, by its index in a batch of four.
template <int Kind>
struct Uneven : Dataset<Uneven<Kind>> {
  std::size_t size() const { return 4; }
  void read(std::size_t index, Row& row) const {
    const bool odd_one = index == 2;
    if (Kind != 1 || !odd_one) row.input<float>(Kind == 0 && odd_one ? Dims{3} : Dims{2});
    if (Kind == 2 && !odd_one) row.target<std::int64_t>() = 0;
    if (Kind == 3 && odd_one) row.target<std::int64_t>() = 0;
    if (Kind == 4 && odd_one) row.target<double>() = 0;
    if (Kind == 4 && !odd_one) row.target<float>() = 0;
  }
};

TEST(Dataset, RowsThatDontFitTheirBatchAreNamed) {
  const auto message = [](auto dataset) {
    return error_of<DataError>([&] { first_batch(std::move(dataset), 4); });
  };
  EXPECT_TRUE(
      contains(message(Uneven<0>{}),
               "sample 2: the sample's input is float32 [3], those before it in its batch are float32 [2]"));
  EXPECT_TRUE(contains(message(Uneven<1>{}), "sample 2: the sample gave no input"));
  EXPECT_TRUE(contains(message(Uneven<2>{}), "sample 2: the sample gave no target, others of its batch did"));
  EXPECT_TRUE(contains(message(Uneven<3>{}),
                       "sample 2: the sample gave a target, those before it in its batch did not"));
  EXPECT_TRUE(
      contains(message(Uneven<4>{}),
               "sample 2: the sample's target is float64 [], those before it in its batch are float32 []"));
}

TEST(Dataset, AnUndefinedExampleIsNamed) {
  struct Undefined : Dataset<Undefined> {
    std::size_t size() const { return 1; }
    Example get(std::size_t) const { return {}; }
  };
  EXPECT_TRUE(contains(error_of<DataError>([] { first_batch(Undefined{}, 1); }),
                       "sample 0: the sample's input is undefined"));
}

TEST(SampleGenerator, DependsOnSeedEpochAndSample) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      for (std::uint64_t index = 0; index < 16; ++index)
        numbers.push_back(sample_generator(seed, epoch, index).next_u64());
    }
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_EQ(sample_generator(1, 2, 3).next_u64(), sample_generator(1, 2, 3).next_u64());
}

}  // namespace
}  // namespace tutti::data
