// SPDX-License-Identifier: Apache-2.0
/// \file
/// Modules that hold a run of modules, named "0", "1", ...
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/core/error.hpp"
#include "tutti/nn/module.hpp"

namespace tutti::nn {

/// Modules of one type, made in a loop; the owner's forward says what happens with them.
/// `nn::ModuleList<Block> blocks{*this, "blocks", 6, BlockOptions{.width = 64}};`
template <class Element>
class ModuleList : public Module<ModuleList<Element>> {
 public:
  /// An empty list on its own.
  ModuleList() = default;
  /// As a member of `parent`, with `count` elements, each Element(args...).
  template <class... Args>
  ModuleList(ModuleBase& parent, std::string_view name, int count, const Args&... args)
      : Module<ModuleList>(parent, name) {
    for (int i = 0; i < count; ++i) emplace_back(args...);
  }
  ModuleList(ModuleList&&) noexcept = default;
  ModuleList& operator=(ModuleList&&) noexcept = default;
  ModuleList(const ModuleList& other) : Module<ModuleList>(other) {
    for (const auto& element : other.elements_) elements_.push_back(std::make_unique<Element>(*element));
  }

  /// Makes Element(args...) at the end, named by its place. References to elements stay valid.
  template <class... Args>
  Element& emplace_back(Args&&... args) {
    elements_.push_back(std::make_unique<Element>(std::forward<Args>(args)...));
    return *elements_.back();
  }
  /// Number of elements.
  std::size_t size() const noexcept { return elements_.size(); }
  /// Element i. IndexError beyond the last one.
  Element& operator[](std::size_t i) {
    TUTTI_CHECK(i < elements_.size(), IndexError, "ModuleList: index ", i, " in a list of ",
                elements_.size());
    return *elements_[i];
  }

  /// Walks over the elements in order: a std::forward_iterator. emplace_back makes it invalid.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;  ///< For algorithms of before C++20.
    using value_type = Element;                           ///< What it points at.
    using difference_type = std::ptrdiff_t;               ///< Distance of two.
    using pointer = Element*;                             ///< What operator-> gives.
    using reference = Element&;                           ///< What operator* gives.

    /// Points at nothing; comparable with others of its kind.
    Iterator() noexcept = default;
    /// At the element that *position holds.
    explicit Iterator(const std::unique_ptr<Element>* position) noexcept : position_(position) {}
    /// The element.
    reference operator*() const noexcept { return **position_; }
    /// Its members.
    pointer operator->() const noexcept { return position_->get(); }
    /// To the next element.
    Iterator& operator++() noexcept {
      ++position_;
      return *this;
    }
    /// To the next element; gives where it was.
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++position_;
      return before;
    }
    /// True if both are at one place of one list.
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept = default;

   private:
    const std::unique_ptr<Element>* position_ = nullptr;
  };
  /// At the first element, for `for (Block& block : blocks)`.
  Iterator begin() noexcept { return Iterator(elements_.data()); }
  /// Behind the last element.
  Iterator end() noexcept { return Iterator(elements_.data() + elements_.size()); }
  std::string type_name() const override { return "ModuleList"; }

 protected:
  void append_dynamic_children(std::vector<NamedModule>& children) override {
    for (std::size_t i = 0; i < elements_.size(); ++i)
      children.push_back({std::to_string(i), elements_[i].get()});
  }

 private:
  std::vector<std::unique_ptr<Element>> elements_;
};

/// A type derived from Module, or a reference to one.
template <class T>
concept IsModule = std::derived_from<std::remove_cvref_t<T>, ModuleBase>;

/// Modules called one after the other: each takes the Tensor that the one before it returned.
/// `nn::Sequential net{nn::Linear{{.in_features = 784, .out_features = 10}}, nn::ReLU{}};`
class TUTTI_API Sequential : public Module<Sequential> {
 public:
  /// No layers: the identity.
  Sequential() = default;
  /// On its own, of these layers; each must take a Tensor and return one.
  template <IsModule... Layers>
  requires(sizeof...(Layers) > 0 &&
           !(sizeof...(Layers) == 1 && (std::same_as<std::remove_cvref_t<Layers>, Sequential> &&
                                        ...))) explicit Sequential(Layers&&... layers) {
    (push_back(std::forward<Layers>(layers)), ...);
  }
  /// As a member of `parent`.
  template <IsModule... Layers>
  Sequential(ModuleBase& parent, std::string_view name, Layers&&... layers) : Module(parent, name) {
    (push_back(std::forward<Layers>(layers)), ...);
  }
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(Sequential&&) noexcept = default;
  Sequential(const Sequential& other);

  /// Moves or copies (ModuleError outside of clone()) a layer to the end, named by its place.
  template <IsModule Layer>
  void push_back(Layer&& layer) {
    layers_.push_back(std::make_unique<Held<std::remove_cvref_t<Layer>>>(std::forward<Layer>(layer)));
  }
  /// Number of layers.
  std::size_t size() const noexcept { return layers_.size(); }
  /// What the last layer returns; x itself without layers.
  Tensor forward(const Tensor& x);

 protected:
  void append_dynamic_children(std::vector<NamedModule>& children) override;

 private:
  struct Layer {
    virtual ~Layer() = default;
    virtual Tensor call(Tensor x) = 0;
    virtual ModuleBase& module() = 0;
    virtual std::unique_ptr<Layer> copy() const = 0;
  };
  template <class T>
  struct Held final : Layer {
    explicit Held(T&& value) : held(std::move(value)) {}
    explicit Held(const T& value) : held(value) {}
    Tensor call(Tensor x) override { return held(std::move(x)); }
    ModuleBase& module() override { return held; }
    std::unique_ptr<Layer> copy() const override { return std::make_unique<Held>(held); }
    T held;
  };
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace tutti::nn
