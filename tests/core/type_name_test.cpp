// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/type_name.hpp"

#include <gtest/gtest.h>

namespace tutti::outer {
struct Plain {};
template <class T>
struct Holder {
  struct Inner {};
};
}  // namespace tutti::outer

namespace tutti {
namespace {

struct Hidden {};

TEST(TypeName, HasNoNamespace) {
  struct Local {};
  EXPECT_EQ(detail::type_name<outer::Plain>(), "Plain");
  EXPECT_EQ(detail::type_name<Hidden>(), "Hidden");
  EXPECT_EQ(detail::type_name<Local>(), "Local");
  EXPECT_EQ(detail::type_name<int>(), "int");
  EXPECT_EQ(detail::type_name<outer::Holder<int>>(), "Holder<int>");
  EXPECT_EQ(detail::type_name<outer::Holder<outer::Plain>>(), "Holder<tutti::outer::Plain>");
}

}  // namespace
}  // namespace tutti
