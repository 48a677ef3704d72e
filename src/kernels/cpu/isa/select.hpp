// SPDX-License-Identifier: Apache-2.0
// Picks a table of inner loops: isa/*.cpp are compiled once for each level, each build in a namespace of its
// own.
#pragma once

#include "core/cpu_features.hpp"

namespace tutti::cpu {

template <class Table>
const Table& table_of_level(IsaLevel level, const Table& v2, const Table& v3, const Table& v4) {
  switch (level) {
    case IsaLevel::kV4: return v4;
    case IsaLevel::kV3: return v3;
    case IsaLevel::kV2: break;
  }
  return v2;
}

}  // namespace tutti::cpu

// Declares `const Table& function()`: the table `name` of the active level, looked up once.
#define TUTTI_ISA_TABLE(Table, name, function)                                              \
  namespace v2 {                                                                            \
  extern const Table name;                                                                  \
  }                                                                                         \
  namespace v3 {                                                                            \
  extern const Table name;                                                                  \
  }                                                                                         \
  namespace v4 {                                                                            \
  extern const Table name;                                                                  \
  }                                                                                         \
  inline const Table& function() {                                                          \
    static const Table& table = table_of_level(active_isa(), v2::name, v3::name, v4::name); \
    return table;                                                                           \
  }
