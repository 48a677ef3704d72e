// SPDX-License-Identifier: Apache-2.0
// Picks, of the three builds of a table of loops, the one for the level that this process runs at.
#pragma once

#include "kernels/cpu/isa/select.hpp"

namespace tutti::cpu {

template <class Table>
const Table& choose_isa(const Table& v2, const Table& v3, const Table& v4) {
  return table_of_level(active_isa(), v2, v3, v4);
}

}  // namespace tutti::cpu
