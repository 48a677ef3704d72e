// SPDX-License-Identifier: Apache-2.0
// Built on pack and unpack hooks: the graph is the ordinary one, so gradients and hooks are those of a run without checkpoint.
#include "tutti/autograd/checkpoint.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "autograd/meta.hpp"
#include "core/draw_scope.hpp"
#include "tutti/autograd/saved_tensors_hooks.hpp"
#include "tutti/core/random.hpp"

namespace tutti::autograd {

namespace {

struct Frame;

// Stands for one saved tensor of the block.
struct Kept {
  std::shared_ptr<Frame> frame;
  Dims sizes;
  DType dtype;
  std::uint32_t version;
  Tensor tensor;  // once recomputed
};

// One run of a block.
struct Frame {
  detail::CheckpointFunction recompute;
  std::vector<Tensor> inputs;
  std::vector<std::uint32_t> versions;
  PhiloxState random;              // the default generator's, at the start
  std::vector<PhiloxState> draws;  // of whichever generators
  std::mutex mutex;
  // In the order in which the operations saved; gone once their node is released.
  std::vector<std::weak_ptr<Kept>> kept;
};

// Puts the default generator's state back when it dies: the function may seed it, or look at it.
class RandomStateGuard {
 public:
  explicit RandomStateGuard(const PhiloxState& state) : previous_(default_generator().state()) {
    default_generator().set_state(state);
  }
  ~RandomStateGuard() { default_generator().set_state(previous_); }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  PhiloxState previous_;
};

// Tells operations that write more than their result that they did so the first time.
class RecomputingGuard {
 public:
  RecomputingGuard() noexcept : previous_(std::exchange(detail::thread_state().recomputing, true)) {}
  ~RecomputingGuard() { detail::thread_state().recomputing = previous_; }
  RecomputingGuard(const RecomputingGuard&) = delete;
  RecomputingGuard& operator=(const RecomputingGuard&) = delete;

 private:
  bool previous_;
};

void check_inputs(const Frame& frame) {
  for (std::size_t i = 0; i < frame.inputs.size(); ++i) {
    const Tensor& input = frame.inputs[i];
    TUTTI_CHECK(!input.defined() || input.version() == frame.versions[i], AutogradError, "checkpoint: input ",
                i, " (", describe(input), ") was modified in place: version ", input.version(), ", wanted ",
                frame.versions[i]);
  }
}

void keep(Frame& frame, std::size_t i, const Tensor& tensor) {
  TUTTI_CHECK(i < frame.kept.size(), AutogradError,
              "checkpoint: the function saves more tensors when it is computed again: ", i + 1, ", wanted ",
              frame.kept.size());
  const std::shared_ptr<Kept> kept = frame.kept[i].lock();
  if (kept == nullptr) return;
  TUTTI_CHECK(tensor.sizes() == kept->sizes && tensor.dtype() == kept->dtype, AutogradError,
              "checkpoint: the function saves another tensor ", i,
              " when it is computed again: ", describe(tensor), ", wanted ", kept->dtype, " ", kept->sizes);
  // Captured parameters and buffers are saved tensors too; what the function itself makes has the same count both times.
  TUTTI_CHECK(tensor.version() == kept->version, AutogradError, "checkpoint: saved tensor ", i, " (",
              describe(tensor), ") was modified in place: version ", tensor.version(), ", wanted ",
              kept->version);
  kept->tensor = tensor.detach();
}

void recompute(Frame& frame) {
  check_inputs(frame);
  const EnableGradGuard grad_guard;
  const RecomputingGuard recomputing_guard;
  const RandomStateGuard random_guard(frame.random);
  const DrawScope draws(frame.draws, DrawScope::Mode::kRepeat);
  std::size_t count = 0;
  const SavedTensorsHooksGuard hooks(
      [&](const Tensor& tensor) {
        keep(frame, count++, tensor);
        return nullptr;
      },
      [](const std::shared_ptr<void>&) { return Tensor(); });
  frame.recompute(frame.inputs);
  TUTTI_CHECK(count == frame.kept.size(), AutogradError,
              "checkpoint: the function saves fewer tensors when it is computed again: ", count, ", wanted ",
              frame.kept.size());
  TUTTI_CHECK(draws.count() == frame.draws.size(), AutogradError,
              "checkpoint: the function draws random numbers more or less often when it is computed again: ",
              draws.count(), ", wanted ", frame.draws.size());
}

Tensor unpack(const std::shared_ptr<void>& packed) {
  Kept& kept = *static_cast<Kept*>(packed.get());
  const std::lock_guard lock(kept.frame->mutex);
  if (!kept.tensor.defined()) recompute(*kept.frame);
  return kept.tensor;
}

}  // namespace

void detail::run_checkpointed(const std::function<void()>& forward, CheckpointFunction recompute,
                              std::vector<Tensor> inputs) {
  if (!grad_enabled()) {
    forward();
    return;
  }
  const auto frame = std::make_shared<Frame>();
  frame->recompute = std::move(recompute);
  for (const Tensor& input : inputs) frame->versions.push_back(input.defined() ? input.version() : 0);
  frame->inputs = std::move(inputs);
  frame->random = default_generator().state();
  const SavedTensorsHooksGuard hooks(
      [frame](const Tensor& tensor) {
        auto kept = std::make_shared<Kept>(Kept{frame, tensor.sizes(), tensor.dtype(), tensor.version(), {}});
        frame->kept.push_back(kept);
        return kept;
      },
      unpack);
  const DrawScope draws(frame->draws, DrawScope::Mode::kNote);
  forward();
}

}  // namespace tutti::autograd
