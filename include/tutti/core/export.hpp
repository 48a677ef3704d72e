// SPDX-License-Identifier: Apache-2.0
/// \file
/// Symbol visibility: everything is hidden unless it is marked TUTTI_API.
#pragma once

#if defined(_WIN32)
#define TUTTI_API
#else
#define TUTTI_API __attribute__((visibility("default")))
#endif
