// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph_task.hpp"

#include <algorithm>
#include <optional>

#include "tensor/raw.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::autograd {

namespace {

// Workspaces that no call of this thread uses, a list; nested calls take further ones.
thread_local std::unique_ptr<Workspace> idle_workspaces;

Workspace& take_workspace() {
  if (idle_workspaces == nullptr) return *new Workspace;
  std::unique_ptr<Workspace> first = std::move(idle_workspaces);
  idle_workspaces = std::move(first->next_idle);
  return *first.release();
}

// What a gradient that arrives at output `output_nr` of a node must look like.
struct Wanted {
  const Dims& sizes;
  DType dtype;
  Device device;
};
Wanted wanted(const Node& node, std::uint32_t output_nr) {
  if (const tutti::detail::TensorImpl* leaf = node.leaf(); leaf != nullptr) {
    return {leaf->sizes, leaf->dtype, leaf->storage->device};
  }
  const OutputInfo& info = node.outputs()[output_nr];
  return {info.sizes, info.dtype, info.device};
}

bool fits(const Tensor& gradient, const Wanted& want) {
  return gradient.sizes() == want.sizes && gradient.dtype() == want.dtype && gradient.device() == want.device;
}

std::string text_of(const Wanted& want) { return concat(want.dtype, " ", want.sizes, " on ", want.device); }

// Makes later work of `to` wait for what `from` has been given so far.
void order_streams(const Stream& from, const Stream& to) {
  if (from == to || (from.device().is_cpu() && to.device().is_cpu())) return;
  if (from.device().is_cpu()) return;  // runs inline: done already
  Event event(from.device());
  event.record(from);
  if (to.device().is_cpu()) {
    event.synchronize();
  } else {
    event.wait(to);
  }
}

// Runs hooks that may replace the gradient.
void run_tensor_hooks(TensorHooks& hooks, Tensor& gradient, const Node& node, std::uint32_t output_nr) {
  hooks.for_each([&](const TensorHooks::Hook& hook) {
    if (!gradient.defined()) return;
    Tensor replacement = hook(gradient);
    if (!replacement.defined()) return;
    const Wanted want = wanted(node, output_nr);
    TUTTI_CHECK(fits(replacement, want), AutogradError, "a hook on ",
                dynamic_cast<const AccumulateGrad*>(&node) != nullptr
                    ? "a leaf"
                    : concat("a tensor made by ", node.name()),
                " returned ", describe(replacement), " as its gradient, wanted ", text_of(want));
    gradient = std::move(replacement);
  });
}

}  // namespace

GraphTask::GraphTask(bool retain_graph)
    : workspace_(take_workspace()), retain_graph_(retain_graph), anomaly_(detail::thread_state().anomaly) {}

GraphTask::~GraphTask() {
  workspace_.clear();
  workspace_.next_idle = std::move(idle_workspaces);
  idle_workspaces.reset(&workspace_);
}

void GraphTask::add_root(const Tensor& root, const Tensor& gradient) {
  roots_.emplace_back(Root{gradient_edge(root, "backward"), gradient});
}

// Breadth first: each slot's edges are looked up once, and where they lead is kept for deliver.
void GraphTask::discover() {
  for (const Root& root : roots_) workspace_.slot_of(root.edge.function.get());
  for (std::size_t i = 0; i < workspace_.slots.size(); ++i) {
    const Node& node = *workspace_.slots[i].node;
    workspace_.slots[i].first_edge = static_cast<std::uint32_t>(workspace_.edge_slots.size());
    for (const Edge& edge : node.edges()) {
      if (!edge.function) {
        workspace_.edge_slots.push_back(Workspace::kNone);
        continue;
      }
      const std::uint32_t target = workspace_.slot_of(edge.function.get());
      ++workspace_.slots[target].dependencies;
      workspace_.edge_slots.push_back(target);
    }
  }
}

void GraphTask::mark_needed() {
  std::vector<Slot>& slots = workspace_.slots;
  // Slots in an order in which every edge leads forward.
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> missing(slots.size());
  order.reserve(slots.size());
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    missing[i] = slots[i].dependencies;
    if (missing[i] == 0) order.push_back(i);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Slot& slot = slots[order[i]];
    for (std::size_t e = 0; e < slot.node->edges().size(); ++e) {
      const std::uint32_t target = workspace_.edge_slots[slot.first_edge + e];
      if (target != Workspace::kNone && --missing[target] == 0) order.push_back(target);
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    Slot& slot = slots[*it];
    slot.runs = false;
    for (std::size_t e = 0; e < slot.node->edges().size(); ++e) {
      const std::uint32_t target = workspace_.edge_slots[slot.first_edge + e];
      if (target != Workspace::kNone && slots[target].needed) slot.runs = true;
    }
    slot.needed = slot.runs || slot.captured;
  }
}

void GraphTask::run() {
  discover();
  drain();
}

std::vector<Tensor> GraphTask::run_and_capture(std::span<const Tensor> inputs) {
  capturing_ = true;
  discover();
  for (const Tensor& input : inputs) {
    const Edge edge = gradient_edge(input, "grad");
    const std::uint32_t slot = workspace_.find(edge.function.get());
    if (slot != Workspace::kNone) workspace_.slots[slot].captured = true;
    captures_.push_back({slot, edge.output_nr, {}});
  }
  mark_needed();
  drain();
  std::vector<Tensor> gradients;
  for (Capture& capture : captures_) gradients.push_back(std::move(capture.gradient));
  return gradients;
}

bool GraphTask::before(std::uint32_t a, std::uint32_t b) const noexcept {
  const std::uint64_t sequence_a = workspace_.slots[a].node->sequence();
  const std::uint64_t sequence_b = workspace_.slots[b].node->sequence();
  return sequence_a != sequence_b ? sequence_a > sequence_b : a < b;
}

void GraphTask::push(std::uint32_t slot) {
  if (std::exchange(workspace_.slots[slot].queued, true)) return;
  workspace_.heap.push_back(slot);
  std::push_heap(workspace_.heap.begin(), workspace_.heap.end(),
                 [this](std::uint32_t a, std::uint32_t b) { return before(b, a); });
}

void GraphTask::drain() {
  for (Root& root : roots_) {
    const std::uint32_t slot = workspace_.find(root.edge.function.get());
    if (!workspace_.slots[slot].needed) continue;
    ++workspace_.slots[slot].dependencies;  // deliver counts it down again
    deliver(nullptr, 0, slot, root.edge.output_nr, std::move(root.gradient));
  }
  while (!workspace_.heap.empty()) {
    std::pop_heap(workspace_.heap.begin(), workspace_.heap.end(),
                  [this](std::uint32_t a, std::uint32_t b) { return before(b, a); });
    const std::uint32_t slot = workspace_.heap.back();
    workspace_.heap.pop_back();
    if (workspace_.slots[slot].node->leaf() != nullptr) {
      run_leaf(slot);
    } else {
      run_operation(slot);
    }
  }
}

void GraphTask::deliver(const Node* from, std::size_t input, std::uint32_t target, std::uint32_t output_nr,
                        Tensor gradient) {
  Slot& slot = workspace_.slots[target];
  Node& node = *slot.node;
  if (gradient.defined()) {
    const Wanted want = wanted(node, output_nr);
    if (!fits(gradient, want)) [[unlikely]] {
      tutti::detail::fail<AutogradError>(from != nullptr ? from->name() : "backward",
                                         ": the gradient of input ", input, " is ", describe(gradient),
                                         " on ", gradient.device(), ", wanted ", text_of(want));
    }
    if (anomaly_ && from != nullptr) check_backward_anomaly(*from, gradient, input);
    if (!want.device.is_cpu() || (from != nullptr && !from->stream().device().is_cpu())) {
      const Stream& source = from != nullptr ? from->stream() : current_stream(gradient.device());
      order_streams(source, node.leaf() != nullptr ? current_stream(want.device) : node.stream());
    }
    if (slot.gradients.empty()) slot.gradients.resize(node.leaf() != nullptr ? 1 : node.outputs().size());
    Tensor& sum = slot.gradients[output_nr];
    if (sum.defined()) {
      std::optional<StreamGuard> guard;
      if (!node.stream().device().is_cpu()) guard.emplace(node.stream());
      sum = add_gradients(std::move(sum), std::move(gradient));
    } else {
      sum = std::move(gradient);
    }
  }
  if (--slot.dependencies == 0) push(target);
}

void GraphTask::capture(std::uint32_t slot) {
  for (Capture& capture : captures_) {
    if (capture.slot != slot || workspace_.slots[slot].gradients.empty()) continue;
    capture.gradient = workspace_.slots[slot].gradients[capture.output_nr];
  }
}

void GraphTask::run_operation(std::uint32_t index) {
  Node& node = *workspace_.slots[index].node;
  SmallVector<Tensor, 1>& gradients = workspace_.slots[index].gradients;
  std::optional<StreamGuard> guard;
  if (!node.stream().device().is_cpu()) guard.emplace(node.stream());
  if (detail::NodeHooks* hooks = HookAccess::get(node); hooks != nullptr && !gradients.empty()) [[unlikely]] {
    for (std::size_t i = 0; i < hooks->hooks.size(); ++i) {
      const auto [output_nr, list] = hooks->hooks[i];
      run_tensor_hooks(*list, gradients[output_nr], node, output_nr);
    }
    for (const auto& [output_nr, weak] : hooks->retained) {
      const std::shared_ptr<Tensor> retained = weak.lock();
      const Tensor& gradient = gradients[output_nr];
      if (retained == nullptr || !gradient.defined() || capturing_) continue;
      *retained = retained->defined() ? add_gradients(*retained, gradient) : gradient;
    }
  }
  if (workspace_.slots[index].captured) capture(index);
  const std::size_t count = node.edges().size();
  const std::size_t first_edge = workspace_.slots[index].first_edge;
  SmallVector<Tensor, 4> grad_inputs;
  grad_inputs.resize(count);
  if (!gradients.empty() && workspace_.slots[index].runs) {
    TUTTI_CHECK(
        !node.released(), AutogradError, node.name(),
        ": backward ran through this operation before and freed its saved tensors; pass retain_graph = true "
        "to the first backward");
    detail::RunScope scope(*this, index);
    try {
      node.run({gradients.data(), gradients.size()}, {grad_inputs.data(), count}, scope);
    } catch (const AutogradError&) {
      if (!anomaly_) throw;
      name_backward_of_anomaly(node);
    }
    scope.finish_claims({grad_inputs.data(), count});
  }
  gradients.clear();
  if (!workspace_.slots[index].runs) return;
  if (!retain_graph_) node.release();
  guard.reset();  // leaves take their gradients in the caller's stream
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t target = workspace_.edge_slots[first_edge + i];
    if (target == Workspace::kNone || !workspace_.slots[target].needed) continue;
    deliver(&node, i, target, node.edges()[i].output_nr, std::move(grad_inputs[i]));
  }
}

void GraphTask::run_leaf(std::uint32_t index) {
  Slot& slot = workspace_.slots[index];
  if (slot.gradients.empty()) return;
  auto& leaf = static_cast<AccumulateGrad&>(*slot.node);
  Tensor gradient = std::move(slot.gradients[0]);
  slot.gradients.clear();
  if (!slot.accumulated) {
    if (const std::shared_ptr<TensorHooks> hooks = leaf.tensor_hooks(); hooks != nullptr) {
      run_tensor_hooks(*hooks, gradient, leaf, 0);
    }
    if (capturing_) {
      slot.gradients.emplace_back(std::move(gradient));
      capture(index);
      slot.gradients.clear();
      return;
    }
    leaf.accumulate(std::move(gradient));
  }
  leaf.run_post_hooks();
}

namespace detail {

RunScope::~RunScope() {
  for (Claim& claim : claims_) claim.leaf->mutex.unlock();
}

bool RunScope::needs_input_grad(std::size_t i) const noexcept {
  const Workspace& workspace = task_.workspace_;
  const Slot& slot = workspace.slots[slot_];
  if (i >= slot.node->edges().size()) return false;
  const std::uint32_t target = workspace.edge_slots[slot.first_edge + i];
  return target != Workspace::kNone && workspace.slots[target].needed;
}

std::optional<GradDestination> RunScope::claim(std::size_t i) {
  if (task_.capturing_ || !needs_input_grad(i)) return std::nullopt;
  for (const Claim& held : claims_) {
    if (held.input == i) return held.destination;  // asked again: the leaf's mutex is ours already
  }
  const Workspace& workspace = task_.workspace_;
  const Slot& slot = workspace.slots[slot_];
  const Slot& target = workspace.slots[workspace.edge_slots[slot.first_edge + i]];
  if (target.node->leaf() == nullptr || target.dependencies != 1 || !target.gradients.empty())
    return std::nullopt;
  auto& leaf = static_cast<AccumulateGrad&>(*target.node);
  if (const auto hooks = leaf.tensor_hooks(); hooks != nullptr && !hooks->empty()) return std::nullopt;
  // The node's kernels write in the node's stream; the leaf's .grad belongs to the current one outside of it.
  const Device device = leaf.leaf()->storage->device;
  if (!device.is_cpu() && !(slot.node->stream() == Stream::default_of(device))) return std::nullopt;
  if (!leaf.mutex.try_lock()) return std::nullopt;  // another thread is at it: never wait with claims held
  const Tensor& grad = leaf.leaf()->autograd->grad;
  const bool accumulate = grad.defined();
  const Tensor& tensor = accumulate ? grad : leaf.destination;
  if (!tensor.defined() || tensor.dtype() != leaf.leaf()->dtype || tensor.sizes() != leaf.leaf()->sizes ||
      tensor.device() != device || !raw::is_dense(tensor)) {
    leaf.mutex.unlock();
    return std::nullopt;
  }
  claims_.emplace_back(Claim{i, &leaf, {tensor, accumulate}});
  return claims_[claims_.size() - 1].destination;
}

void RunScope::finish_claims(std::span<const Tensor> grad_inputs) {
  for (Claim& claim : claims_) {
    const Tensor& written = claim.destination.tensor;
    const Tensor& returned = grad_inputs[claim.input];
    if (returned.defined() && same_elements(returned, written)) {
      raw::bump_version(written);
      claim.leaf->leaf()->autograd->grad = written;
      const std::size_t first = task_.workspace_.slots[slot_].first_edge;
      task_.workspace_.slots[task_.workspace_.edge_slots[first + claim.input]].accumulated = true;
    }
    claim.leaf->mutex.unlock();
  }
  claims_.clear();
}

bool needs_input_grad(const RunScope& scope, std::size_t i) noexcept { return scope.needs_input_grad(i); }
std::optional<GradDestination> claim_destination(RunScope& scope, std::size_t i) { return scope.claim(i); }

}  // namespace detail
}  // namespace tutti::autograd
