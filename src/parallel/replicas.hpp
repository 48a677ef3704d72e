// SPDX-License-Identifier: Apache-2.0
// What makes the ranks' modules replicas of one another.
#pragma once

#include "tutti/comm/process_group.hpp"
#include "tutti/nn/module.hpp"

namespace tutti::parallel {

// Compares names, shapes, layouts, dtypes and requires_grad of parameters, and names, shapes and dtypes of buffers, which may
// differ in layout. ModuleError on every rank, naming the first entry that differs and both sides.
void check_replicas(nn::ModuleBase& module, comm::ProcessGroup& group);

// Copies rank 0's tensors to all ranks, small ones together: a network may have hundreds of buffers.
void broadcast_tensors(const std::vector<Tensor>& tensors, comm::ProcessGroup& group);

}  // namespace tutti::parallel
