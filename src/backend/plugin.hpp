// SPDX-License-Identifier: Apache-2.0
// Opens backend plugins: shared objects that export tutti_backend_v1 and link nothing of this library.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace tutti::backend {

// Files to try for CUDA's plugin, in order. TUTTI_CUDA_PLUGIN, if set, is the only choice: a path (it has a
// slash), or the name NAME of a libtutti_NAME.so. A name, "cuda" if the variable is not set, is looked for
// beside this library and then beside the program.
std::vector<std::string> cuda_plugin_candidates();

// Opens the first candidate that exists and checks it. Null if none exists or that one is not usable;
// `reason` then tells all that was tried. A file that exists but is refused ends the search: another file
// that happens to lie farther down must not hide the fault.
const tutti_backend* open_first_plugin(const std::vector<std::string>& candidates, std::string& reason);

// Opens one file and checks what it gives against `expected`, the table that was built with this library.
const tutti_backend* open_plugin(const std::string& path, const tutti_backend& expected, std::string& reason);

}  // namespace tutti::backend
