// SPDX-License-Identifier: Apache-2.0
// The vector of a graph node's edges.
#include "tutti/autograd/small_vector.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tutti::autograd {
namespace {

using Texts = SmallVector<std::string, 2>;

std::vector<std::string> elements(const Texts& texts) { return {texts.begin(), texts.end()}; }

TEST(SmallVector, ElementMayBeAddedAgainWhileTheVectorGrows) {
  const std::string first(100, 'a');
  Texts texts;
  texts.emplace_back(first);
  texts.emplace_back("b");
  texts.emplace_back(texts[0]);  // out of the object, into the heap
  texts.emplace_back("d");
  texts.emplace_back(texts[0]);  // from one block of the heap to the next
  EXPECT_EQ(elements(texts), (std::vector<std::string>{first, "b", first, "d", first}));
}

TEST(SmallVector, ElementThatThrowsWhileTheVectorGrowsLeavesItAsItWas) {
  struct Thrower {
    operator std::string() const { throw std::runtime_error("no text"); }
  };
  Texts texts;
  texts.emplace_back("a");
  texts.emplace_back("b");
  EXPECT_THROW(texts.emplace_back(Thrower()), std::runtime_error);
  EXPECT_EQ(elements(texts), (std::vector<std::string>{"a", "b"}));
}

TEST(SmallVector, MovesFromInsideTheObjectAndFromTheHeap) {
  for (const std::size_t count : {0U, 1U, 2U, 3U, 9U}) {
    Texts texts;
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(std::string(30, static_cast<char>('a' + i)));
      texts.emplace_back(wanted.back());
    }
    Texts moved = std::move(texts);
    EXPECT_EQ(elements(moved), wanted);
    Texts assigned;
    assigned.emplace_back("replaced");
    assigned = std::move(moved);
    EXPECT_EQ(elements(assigned), wanted);
    assigned.clear();
    EXPECT_TRUE(assigned.empty());
  }
}

}  // namespace
}  // namespace tutti::autograd
