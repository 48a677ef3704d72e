// SPDX-License-Identifier: Apache-2.0
// Reads the golden files of tests/golden: X.json says what X.safetensors holds.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tutti/tensor/tensor.hpp"

namespace tutti::testing::golden {

using Tensors = std::map<std::string, Tensor>;

// One entry of "cases". The tensors' names come without the case's.
struct Case {
  std::string name;
  nlohmann::json json;
  Tensors tensors;

  const nlohmann::json& args() const { return json.at("args"); }
  // Throws Error naming case and tensor if there is none.
  const Tensor& tensor(const std::string& tensor_name) const;
};

struct File {
  nlohmann::json json;
  Tensors tensors;  // all, by their full names
  std::vector<Case> cases;

  const Tensor& tensor(const std::string& name) const;
  const Case& find(const std::string& name) const;
};

// tests/golden/<name>.json, and <name>.safetensors if it is there.
File load(const std::string& name);
// All tensors of a safetensors file.
Tensors read_safetensors(const std::string& path);

// Whether |given - wanted| <= relative * max|wanted| + absolute everywhere; NaN matches NaN, infinity itself.
::testing::AssertionResult all_close(const Tensor& given, const Tensor& wanted, double relative,
                                     double absolute);

}  // namespace tutti::testing::golden
