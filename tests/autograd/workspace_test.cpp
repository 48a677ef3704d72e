// SPDX-License-Identifier: Apache-2.0
// What a backward gives back at its end needs no memory: destructors must not throw.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "autograd/graph_task.hpp"
#include "support/out_of_memory.hpp"

namespace tutti::autograd {
namespace {

using tutti::testing::OutOfMemory;

// Node number i, of which only the address counts.
Node* node(std::uintptr_t i) { return reinterpret_cast<Node*>((i + 1) * 64); }

TEST(Workspace, EndOfABackwardNeedsNoMemory) {
  std::thread([] {  // a thread without a workspace of its own yet
    std::optional<GraphTask> outer(std::in_place, false), inner(std::in_place, false);
    const OutOfMemory guard;
    inner.reset();
    outer.reset();
  })
      .join();
}

TEST(Workspace, ClearingALargeGraphNeedsNoMemory) {
  Workspace workspace;
  constexpr std::uintptr_t kNodes = 100000;
  for (std::uintptr_t i = 0; i < kNodes; ++i) ASSERT_EQ(workspace.slot_of(node(i)), i);
  {
    const OutOfMemory guard;
    workspace.clear();
  }
  EXPECT_EQ(workspace.slots.capacity(), 0U);
  EXPECT_EQ(workspace.find(node(7)), Workspace::kNone);
  EXPECT_EQ(workspace.slot_of(node(7)), 0U);
  EXPECT_EQ(workspace.find(node(7)), 0U);
  EXPECT_EQ(workspace.find(node(8)), Workspace::kNone);
}

}  // namespace
}  // namespace tutti::autograd
