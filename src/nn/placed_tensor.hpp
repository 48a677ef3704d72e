// SPDX-License-Identifier: Apache-2.0
// A slot's tensor with its full name.
#pragma once

#include <string>

#include "tutti/nn/module.hpp"

namespace tutti::nn {

struct ModuleBase::PlacedTensor {
  std::string name;
  Tensor* tensor;
  SlotKind kind;
};

}  // namespace tutti::nn
