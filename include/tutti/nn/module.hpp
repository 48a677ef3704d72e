// SPDX-License-Identifier: Apache-2.0
/// \file
/// Module: a struct whose members are its layers, parameters and buffers.
///
/// \code
/// struct Net : nn::Module<Net> {
///   using Module::Module;
///   nn::Linear fc{*this, "fc", {.in_features = 784, .out_features = 10}};
///   Tensor forward(const Tensor& x) { return fc(x.flatten(1)); }
/// };
/// \endcode
///
/// A member registers itself with its owner under the name it is given, once, where it is declared. The owner keeps where
/// the member lies within itself, not which tensor it holds: so modules can be moved, and two members may be made to hold
/// one tensor (`head.weight = embedding.weight`), which then counts once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/core/error.hpp"
#include "tutti/core/export.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/type_name.hpp"
#include "tutti/tensor/state_dict.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::nn {

class ModuleBase;

/// A trainable tensor of a module: a Tensor that its module knows by name. Assigning another tensor to it makes the module
/// use that one (so two parameters can be tied). An undefined parameter (no bias) is not listed.
class TUTTI_API Parameter : public Tensor {
 public:
  /// `value` becomes a leaf that requires grad if its dtype is floating.
  Parameter(ModuleBase& owner, std::string_view name, Tensor value);
  Parameter(const Parameter&) = default;
  Parameter(Parameter&&) = default;
  Parameter& operator=(const Parameter&) = default;
  Parameter& operator=(Parameter&&) = default;
  Parameter& operator=(Tensor value);
};

/// A tensor of a module that is not trained: running statistics, counters. Listed in state_dict if persistent.
class TUTTI_API Buffer : public Tensor {
 public:
  /// Registers `value` with `owner`. ModuleError if the name is taken or this is no member of `owner`.
  Buffer(ModuleBase& owner, std::string_view name, Tensor value, bool persistent = true);
  Buffer(const Buffer&) = default;
  Buffer(Buffer&&) = default;
  Buffer& operator=(const Buffer&) = default;
  Buffer& operator=(Buffer&&) = default;
  Buffer& operator=(Tensor value);
};

/// A tensor and its dotted name, as in PyTorch: "layer1.0.conv1.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
/// A module and its dotted name; the root's is empty.
struct NamedModule {
  std::string name;
  ModuleBase* module;
};

/// What load_state_dict found. Names are sorted as they stand in the module, unexpected ones as in the dict.
struct LoadReport {
  std::vector<std::string> missing;     ///< In the module, not in the dict.
  std::vector<std::string> unexpected;  ///< In the dict, not in the module.
  std::vector<std::string>
      misshapen;  ///< In both with other sizes: "fc.weight: module [10, 5], state_dict [10, 4]".
  /// True if everything was found and fits.
  bool ok() const noexcept { return missing.empty() && unexpected.empty() && misshapen.empty(); }
};

/// Removes a module's hook when it dies.
class TUTTI_API ModuleHookHandle {
 public:
  ModuleHookHandle() noexcept = default;
  explicit ModuleHookHandle(std::weak_ptr<bool> alive, std::function<void()> remove);
  ModuleHookHandle(ModuleHookHandle&&) noexcept = default;
  ModuleHookHandle& operator=(ModuleHookHandle&& other) noexcept;
  ~ModuleHookHandle();
  /// Removes the hook now.
  void remove() noexcept;
  /// Leaves the hook in place for ever.
  void detach() noexcept { remove_ = nullptr; }

 private:
  std::weak_ptr<bool> alive_;
  std::function<void()> remove_;
};

/// What all modules have in common. Derive from Module<Derived>, not from this.
class TUTTI_API ModuleBase {
 public:
  /// Called before forward.
  using ForwardPreHook = std::function<void(ModuleBase& module)>;
  /// Called after forward with the Tensors of its result.
  using ForwardHook = std::function<void(ModuleBase& module, std::span<const Tensor> outputs)>;

  virtual ~ModuleBase();

  /// Parameters of this module and all below, each module's own before those of its children, both in the order of declaration; a
  /// tensor that stands in several places is listed once, by its first name.
  std::vector<Tensor> parameters() const;
  /// The same with their names.
  std::vector<NamedTensor> named_parameters() const;
  /// Buffers, listed as the parameters are.
  std::vector<Tensor> buffers() const;
  /// The same with their names.
  std::vector<NamedTensor> named_buffers() const;
  /// Modules, listed as the parameters are.
  std::vector<NamedModule> named_modules();   ///< This one first.
  std::vector<NamedModule> named_children();  ///< Direct ones.

  /// All parameters and persistent buffers by PyTorch's names; tied ones under each name. Tensors share memory with the module.
  StateDict state_dict() const;
  /// Copies values into the module's tensors, converting dtypes. strict: ModuleError that lists every missing, unexpected
  /// and misshapen entry, and nothing is changed; else what fits is loaded and the report says the rest.
  LoadReport load_state_dict(const StateDict& state, bool strict = true);

  /// Training or evaluation mode of this module and all below.
  void train(bool on = true);
  void eval() { train(false); }  ///< train(false).
  /// The mode that train() and eval() set; a new module is in training.
  bool is_training() const noexcept { return training_; }

  /// Moves parameters and buffers; handles that others hold (an optimizer's) stay valid, gradients move along. Those that are
  /// there already are left as they are.
  void to(Device device);
  /// Converts floating parameters and buffers, in the same way.
  void to(DType dtype);
  /// Sets for all floating parameters whether they collect a gradient.
  void requires_grad_(bool on = true);
  /// Forgets all gradients.
  void zero_grad();
  /// Calls f with this module and all below, children first.
  void apply(const std::function<void(ModuleBase&)>& f);
  /// A table of modules, shapes and numbers of parameters.
  std::string summary();
  /// Name of the module's type without namespaces: "Linear".
  virtual std::string type_name() const = 0;

  /// Runs before forward whenever the module is called.
  [[nodiscard]] ModuleHookHandle register_forward_pre_hook(ForwardPreHook hook);
  /// Runs after forward with the Tensors of its result (a Tensor, or a pair, tuple or array of them).
  [[nodiscard]] ModuleHookHandle register_forward_hook(ForwardHook hook);

 protected:
  explicit ModuleBase(std::size_t object_bytes) noexcept;
  ModuleBase(ModuleBase& parent, std::string_view name, std::size_t object_bytes);
  ModuleBase(ModuleBase&& other) noexcept;
  ModuleBase& operator=(ModuleBase&& other) noexcept;
  /// Only inside clone(): a copy made otherwise would share its tensors by accident; ModuleError.
  ModuleBase(const ModuleBase& other);
  ModuleBase& operator=(const ModuleBase&) = delete;

  /// Modules that own their children elsewhere (ModuleList, Sequential) add them.
  virtual void append_dynamic_children(std::vector<NamedModule>& children);

  /// An error leaves forward: its message is to say of which module.
  void add_place(Error& error) const noexcept;
  bool has_hooks() const noexcept { return hooks_ != nullptr; }
  void run_forward_pre_hooks();
  void run_forward_hooks(std::span<const Tensor> outputs);

  /// Allows copies on this thread while it lives.
  class TUTTI_API CloneScope {
   public:
    CloneScope() noexcept;
    ~CloneScope();
  };
  /// Gives every slot a copy of its tensor; slots that shared one still do.
  void separate_tensors();

 private:
  friend class Parameter;
  friend class Buffer;
  enum class SlotKind : std::uint8_t { kParameter, kBuffer, kTransientBuffer, kChild };
  struct Slot {
    std::string name;
    std::ptrdiff_t offset;  // from this ModuleBase to the member
    SlotKind kind;
  };
  struct Hooks;
  struct PlacedTensor;  // a slot's tensor with its full name

  void add_slot(std::string_view name, const void* member, SlotKind kind);
  Tensor& tensor_of(const Slot& slot) const;
  ModuleBase& child_of(const Slot& slot) const;
  std::vector<NamedModule> children_of() const;
  void collect(const std::string& prefix, std::vector<PlacedTensor>& out) const;
  std::vector<NamedTensor> unique(bool parameters) const;
  void collect_unnamed(bool parameters, std::vector<Tensor>& out) const;
  Hooks& hooks();

  std::vector<Slot> slots_;
  std::size_t object_bytes_;
  bool training_ = true;
  Hooks* hooks_ = nullptr;
};

namespace detail {
/// The Tensors of a forward's result.
template <class Result>
std::vector<Tensor> tensors_of(const Result& result) {
  if constexpr (std::is_convertible_v<const Result&, const Tensor&>) {
    return {result};
  } else if constexpr (requires { std::tuple_size<Result>::value; }) {
    std::vector<Tensor> tensors;
    std::apply(
        [&](const auto&... parts) {
          (
              [&] {
                if constexpr (std::is_convertible_v<decltype(parts), const Tensor&>) tensors.push_back(parts);
              }(),
              ...);
        },
        result);
    return tensors;
  } else {
    return {};
  }
}
}  // namespace detail

/// Base of a user's module: see the file's head. Derived has `forward` of any signature; call the module itself,
/// `net(x)`, so that its hooks run.
template <class Derived>
class Module : public ModuleBase {
 public:
  /// A module on its own: the root, or an element of a ModuleList or Sequential.
  Module() noexcept : ModuleBase(sizeof(Derived)) {}
  /// A member of `parent`: ModuleError if it isn't one, or if the name is taken.
  Module(ModuleBase& parent, std::string_view name) : ModuleBase(parent, name, sizeof(Derived)) {}

  /// Calls forward(args...), between the hooks if there are any, and returns what it returns. An Error that leaves it names
  /// this module: "...; in Net.features.0 (Conv2d)".
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    auto& self = static_cast<Derived&>(*this);
    phase::begin_forward();
    try {
      if (!has_hooks()) [[likely]]
        return self.forward(std::forward<Args>(args)...);
      run_forward_pre_hooks();
      decltype(auto) result = self.forward(std::forward<Args>(args)...);
      run_forward_hooks(detail::tensors_of(result));
      return result;
    } catch (Error& error) {
      add_place(error);
      throw;
    }
  }

  /// A deep copy: own tensors, ties kept, no hooks.
  Derived clone() const {
    CloneScope scope;
    Derived copy(static_cast<const Derived&>(*this));
    copy.separate_tensors();
    return copy;
  }

  /// "Net" of my::Net.
  std::string type_name() const override { return std::string(tutti::detail::type_name<Derived>()); }
};

}  // namespace tutti::nn
