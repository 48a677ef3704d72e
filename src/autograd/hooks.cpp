// SPDX-License-Identifier: Apache-2.0
#include "tutti/autograd/hooks.hpp"

#include "autograd/meta.hpp"
#include "tutti/core/error.hpp"

namespace tutti::autograd {

namespace {

AccumulateGrad& accumulator_of(const Tensor& leaf, const char* what) {
  TUTTI_CHECK(leaf.requires_grad() && leaf.is_leaf(), AutogradError, what,
              " needs a leaf that requires grad; this one (", describe(leaf),
              leaf.is_leaf() ? ") requires none" : concat(") was made by ", leaf.grad_fn_name()));
  return *meta_of(leaf)->accumulator;
}

// The list of hooks on one output of a node.
std::shared_ptr<TensorHooks> node_hooks(Node& node, std::uint32_t output_nr) {
  detail::NodeHooks& hooks = HookAccess::ensure(node);
  for (const auto& entry : hooks.hooks) {
    if (entry.output_nr == output_nr) return entry.list;
  }
  hooks.hooks.push_back({output_nr, std::make_shared<TensorHooks>()});
  return hooks.hooks.back().list;
}

}  // namespace

void HookHandle::remove() noexcept {
  if (const std::shared_ptr<detail::HookRegistry> registry = registry_.lock()) registry->remove(id_);
  registry_.reset();
}

HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor& grad)> hook) {
  TUTTI_CHECK(tensor.requires_grad(), AutogradError,
              "register_hook needs a tensor that requires grad; this one (", describe(tensor),
              ") requires none");
  TUTTI_CHECK(hook != nullptr, ValueError, "register_hook: the hook is empty");
  Meta& meta = *meta_of(tensor);
  const std::shared_ptr<TensorHooks> list =
      meta.grad_fn ? node_hooks(*meta.grad_fn, meta.output_nr) : meta.accumulator->ensure_tensor_hooks();
  const std::uint64_t id = list->add(std::move(hook));
  return {list, id};
}

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf,
                                              std::function<void(const Tensor& leaf)> hook) {
  AccumulateGrad& accumulator = accumulator_of(leaf, "register_post_accumulate_grad_hook");
  TUTTI_CHECK(hook != nullptr, ValueError, "register_post_accumulate_grad_hook: the hook is empty");
  const std::shared_ptr<PostAccumulateHooks> list = accumulator.ensure_post_hooks();
  const std::uint64_t id = list->add(std::move(hook));
  return {list, id};
}

void set_grad_destination(const Tensor& leaf, const Tensor& view) {
  AccumulateGrad& accumulator = accumulator_of(leaf, "set_grad_destination");
  TUTTI_CHECK(view.sizes() == leaf.sizes() && view.dtype() == leaf.dtype() && view.device() == leaf.device(),
              AutogradError, "set_grad_destination of a leaf, ", describe(leaf), " on ", leaf.device(),
              ": the view is ", describe(view), " on ", view.device());
  const std::lock_guard lock(accumulator.mutex);
  accumulator.destination = view;
}

void clear_grad_destination(const Tensor& leaf) {
  AccumulateGrad& accumulator = accumulator_of(leaf, "clear_grad_destination");
  const std::lock_guard lock(accumulator.mutex);
  accumulator.destination = Tensor();
}

}  // namespace tutti::autograd
