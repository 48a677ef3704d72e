// SPDX-License-Identifier: Apache-2.0
/// \file
/// StateDict: what anything that can be saved puts its state into: names to tensors and numbers, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// A list of named values in the order in which they were added. Names are unique; looking one up is a binary
/// search.
class TUTTI_API StateDict {
 public:
  /// What an entry may hold. Tensors are handles: they share memory with what they were taken from.
  using Value = std::variant<Tensor, std::int64_t, double, std::string>;
  /// Name and value.
  using Entry = std::pair<std::string, Value>;

  // Not inline: their bodies cost every translation unit compile time.
  StateDict();
  StateDict(const StateDict& other);
  StateDict(StateDict&& other) noexcept;
  StateDict& operator=(const StateDict& other);
  StateDict& operator=(StateDict&& other) noexcept;
  ~StateDict();

  /// Adds an entry at the end, or replaces the value of the one of this name.
  void set(std::string name, Value value);
  /// True if there is an entry of this name.
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// The value of an entry; null if there is none. Valid until the next set() or merge().
  const Value* find(std::string_view name) const noexcept;
  /// The tensor of an entry. Like the next three it throws Error naming the entry if there is none or it
  /// holds another kind of value.
  const Tensor& tensor(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;     ///< The integer of an entry.
  double real(std::string_view name) const;              ///< The number of an entry; takes integers too.
  const std::string& text(std::string_view name) const;  ///< The text of an entry.
  /// Adds all entries of `other` as prefix + name.
  void merge(std::string_view prefix, const StateDict& other);
  /// Entries whose names start with prefix, without it.
  StateDict with_prefix(std::string_view prefix) const;

  std::size_t size() const noexcept;    ///< Number of entries.
  const Entry* begin() const noexcept;  ///< First entry.
  const Entry* end() const noexcept;    ///< Behind the last entry.

 private:
  std::size_t lower_bound(std::string_view name) const noexcept;

  std::vector<Entry> entries_;
  std::vector<std::size_t> by_name_;  // places in entries_, in the order of names
};

}  // namespace tutti
