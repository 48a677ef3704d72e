// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of parallel.
#pragma once

#include "tutti/parallel/distributed_data_parallel.hpp"
#include "tutti/parallel/grad_bucket.hpp"
