// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of profiler.
#pragma once

#include "tutti/profiler/chrome_trace.hpp"
#include "tutti/profiler/enumerate.hpp"
#include "tutti/profiler/environment_report.hpp"
#include "tutti/profiler/progress.hpp"
#include "tutti/profiler/step_profiler.hpp"
#include "tutti/profiler/verdict.hpp"
