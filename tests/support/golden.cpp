// SPDX-License-Identifier: Apache-2.0
#include "support/golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::testing::golden {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  TUTTI_CHECK(stream.good(), DataError, path, ": can't be opened");
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

DType dtype_of_name(const std::string& name) {
  static const std::map<std::string, DType> kDTypes = {{"F64", DType::kFloat64}, {"F32", DType::kFloat32},
                                                       {"F16", DType::kFloat16}, {"BF16", DType::kBFloat16},
                                                       {"I64", DType::kInt64},   {"I32", DType::kInt32},
                                                       {"I16", DType::kInt16},   {"I8", DType::kInt8},
                                                       {"U8", DType::kUInt8},    {"BOOL", DType::kBool}};
  const auto found = kDTypes.find(name);
  TUTTI_CHECK(found != kDTypes.end(), DataError, "safetensors: unknown dtype ", name);
  return found->second;
}

const Tensor& lookup(const Tensors& tensors, const std::string& name, const std::string& where) {
  const auto found = tensors.find(name);
  TUTTI_CHECK(found != tensors.end(), DataError, "golden ", where, ": there is no tensor ", name);
  return found->second;
}

}  // namespace

const Tensor& Case::tensor(const std::string& tensor_name) const {
  return lookup(tensors, tensor_name, name);
}

const Tensor& File::tensor(const std::string& name) const { return lookup(tensors, name, "file"); }

const Case& File::find(const std::string& name) const {
  const auto found =
      std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.name == name; });
  TUTTI_CHECK(found != cases.end(), DataError, "golden: there is no case ", name);
  return *found;
}

Tensors read_safetensors(const std::string& path) {
  const std::string bytes = read_file(path);
  std::uint64_t header_size = 0;
  TUTTI_CHECK(bytes.size() >= sizeof(header_size), DataError, path, ": shorter than its header's size");
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  TUTTI_CHECK(header_size <= bytes.size() - sizeof(header_size), DataError, path, ": header of ", header_size,
              " bytes in a file of ", bytes.size());
  const char* data = bytes.data() + sizeof(header_size) + header_size;
  const std::size_t data_size = bytes.size() - sizeof(header_size) - header_size;
  Tensors tensors;
  const auto header = nlohmann::json::parse(bytes.data() + sizeof(header_size),
                                            bytes.data() + sizeof(header_size) + header_size);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
    const Tensor tensor = empty(entry.at("shape").get<std::vector<std::int64_t>>(),
                                dtype_of_name(entry.at("dtype").get<std::string>()));
    const std::size_t wanted = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    TUTTI_CHECK(begin <= end && end <= data_size && end - begin == wanted, DataError, path, ": ", name,
                " at ", begin, " to ", end, ", wanted ", wanted, " bytes inside ", data_size);
    if (wanted > 0) std::memcpy(tensor.raw_data(), data + begin, wanted);
    tensors.emplace(name, tensor);
  }
  return tensors;
}

File load(const std::string& name) {
  const std::string path = std::string(TUTTI_GOLDEN_DIR) + "/" + name;
  File file;
  file.json = nlohmann::json::parse(read_file(path + ".json"));
  if (std::filesystem::exists(path + ".safetensors")) file.tensors = read_safetensors(path + ".safetensors");
  if (!file.json.contains("cases")) return file;
  for (const auto& entry : file.json.at("cases")) {
    Case one;
    one.name = entry.at("name").get<std::string>();
    one.json = entry;
    const std::string prefix = one.name + "/";
    for (auto next = file.tensors.lower_bound(prefix); next != file.tensors.end(); ++next) {
      if (!next->first.starts_with(prefix)) break;
      one.tensors.emplace(next->first.substr(prefix.size()), next->second);
    }
    file.cases.push_back(std::move(one));
  }
  return file;
}

::testing::AssertionResult all_close(const Tensor& given, const Tensor& wanted, double relative,
                                     double absolute) {
  if (!(given.sizes() == wanted.sizes())) {
    return ::testing::AssertionFailure()
           << "shape " << to_text(given.sizes()) << ", wanted " << to_text(wanted.sizes());
  }
  const std::vector<double> a = given.to_vector<double>();
  const std::vector<double> b = wanted.to_vector<double>();
  double greatest = 0;
  for (const double value : b) {
    if (std::isfinite(value)) greatest = std::max(greatest, std::abs(value));
  }
  const double tolerance = relative * greatest + absolute;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same =
        a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || std::abs(a[i] - b[i]) <= tolerance;
    if (!same) {
      return ::testing::AssertionFailure()
             << "element " << i << " is " << a[i] << ", wanted " << b[i] << ", off by "
             << std::abs(a[i] - b[i]) << ", allowed " << tolerance;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tutti::testing::golden
