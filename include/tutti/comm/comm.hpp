// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of comm.
#pragma once

#include "tutti/comm/environment.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/comm/work.hpp"
