// SPDX-License-Identifier: Apache-2.0
/// \file
/// All operations.
#pragma once

#include "tutti/ops/convolution.hpp"
#include "tutti/ops/indexing.hpp"
#include "tutti/ops/loss.hpp"
#include "tutti/ops/matmul.hpp"
#include "tutti/ops/normalization.hpp"
#include "tutti/ops/pointwise.hpp"
#include "tutti/ops/reduction.hpp"
