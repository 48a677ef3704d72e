// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of data.
#pragma once

#include "tutti/data/batch.hpp"
#include "tutti/data/data_loader.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/data/mnist.hpp"
#include "tutti/data/row.hpp"
#include "tutti/data/sampler.hpp"
