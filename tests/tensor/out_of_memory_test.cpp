// SPDX-License-Identifier: Apache-2.0
// Memory that was handed over is released even if there is none left for the handle.
#include <gtest/gtest.h>

#include "support/out_of_memory.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

TEST(OutOfMemory, FromBlobReleasesWhatItCannotWrap) {
  float numbers[2] = {1, 2};
  int releases = 0;
  std::function<void()> release = [&releases] { ++releases; };
  const Dims sizes{2};
  from_blob(numbers, sizes, DType::kFloat32);  // what the pools keep is there
  try {
    const testing::OutOfMemory guard;
    from_blob(numbers, sizes, DType::kFloat32, {}, {}, std::move(release));
    ADD_FAILURE() << "no exception";
  } catch (const std::bad_alloc&) {
    EXPECT_EQ(releases, 1);
  }
}

}  // namespace
}  // namespace tutti
