// SPDX-License-Identifier: Apache-2.0
#include "backend/plugin.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "backend/registry.hpp"
#include "support/errors.hpp"

namespace tutti::backend {
namespace {

using tutti::testing::contains;
using tutti::testing::ends_with;

std::string plugin(const std::string& fault) {
  return std::string(TUTTI_TEST_PLUGIN_DIR) + "/libtutti_test_" + fault + ".so";
}

class Plugin : public ::testing::Test {
 protected:
  // The plugins link nothing of the library, so they are told what it expects.
  void SetUp() override {
    setenv("TUTTI_TEST_BUILD_ID", tutti_cpu_backend()->build_id, 1);
    setenv("TUTTI_TEST_POINTWISE_COUNT", std::to_string(tutti_cpu_backend()->kernels.pointwise_count).c_str(),
           1);
    unsetenv("TUTTI_CUDA_PLUGIN");
  }

  std::string refusal(const std::string& path) {
    std::string reason;
    EXPECT_EQ(open_plugin(path, *tutti_cpu_backend(), reason), nullptr);
    return reason;
  }
};

TEST_F(Plugin, OfThisBuildIsOpened) {
  std::string reason;
  const tutti_backend* table = open_plugin(plugin("none"), *tutti_cpu_backend(), reason);
  ASSERT_NE(table, nullptr) << reason;
  EXPECT_STREQ(table->name, "test plugin");
  EXPECT_EQ(reason, "");
}

TEST_F(Plugin, OfAnotherInterfaceVersionIsRefused) {
  const std::string reason = refusal(plugin("version"));
  EXPECT_TRUE(contains(reason, plugin("version") + " can't be used: "));
  EXPECT_TRUE(contains(reason, "has version 2, this library needs 1"));
}

TEST_F(Plugin, WithAnotherTableSizeIsRefused) {
  const auto bytes = sizeof(tutti_backend);
  EXPECT_TRUE(
      contains(refusal(plugin("struct_size")),
               "has " + std::to_string(bytes - 8) + " bytes, this library needs " + std::to_string(bytes)));
}

TEST_F(Plugin, OfAnotherBuildIsRefused) {
  EXPECT_TRUE(contains(
      refusal(plugin("build_id")),
      std::string("build \"another build\", this library of build \"") + tutti_cpu_backend()->build_id));
}

TEST_F(Plugin, WithAnotherKernelListIsRefused) {
  EXPECT_TRUE(contains(refusal(plugin("pointwise_count")), "pointwise kernels, this library needs"));
}

TEST_F(Plugin, WithoutTableIsRefused) {
  EXPECT_TRUE(ends_with(refusal(plugin("no_table")), "tutti_backend_v1 returned no table"));
}

TEST_F(Plugin, WithoutEntryIsRefused) {
  EXPECT_TRUE(ends_with(refusal(plugin("no_entry")), "does not export tutti_backend_v1"));
}

TEST_F(Plugin, ThatIsNoSharedObjectIsRefusedWithTheLoadersText) {
  const std::string path = ::testing::TempDir() + "/libtutti_text.so";
  std::ofstream(path) << "not a shared object";
  const std::string reason = refusal(path);
  EXPECT_TRUE(contains(reason, path + " can't be opened: "));
  EXPECT_TRUE(contains(reason, "too short"));
}

TEST_F(Plugin, FirstExistingCandidateIsTaken) {
  std::string reason;
  EXPECT_NE(open_first_plugin({"/nowhere/libtutti_cuda.so", plugin("none")}, reason), nullptr) << reason;
}

TEST_F(Plugin, BrokenCandidateIsNotHiddenByALaterOne) {
  std::string reason;
  EXPECT_EQ(open_first_plugin({plugin("version"), plugin("none")}, reason), nullptr);
  EXPECT_TRUE(contains(reason, "libtutti_test_version.so"));
}

TEST_F(Plugin, ReasonNamesEveryPlaceThatWasSearched) {
  std::string reason;
  EXPECT_EQ(open_first_plugin({"/a/libtutti_cuda.so", "/b/libtutti_cuda.so"}, reason), nullptr);
  EXPECT_EQ(
      reason,
      "no CUDA plugin: there is no file /a/libtutti_cuda.so, nor /b/libtutti_cuda.so (TUTTI_CUDA_PLUGIN "
      "may name one)");
}

TEST_F(Plugin, IsLookedForBesideTheProgram) {
  const std::vector<std::string> candidates = cuda_plugin_candidates();
  const std::string program = std::filesystem::canonical("/proc/self/exe").parent_path();
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.back(), program + "/libtutti_cuda.so");
}

TEST_F(Plugin, VariableWithASlashIsThePath) {
  setenv("TUTTI_CUDA_PLUGIN", "/opt/some/plugin.so", 1);
  EXPECT_EQ(cuda_plugin_candidates(), std::vector<std::string>{"/opt/some/plugin.so"});
  std::string reason;
  EXPECT_EQ(open_first_plugin(cuda_plugin_candidates(), reason), nullptr);
  EXPECT_EQ(reason,
            "no CUDA plugin: there is no file /opt/some/plugin.so (TUTTI_CUDA_PLUGIN is "
            "\"/opt/some/plugin.so\")");
}

TEST_F(Plugin, VariableWithoutASlashIsAName) {
  setenv("TUTTI_CUDA_PLUGIN", "cudasim", 1);
  for (const std::string& path : cuda_plugin_candidates()) {
    EXPECT_TRUE(ends_with(path, "/libtutti_cudasim.so"));
  }
}

}  // namespace
}  // namespace tutti::backend
