// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of optim.
#pragma once

#include "tutti/optim/adam.hpp"
#include "tutti/optim/clip_grad.hpp"
#include "tutti/optim/lr_scheduler.hpp"
#include "tutti/optim/optimizer.hpp"
#include "tutti/optim/sgd.hpp"
