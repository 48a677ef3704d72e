// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of nn.
#pragma once

#include "tutti/nn/containers.hpp"
#include "tutti/nn/init.hpp"
#include "tutti/nn/layers.hpp"
#include "tutti/nn/module.hpp"
