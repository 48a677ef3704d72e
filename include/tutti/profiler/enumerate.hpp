// SPDX-License-Identifier: Apache-2.0
/// \file
/// enumerate: numbers what a range gives.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>

namespace tutti {

namespace profiler {

/// One element of a range and its number, from 0. `value` refers to what the range's iterator gives.
template <class Reference>
struct Numbered {
  std::int64_t index;
  Reference value;
};

/// What enumerate returns. Range is a reference for a range that is kept elsewhere.
template <class Range>
class Enumerated {
  using Inner = decltype(std::declval<Range&>().begin());

 public:
  explicit Enumerated(Range&& range) : range_(std::forward<Range>(range)) {}

  /// Goes through the range once.
  class Iterator {
   public:
    explicit Iterator(Inner inner) : inner_(std::move(inner)) {}
    Numbered<decltype(*std::declval<Inner&>())> operator*() { return {index_, *inner_}; }
    Iterator& operator++() {
      ++inner_;
      ++index_;
      return *this;
    }
    template <class Sentinel>
    friend bool operator==(const Iterator& iterator, const Sentinel& end) {
      return iterator.inner_ == end;
    }

   private:
    Inner inner_;
    std::int64_t index_ = 0;
  };

  Iterator begin() { return Iterator(range_.begin()); }
  auto end() { return range_.end(); }

 private:
  Range range_;
};

}  // namespace profiler

/// `for (auto&& step : enumerate(loader))` gives step.index = 0, 1, ... and step.value, the batch. Works with any range, a loader
/// with progress() too.
template <class Range>
profiler::Enumerated<Range> enumerate(Range&& range) {
  return profiler::Enumerated<Range>(std::forward<Range>(range));
}

}  // namespace tutti
