// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of core.
#pragma once

#include "tutti/core/dtype.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/half.hpp"
#include "tutti/core/logging.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/random.hpp"
#include "tutti/core/threads.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/core/version.hpp"
