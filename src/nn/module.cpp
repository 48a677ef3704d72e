// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/module.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "nn/placed_tensor.hpp"
#include "tensor/raw.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/error.hpp"

namespace tutti::nn {

namespace {

thread_local int clone_depth = 0;

void check_name(std::string_view name, const std::string& owner) {
  TUTTI_CHECK(!name.empty() && name.find('.') == std::string_view::npos, ModuleError, owner, ": \"", name,
              "\" is no name for a member: it must not be empty or contain a dot");
}

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

// ---- slots ------------------------------------------------------------------------------------------------------------

Parameter::Parameter(ModuleBase& owner, std::string_view name, Tensor value) : Tensor(std::move(value)) {
  if (defined() && is_floating_point(dtype())) requires_grad_();
  owner.add_slot(name, static_cast<Tensor*>(this), ModuleBase::SlotKind::kParameter);
}
Parameter& Parameter::operator=(Tensor value) {
  Tensor::operator=(std::move(value));
  return *this;
}

Buffer::Buffer(ModuleBase& owner, std::string_view name, Tensor value, bool persistent)
    : Tensor(std::move(value)) {
  owner.add_slot(name, static_cast<Tensor*>(this),
                 persistent ? ModuleBase::SlotKind::kBuffer : ModuleBase::SlotKind::kTransientBuffer);
}
Buffer& Buffer::operator=(Tensor value) {
  Tensor::operator=(std::move(value));
  return *this;
}

void ModuleBase::add_place(Error& error) const noexcept {
  try {
    Error::Place place{this, {}, type_name()};
    if (const Error::Place* inner = error.place()) {
      const std::vector<NamedModule> children = children_of();
      const auto child = std::find_if(children.begin(), children.end(), [inner](const NamedModule& each) {
        return each.module == inner->module;
      });
      // A module that is no child of this one keeps its own place.
      if (child == children.end()) return;
      place.path = inner->path.empty() ? child->name : join(child->name, inner->path);
      place.type = inner->type;
    }
    error.set_place(std::move(place), type_name());
  } catch (const std::exception&) {
    return;  // out of memory: the error stays as it was
  }
}

// ---- hooks ------------------------------------------------------------------------------------------------------------

struct ModuleBase::Hooks {
  template <class Hook>
  struct Entry {
    std::uint64_t id;
    Hook hook;
  };
  std::uint64_t next_id = 1;
  std::vector<Entry<ForwardPreHook>> before;
  std::vector<Entry<ForwardHook>> after;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

ModuleHookHandle::ModuleHookHandle(std::weak_ptr<bool> alive, std::function<void()> remove)
    : alive_(std::move(alive)), remove_(std::move(remove)) {}
ModuleHookHandle& ModuleHookHandle::operator=(ModuleHookHandle&& other) noexcept {
  if (this != &other) {
    remove();
    alive_ = std::move(other.alive_);
    remove_ = std::exchange(other.remove_, nullptr);
  }
  return *this;
}
ModuleHookHandle::~ModuleHookHandle() { remove(); }
void ModuleHookHandle::remove() noexcept {
  if (remove_ && !alive_.expired()) remove_();
  remove_ = nullptr;
}

ModuleBase::Hooks& ModuleBase::hooks() {
  if (hooks_ == nullptr) hooks_ = new Hooks;
  return *hooks_;
}

namespace {
template <class Entries>
ModuleHookHandle add_hook(Entries& entries, std::uint64_t id, typename Entries::value_type entry,
                          const std::shared_ptr<bool>& alive) {
  entries.push_back(std::move(entry));
  return ModuleHookHandle(
      alive, [&entries, id] { std::erase_if(entries, [id](const auto& e) { return e.id == id; }); });
}
}  // namespace

ModuleHookHandle ModuleBase::register_forward_pre_hook(ForwardPreHook hook) {
  TUTTI_CHECK(hook != nullptr, ValueError, "register_forward_pre_hook: the hook is empty");
  Hooks& all = hooks();
  const std::uint64_t id = all.next_id++;
  return add_hook(all.before, id, {id, std::move(hook)}, all.alive);
}
ModuleHookHandle ModuleBase::register_forward_hook(ForwardHook hook) {
  TUTTI_CHECK(hook != nullptr, ValueError, "register_forward_hook: the hook is empty");
  Hooks& all = hooks();
  const std::uint64_t id = all.next_id++;
  return add_hook(all.after, id, {id, std::move(hook)}, all.alive);
}
// A hook may remove itself or others while the list runs: it runs over a copy.
void ModuleBase::run_forward_pre_hooks() {
  for (const auto& entry : std::vector(hooks_->before)) entry.hook(*this);
}
void ModuleBase::run_forward_hooks(std::span<const Tensor> outputs) {
  for (const auto& entry : std::vector(hooks_->after)) entry.hook(*this, outputs);
}

// ---- construction, moves, copies ----------------------------------------------------------------------------------------

ModuleBase::ModuleBase(std::size_t object_bytes) noexcept : object_bytes_(object_bytes) {}
ModuleBase::ModuleBase(ModuleBase& parent, std::string_view name, std::size_t object_bytes)
    : object_bytes_(object_bytes) {
  parent.add_slot(name, this, SlotKind::kChild);
}
ModuleBase::~ModuleBase() { delete hooks_; }

ModuleBase::ModuleBase(ModuleBase&& other) noexcept
    : slots_(other.slots_),
      object_bytes_(other.object_bytes_),
      training_(other.training_),
      hooks_(std::exchange(other.hooks_, nullptr)) {}
ModuleBase& ModuleBase::operator=(ModuleBase&& other) noexcept {
  if (this != &other) {
    slots_ = other.slots_;
    object_bytes_ = other.object_bytes_;
    training_ = other.training_;
    delete hooks_;
    hooks_ = std::exchange(other.hooks_, nullptr);
  }
  return *this;
}
ModuleBase::ModuleBase(const ModuleBase& other)
    : slots_(other.slots_), object_bytes_(other.object_bytes_), training_(other.training_) {
  TUTTI_CHECK(clone_depth > 0, ModuleError,
              "a module was copied: the copy would share its parameters; use clone() for a deep copy, or "
              "pass by reference");
}
ModuleBase::CloneScope::CloneScope() noexcept { ++clone_depth; }
ModuleBase::CloneScope::~CloneScope() { --clone_depth; }

void ModuleBase::add_slot(std::string_view name, const void* member, SlotKind kind) {
  check_name(name, concat("a module with ", slots_.size(), " members"));
  for (const Slot& slot : slots_) {
    TUTTI_CHECK(slot.name != name, ModuleError, "two members of one module are named \"", name, "\"");
  }
  const std::ptrdiff_t offset = static_cast<const char*>(member) - reinterpret_cast<const char*>(this);
  TUTTI_CHECK(
      offset > 0 && static_cast<std::size_t>(offset) < object_bytes_, ModuleError, "\"", name,
      "\" registers with a module that it is no member of: declare it inside the struct that derives from "
      "nn::Module<itself>, or put it into a ModuleList or Sequential");
  slots_.push_back({std::string(name), offset, kind});
}

Tensor& ModuleBase::tensor_of(const Slot& slot) const {
  return *reinterpret_cast<Tensor*>(reinterpret_cast<char*>(const_cast<ModuleBase*>(this)) + slot.offset);
}

ModuleBase& ModuleBase::child_of(const Slot& slot) const {
  return *reinterpret_cast<ModuleBase*>(reinterpret_cast<char*>(const_cast<ModuleBase*>(this)) + slot.offset);
}

void ModuleBase::separate_tensors() {
  const autograd::NoGradGuard no_grad;
  std::unordered_map<const void*, Tensor> copies;
  apply([&](ModuleBase& module) {
    for (const Slot& slot : module.slots_) {
      if (slot.kind == SlotKind::kChild) continue;
      Tensor& tensor = module.tensor_of(slot);
      if (!tensor.defined()) continue;
      Tensor& copy = copies[tensor.impl()];
      if (!copy.defined()) {
        copy = raw::clone(tensor);
        if (tensor.requires_grad()) copy.requires_grad_();
      }
      tensor = copy;
    }
  });
}

// ---- the tree -----------------------------------------------------------------------------------------------------------

void ModuleBase::append_dynamic_children(std::vector<NamedModule>& /*children*/) {}

std::vector<NamedModule> ModuleBase::children_of() const {
  std::vector<NamedModule> children;
  for (const Slot& slot : slots_) {
    if (slot.kind == SlotKind::kChild) children.push_back({slot.name, &child_of(slot)});
  }
  const_cast<ModuleBase*>(this)->append_dynamic_children(children);
  return children;
}
std::vector<NamedModule> ModuleBase::named_children() { return children_of(); }

std::vector<NamedModule> ModuleBase::named_modules() {
  std::vector<NamedModule> modules{{"", this}};
  for (const NamedModule& child : children_of()) {
    for (const NamedModule& below : child.module->named_modules()) {
      modules.push_back({below.name.empty() ? child.name : child.name + "." + below.name, below.module});
    }
  }
  return modules;
}

void ModuleBase::collect(const std::string& prefix, std::vector<PlacedTensor>& out) const {
  for (const Slot& slot : slots_) {
    if (slot.kind == SlotKind::kChild) continue;
    Tensor& tensor = tensor_of(slot);
    if (tensor.defined()) out.push_back({join(prefix, slot.name), &tensor, slot.kind});
  }
  for (const NamedModule& child : children_of()) child.module->collect(join(prefix, child.name), out);
}

std::vector<NamedTensor> ModuleBase::unique(bool parameters) const {
  std::vector<PlacedTensor> placed;
  collect("", placed);
  std::unordered_set<const void*> seen;
  std::vector<NamedTensor> named;
  for (const PlacedTensor& place : placed) {
    if ((place.kind == SlotKind::kParameter) != parameters) continue;
    if (seen.insert(place.tensor->impl()).second) named.push_back({place.name, *place.tensor});
  }
  return named;
}

std::vector<NamedTensor> ModuleBase::named_parameters() const { return unique(true); }
std::vector<NamedTensor> ModuleBase::named_buffers() const { return unique(false); }

// The same tensors in the same order. Training asks for the buffers in every step: no names, and no more than a walk where there
// is none.
void ModuleBase::collect_unnamed(bool parameters, std::vector<Tensor>& out) const {
  for (const Slot& slot : slots_) {
    if (slot.kind == SlotKind::kChild || (slot.kind == SlotKind::kParameter) != parameters) continue;
    if (const Tensor& tensor = tensor_of(slot); tensor.defined()) out.push_back(tensor);
  }
  for (const Slot& slot : slots_) {
    if (slot.kind == SlotKind::kChild) child_of(slot).collect_unnamed(parameters, out);
  }
  std::vector<NamedModule> more;
  const_cast<ModuleBase*>(this)->append_dynamic_children(more);
  for (const NamedModule& child : more) child.module->collect_unnamed(parameters, out);
}

namespace {
void keep_first_of_each(std::vector<Tensor>& tensors) {
  if (tensors.size() < 2) return;
  std::unordered_set<const void*> seen;
  std::erase_if(tensors, [&](const Tensor& tensor) { return !seen.insert(tensor.impl()).second; });
}
}  // namespace
std::vector<Tensor> ModuleBase::parameters() const {
  std::vector<Tensor> tensors;
  collect_unnamed(true, tensors);
  keep_first_of_each(tensors);
  return tensors;
}
std::vector<Tensor> ModuleBase::buffers() const {
  std::vector<Tensor> tensors;
  collect_unnamed(false, tensors);
  keep_first_of_each(tensors);
  return tensors;
}

void ModuleBase::apply(const std::function<void(ModuleBase&)>& f) {
  TUTTI_CHECK(f != nullptr, ValueError, "apply: the function is empty");
  for (const NamedModule& child : children_of()) child.module->apply(f);
  f(*this);
}

// ---- modes and conversions ------------------------------------------------------------------------------------------------

void ModuleBase::train(bool on) {
  apply([on](ModuleBase& module) { module.training_ = on; });
}

namespace {
// Gives a tensor that others hold handles to another memory; its gradient, which a frozen one may have too, moves along. One that
// is so already keeps its memory and version: what saved it for backward stays valid.
void convert_in_place(const Tensor& tensor, DType dtype, Device device) {
  if (tensor.dtype() == dtype && tensor.device() == device) return;
  const auto convert = [&](const Tensor& t) { return t.detach().to(device).to(dtype); };
  const Tensor grad = tensor.grad();
  raw::set_data(tensor, convert(tensor));
  if (grad.defined()) Tensor(tensor).set_grad(convert(grad));
}
}  // namespace

void ModuleBase::to(Device device) {
  const autograd::NoGradGuard no_grad;
  for (const Tensor& tensor : parameters()) convert_in_place(tensor, tensor.dtype(), device);
  for (const Tensor& tensor : buffers()) convert_in_place(tensor, tensor.dtype(), device);
}
void ModuleBase::to(DType dtype) {
  TUTTI_CHECK(is_floating_point(dtype), DTypeError,
              "a module's parameters can be converted to a floating dtype only, given ", dtype);
  const autograd::NoGradGuard no_grad;
  const auto convert = [&](const Tensor& tensor) {
    if (is_floating_point(tensor.dtype())) convert_in_place(tensor, dtype, tensor.device());
  };
  for (const Tensor& tensor : parameters()) convert(tensor);
  for (const Tensor& tensor : buffers()) convert(tensor);
}
void ModuleBase::requires_grad_(bool on) {
  for (Tensor& parameter : parameters()) {
    if (is_floating_point(parameter.dtype())) parameter.requires_grad_(on);
  }
}
void ModuleBase::zero_grad() {
  for (Tensor& parameter : parameters()) parameter.set_grad({});
}

// ---- summary ----------------------------------------------------------------------------------------------------------------

std::string ModuleBase::summary() {
  std::string text;
  std::int64_t total = 0;
  for (const NamedTensor& parameter : named_parameters()) total += parameter.tensor.numel();
  for (const NamedModule& entry : named_modules()) {
    const auto depth = static_cast<std::size_t>(
        entry.name.empty() ? 0 : 1 + std::count(entry.name.begin(), entry.name.end(), '.'));
    const std::size_t dot = entry.name.rfind('.');
    std::string line(2 * depth, ' ');
    if (!entry.name.empty())
      line += concat(dot == std::string::npos ? entry.name : entry.name.substr(dot + 1), ": ");
    line += entry.module->type_name();
    std::string shapes;
    std::int64_t own = 0;
    for (const Slot& slot : entry.module->slots_) {
      if (slot.kind != SlotKind::kParameter) continue;
      const Tensor& tensor = entry.module->tensor_of(slot);
      if (!tensor.defined()) continue;
      shapes += concat(shapes.empty() ? "  " : ", ", slot.name, " ", tensor.sizes());
      own += tensor.numel();
    }
    if (line.size() < 32) line.resize(32, ' ');
    if (own > 0) line += concat(shapes, "  ", own, " parameters");
    while (line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text + concat("total: ", total, " parameters\n");
}

}  // namespace tutti::nn
