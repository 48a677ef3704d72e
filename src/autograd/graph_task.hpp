// SPDX-License-Identifier: Apache-2.0
// One call of backward or grad. All of its state is here, so calls on several threads, or inside each other, do not meet
// except in the leaves they share.
//
//   discover        roots --> every node that can be reached gets a Slot; its edges are counted where they arrive
//   mark_needed     (grad only) which slots lie on a path to an input
//   run             heap of slots whose gradients are complete: leaves first, then the youngest operation
//     run_operation   hooks, capture, Node::run, finish_claims, deliver each gradient to the slot of its edge
//     run_leaf        hooks, AccumulateGrad, post-accumulate hooks
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "autograd/meta.hpp"
#include "tutti/autograd/engine.hpp"
#include "tutti/autograd/node.hpp"

namespace tutti::autograd {

// A node's place in one call.
struct Slot {
  explicit Slot(Node* n) noexcept : node(n) {}
  Node* node;
  std::uint32_t dependencies = 0;  // gradients that are still to come
  std::uint32_t first_edge = 0;    // of the node's edges in Workspace::edge_slots
  bool needed = true;              // takes part in this call
  bool runs = true;                // something below it is needed; else it only receives
  bool captured = false;           // grad() wants what arrives here
  bool accumulated = false;        // the gradient is in the leaf's .grad already
  bool queued = false;
  SmallVector<Tensor, 1> gradients;  // of the node's outputs, summed as they arrive
};

// Memory of a call, kept by the thread for the next one.
class Workspace {
 public:
  std::vector<Slot> slots;
  std::vector<std::uint32_t> edge_slots;  // slot that each edge leads to, or kNone
  std::vector<std::uint32_t> heap;
  std::unique_ptr<Workspace> next_idle;  // of the thread's list

  static constexpr std::uint32_t kNone = 0xffffffff;
  // The node's slot; a new one if it has none.
  std::uint32_t slot_of(Node* node);
  std::uint32_t find(const Node* node) const noexcept;  // or kNone
  // Forgets everything; keeps memory that is not excessive. Allocates nothing.
  void clear() noexcept;

 private:
  // Open addressing. Entries of earlier calls differ in `call` and count as empty.
  struct Entry {
    const Node* node = nullptr;
    std::uint32_t slot = 0;
    std::uint32_t call = 0;
  };
  std::size_t position(const Node* node) const noexcept;
  void grow();
  std::vector<Entry> table_;  // empty, or a power of two long
  std::uint32_t call_ = 1;
};

class GraphTask;

// What a node may ask of the call that runs it.
class detail::RunScope {
 public:
  RunScope(GraphTask& task, std::uint32_t slot) noexcept : task_(task), slot_(slot) {}
  ~RunScope();  // gives claims back
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  bool needs_input_grad(std::size_t i) const noexcept;
  std::optional<GradDestination> claim(std::size_t i);
  // Takes over what the node wrote to claimed destinations.
  void finish_claims(std::span<const Tensor> grad_inputs);

 private:
  struct Claim {
    std::size_t input;
    AccumulateGrad* leaf;  // its mutex is held
    GradDestination destination;
  };
  GraphTask& task_;
  std::uint32_t slot_;
  SmallVector<Claim, 2> claims_;
};

class GraphTask {
 public:
  explicit GraphTask(bool retain_graph);
  ~GraphTask();
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  // Adds `gradient` (checked; undefined: 1) as what arrives at a root.
  void add_root(const Tensor& root, const Tensor& gradient);
  void run();
  // Like run, but returns the gradients that arrive at `inputs` instead of accumulating any.
  std::vector<Tensor> run_and_capture(std::span<const Tensor> inputs);

 private:
  friend class detail::RunScope;
  struct Root {
    Edge edge;
    Tensor gradient;
  };
  struct Capture {
    std::uint32_t slot;
    std::uint32_t output_nr;
    Tensor gradient;
  };

  void discover();
  void mark_needed();
  void drain();
  void run_operation(std::uint32_t slot);
  void run_leaf(std::uint32_t slot);
  void capture(std::uint32_t slot);
  // Checks a gradient and adds it to its slot. `from` is null for a root.
  void deliver(const Node* from, std::size_t input, std::uint32_t slot, std::uint32_t output_nr,
               Tensor gradient);
  void push(std::uint32_t slot);
  bool before(std::uint32_t a, std::uint32_t b) const noexcept;

  Workspace& workspace_;
  bool retain_graph_;
  bool capturing_ = false;
  bool anomaly_;
  SmallVector<Root, 1> roots_;  // keep the graph alive, whatever hooks drop
  std::vector<Capture> captures_;
};

}  // namespace tutti::autograd
