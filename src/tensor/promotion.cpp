// SPDX-License-Identifier: Apache-2.0
#include "tensor/promotion.hpp"

namespace tutti {

void ResultType::add(Scalar number) noexcept {
  switch (number.kind()) {
    case Scalar::Kind::kBool: add(number_, DType::kBool); break;
    case Scalar::Kind::kInteger: add(number_, DType::kInt64); break;
    case Scalar::Kind::kFloating: add(number_, DType::kFloat32); break;
  }
}

ResultType::Part ResultType::combined(Part higher, Part lower) noexcept {
  if (!higher.defined) return lower;
  if (!lower.defined || is_floating_point(higher.dtype)) return higher;
  if (higher.dtype == DType::kBool || is_floating_point(lower.dtype)) {
    return {promote_types(higher.dtype, lower.dtype), true};
  }
  return higher;
}

DType ResultType::get() const noexcept { return combined(dimensioned_, combined(zero_dim_, number_)).dtype; }

}  // namespace tutti
