// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of Tutti.
#pragma once

#include "tutti/autograd/autograd.hpp"
#include "tutti/comm/comm.hpp"
#include "tutti/core/core.hpp"
#include "tutti/data/data.hpp"
#include "tutti/device/devices.hpp"
#include "tutti/nn/nn.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/optim/optim.hpp"
#include "tutti/parallel/parallel.hpp"
#include "tutti/profiler/profiler.hpp"
#include "tutti/tensor/tensors.hpp"
