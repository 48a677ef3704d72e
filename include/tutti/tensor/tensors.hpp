// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of tensor (tensor.hpp is the class).
#pragma once

#include "tutti/tensor/dims.hpp"
#include "tutti/tensor/factories.hpp"
#include "tutti/tensor/scalar.hpp"
#include "tutti/tensor/state_dict.hpp"
#include "tutti/tensor/tensor.hpp"
