// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of tutti::autograd.
#pragma once

#include "tutti/autograd/anomaly.hpp"
#include "tutti/autograd/checkpoint.hpp"
#include "tutti/autograd/engine.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/autograd/gradcheck.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/autograd/hooks.hpp"
#include "tutti/autograd/saved_tensors_hooks.hpp"
