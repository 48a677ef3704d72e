// SPDX-License-Identifier: Apache-2.0
// Memory that a failed operation may still read or write: MPI can't take every request back, and a peer that is late may write
// into memory that it shares. It is kept until the process ends, since what is freed would be corrupted later. A group takes
// no operation after one that has failed, so there is little of it.
#pragma once

#include <memory>

namespace tutti::comm {

void keep_forever(std::shared_ptr<const void> memory) noexcept;

}  // namespace tutti::comm
