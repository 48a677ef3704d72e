// SPDX-License-Identifier: Apache-2.0
// From a call of Function::apply to a node with edges, and outputs that know it.
#include <algorithm>

#include "autograd/meta.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/node.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::autograd {

// A friend of Node.
struct Recorder {
  static void connect(Node& node, std::span<const Tensor* const> inputs) {
    node.edges_.reserve(inputs.size());
    for (const Tensor* input : inputs) {
      if (input->defined() && input->impl()->requires_grad) {
        node.edges_.emplace_back(gradient_edge(*input, node.name_));
      } else {
        node.edges_.emplace_back();
      }
    }
  }

  static void add_output(Node& node, const Tensor& output, bool differentiable) {
    OutputInfo& info = node.outputs_.emplace_back();
    if (!output.defined()) return;
    info.sizes = output.sizes();
    info.dtype = output.dtype();
    info.device = output.device();
    info.differentiable = differentiable;
    if (!info.device.is_cpu()) node.stream_ = current_stream(info.device);
  }

  // A saved handle of an in-place result would keep its own node alive.
  static void detach_saved(Node& node, const Tensor& output) {
    for (SavedTensor& saved : node.saved_) {
      if (saved.tensor.is_same(output)) saved.tensor = raw::alias(saved.tensor);
    }
  }

  // retain_grad() is about the tensor's present value: the node that made the former one lets go of it.
  static void move_retained(const Meta& meta, Node& node, std::uint32_t output_nr) {
    auto& former = HookAccess::ensure(*meta.grad_fn).retained;
    std::erase_if(former, [&](const detail::NodeHooks::Retained& retained) {
      return retained.grad.lock() == meta.retained_grad;
    });
    HookAccess::ensure(node).retained.push_back({output_nr, meta.retained_grad});
  }

  static bool absorb_producer(const Tensor& x, bool (*is_meant)(const Node&)) {
    Meta* const meta = meta_of(x);
    if (meta == nullptr || !meta->grad_fn || meta->base.defined()) return false;
    const Node& node = *meta->grad_fn;
    const tutti::detail::TensorImpl& impl = *x.impl();
    if (node.hooks_ != nullptr || impl.references.load(std::memory_order_acquire) != 1) return false;
    if (node.edges_.size() != 1 || node.saved_.size() != 1 || !is_meant(node)) return false;
    const SavedTensor& saved = node.saved_[0];
    if (!saved.tensor.defined() || saved.tensor.impl()->storage != impl.storage ||
        saved.version != impl.storage->version.load())
      return false;
    Edge edge = node.edges_[0];
    if (!edge.function) return false;
    meta->output_nr = edge.output_nr;
    meta->grad_fn = std::move(edge.function);
    return true;
  }

  static void set_history(Node& node, const Tensor& output, std::uint32_t output_nr) {
    Meta& meta = ensure_meta(output);
    if (meta.retained_grad != nullptr) [[unlikely]]
      move_retained(meta, node, output_nr);
    meta.grad_fn = NodePtr::share(&node);
    meta.output_nr = output_nr;
    output.impl()->requires_grad = true;
  }
};

namespace {

// The index of the input that `output` is, or that many inputs.
std::size_t find_input(const detail::Recording& recording, const Tensor& output) {
  std::size_t i = 0;
  while (i < recording.inputs.size() && !recording.inputs[i]->is_same(output)) ++i;
  return i;
}

// A view of what was made outside of inference mode is as good as that.
bool shares_memory(const detail::Recording& recording, const Tensor& output) {
  return std::any_of(recording.inputs.begin(), recording.inputs.end(), [&](const Tensor* input) {
    return input->defined() && input->impl()->storage == output.impl()->storage &&
           !input->impl()->is_inference;
  });
}

// An output that shares memory with an input is a view of it, or of its base.
void note_base(const detail::Recording& recording, const Tensor& output) {
  for (const Tensor* input : recording.inputs) {
    if (!input->defined() || input->impl()->storage != output.impl()->storage) continue;
    const Meta* input_meta = meta_of(*input);
    if (input_meta == nullptr || !input->impl()->requires_grad) continue;
    Meta& meta = ensure_meta(output);
    meta.base = input_meta->base.defined() ? input_meta->base : *input;
    meta.base_rebases = input_meta->base.defined() ? input_meta->base_rebases : input_meta->rebases;
    return;
  }
}

void record_output(const detail::Recording& recording, Tensor& output, std::size_t i) {
  Node& node = *recording.node;
  const bool excluded = i < 64 && ((recording.non_differentiable >> i) & 1) != 0;
  const bool differentiable = output.defined() && is_floating_point(output.dtype()) && !excluded;
  Recorder::add_output(node, output, differentiable);
  if (!output.defined()) return;
  const std::size_t input = find_input(recording, output);
  if (input < 64 && ((recording.dirty >> input) & 1) != 0) {
    if (!differentiable) return;
    Recorder::detach_saved(node, output);
    Recorder::set_history(node, output, static_cast<std::uint32_t>(i));
    ++meta_of(output)->rebases;
    return;
  }
  // Somebody else holds this handle: an input returned as it is, a saved output (whose history would be a cycle), a tensor that
  // forward took from elsewhere, or an earlier output of this very operation. Its history is not ours to change.
  const tutti::detail::TensorImpl& impl = *output.impl();
  if (impl.requires_grad || input < recording.inputs.size() ||
      impl.references.load(std::memory_order_relaxed) > 1) {
    output = raw::alias(output);
  }
  if (!differentiable) return;
  Recorder::set_history(node, output, static_cast<std::uint32_t>(i));
  note_base(recording, output);
}

}  // namespace

bool absorb_producer(const Tensor& x, bool (*is_meant)(const Node&)) {
  return Recorder::absorb_producer(x, is_meant);
}

namespace detail {

void connect(Node& node, std::span<const Tensor* const> inputs) { Recorder::connect(node, inputs); }

void mark_dirty(Recording& recording, std::size_t i) {
  TUTTI_CHECK(i < recording.inputs.size() && i < 64, AutogradError, recording.name, ": mark_dirty(", i,
              ") of ", recording.inputs.size(), " differentiable inputs");
  const Tensor& tensor = *recording.inputs[i];
  TUTTI_CHECK(tensor.defined(), AutogradError, recording.name, ": mark_dirty(", i,
              ") of an undefined tensor; it has no memory to modify");
  const tutti::detail::TensorImpl& impl = *tensor.impl();
  if (recording.node != nullptr) {
    const Meta* meta = meta_of(tensor);
    TUTTI_CHECK(!impl.requires_grad || meta->grad_fn, AutogradError,
                "a leaf that requires grad is modified in place by ", recording.name, " (", describe(tensor),
                "); use no_grad");
    TUTTI_CHECK(meta == nullptr || !meta->base.defined(), AutogradError,
                "a view of a tensor that is part of a graph is modified in place by ", recording.name, " (",
                describe(tensor), "); use the operation that is not in place, or no_grad");
    TUTTI_CHECK(impl.requires_grad || impl.storage->references.load(std::memory_order_relaxed) == 1,
                AutogradError, recording.name,
                " would record a gradient for memory that other tensors see without one (", describe(tensor),
                "); use the operation that is not in place, or no_grad");
    TUTTI_CHECK(!impl.is_inference, AutogradError, recording.name, ": a result of inference mode (",
                describe(tensor), ") can't enter a graph; clone it outside the InferenceGuard");
  }
  recording.dirty |= std::uint64_t{1} << i;
}

void mark_non_differentiable(Recording& recording, std::size_t i) {
  TUTTI_CHECK(i < 64, AutogradError, recording.name, ": mark_non_differentiable(", i,
              "); it takes outputs below 64");
  recording.non_differentiable |= std::uint64_t{1} << i;
}

void count_writes(Recording& recording) noexcept {
  for (std::size_t i = 0; i < recording.inputs.size() && i < 64; ++i) {
    if (((recording.dirty & ~recording.counted) >> i & 1) != 0) raw::bump_version(*recording.inputs[i]);
  }
  recording.counted = recording.dirty;
}

void finish(Recording& recording, std::span<Tensor* const> outputs, const ThreadState& state) {
  if (recording.dirty != recording.counted) count_writes(recording);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensor& output = *outputs[i];
    if (state.anomaly && output.defined()) check_forward_anomaly(recording, output, i);
    if (recording.node != nullptr) record_output(recording, output, i);
    if (state.inference && output.defined() && !shares_memory(recording, output))
      output.impl()->is_inference = true;
  }
}

void materialize(const Node& node, std::span<Tensor> grad_outputs) {
  const std::span<const OutputInfo> outputs = node.outputs();
  for (std::size_t i = 0; i < grad_outputs.size(); ++i) {
    if (grad_outputs[i].defined() || !outputs[i].differentiable) continue;
    grad_outputs[i] = zeros(outputs[i].sizes, outputs[i].dtype, outputs[i].device);
  }
}

void throw_input_index(std::string_view op, std::size_t given, std::size_t count) {
  tutti::detail::fail<AutogradError>(op, ": needs_input_grad(", given, ") of ", count,
                                     " differentiable inputs");
}
void throw_wrong_phase(std::string_view op, std::string_view member, std::string_view wanted) {
  tutti::detail::fail<AutogradError>(op, ": ", member, " is called outside of ", wanted);
}
void throw_gradient_count(std::string_view op, std::size_t given, std::size_t wanted) {
  tutti::detail::fail<AutogradError>(op, ": backward returned ", given, " gradients, wanted ", wanted,
                                     ": one for each differentiable input");
}
void throw_output_count(std::string_view op, std::size_t given, std::size_t wanted) {
  tutti::detail::fail<AutogradError>(op, ": backward takes ", given, " gradients, forward returned ", wanted,
                                     " outputs");
}

}  // namespace detail
}  // namespace tutti::autograd
