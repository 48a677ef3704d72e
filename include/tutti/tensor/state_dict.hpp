// SPDX-License-Identifier: Apache-2.0
/// \file
/// StateDict: what anything that can be saved puts its state into: names to tensors and numbers, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// An ordered list of named values. Names are unique. Looking up is linear for few entries, indexed otherwise.
class TUTTI_API StateDict {
 public:
  using Value = std::variant<Tensor, std::int64_t, double, std::string>;
  using Entry = std::pair<std::string, Value>;

  /// Adds or replaces.
  void set(std::string name, Value value);
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  const Value* find(std::string_view name) const noexcept;
  /// Throws Error naming the entry, and its kind if it is of another one.
  const Tensor& tensor(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  ///< Takes integers too.
  const std::string& text(std::string_view name) const;
  /// Adds all entries of `other` as prefix + name.
  void merge(std::string_view prefix, const StateDict& other);
  /// Entries whose names start with prefix, without it.
  StateDict with_prefix(std::string_view prefix) const;

  std::size_t size() const noexcept { return entries_.size(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tutti
