// SPDX-License-Identifier: Apache-2.0
// Checks of error messages.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <string_view>

namespace tutti::testing {

// The message of the E that f throws; a failed expectation if it throws nothing or something else.
template <class E, class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an exception of another kind: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

inline ::testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

// f throws an E whose message contains `part`.
template <class E, class F>
void expect_error(const F& f, std::string_view part) {
  const std::string message = error_of<E>(f);
  EXPECT_TRUE(contains(message, part));
}

inline ::testing::AssertionResult ends_with(std::string_view text, std::string_view end) {
  if (text.size() >= end.size() && text.substr(text.size() - end.size()) == end)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not end with \"" << end << "\"";
}

}  // namespace tutti::testing
