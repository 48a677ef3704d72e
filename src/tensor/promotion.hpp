// SPDX-License-Identifier: Apache-2.0
// The dtype of an operation's result, by PyTorch's rules: tensors with dims decide; 0-dim tensors, and after
// them numbers, take part only where they are of a higher category (bool < integer < floating point).
//
//   result_type(int32[3], 2.0)               float32   a floating-point number counts as float32
//   result_type(float16[3], float64 0-dim)   float16
//   result_type(uint8[3], -1)                uint8
#pragma once

#include "tutti/tensor/scalar.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

class ResultType {
 public:
  void add(const Tensor& tensor) { add(tensor.dim() > 0 ? dimensioned_ : zero_dim_, tensor.dtype()); }
  void add(Scalar number) noexcept;
  // Of at least one operand.
  DType get() const noexcept;

 private:
  // A dtype, or that there is none yet.
  struct Part {
    DType dtype = DType::kBool;
    bool defined = false;
  };
  static void add(Part& part, DType dtype) noexcept {
    part = {part.defined ? promote_types(part.dtype, dtype) : dtype, true};
  }
  static Part combined(Part higher, Part lower) noexcept;

  Part dimensioned_;
  Part zero_dim_;
  Part number_;
};

// Of tensors and Scalars in any order.
template <class... Operands>
DType result_type(const Operands&... operands) {
  static_assert(sizeof...(operands) > 0);
  ResultType type;
  (type.add(operands), ...);
  return type.get();
}

}  // namespace tutti
