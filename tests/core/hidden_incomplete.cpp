// SPDX-License-Identifier: Apache-2.0
// Must not compile: `Unknown` is not defined where its owner dies. The control, with -DDEFINED, does.
#include "tutti/core/hidden.hpp"

struct Unknown;
#ifdef DEFINED
struct Unknown {};
#endif

void drop(Unknown* object) { tutti::detail::Hidden<Unknown> owner(object); }
