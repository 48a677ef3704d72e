// SPDX-License-Identifier: Apache-2.0
// Every op of the public headers against its row: float64 reference, every dtype, strides, finite differences, numbers of
// threads. An op without a row fails EveryOpHasARow.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "ops/op_row.hpp"
#include "support/errors.hpp"
#include "tutti/autograd/gradcheck.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/threads.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::testing {
namespace {

// Values that repeat on every run and differ from one another.
double value_of(std::uint64_t i, Values values, std::int64_t limit) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  const double u = static_cast<double>(z >> 11U) * 0x1p-53;
  switch (values) {
    case Values::kNormal:
      return 3.4 * (u - 0.5) + (u > 0.5 ? 0.01 : -0.01);  // away from 0, where relu has its kink
    case Values::kPositive: return 0.5 + 2.5 * u;
    case Values::kBool: return u > 0.5 ? 1 : 0;
    case Values::kIndex:
      return static_cast<double>(static_cast<std::int64_t>(u * static_cast<double>(limit)));
  }
  return 0;
}

bool takes_gradient(const Input& input) {
  return !input.constant && (input.values == Values::kNormal || input.values == Values::kPositive);
}

DType dtype_for(const Input& input, DType dtype) {
  if (input.values == Values::kBool) return DType::kBool;
  return input.values == Values::kIndex ? DType::kInt64 : dtype;
}

Tensor make_input(const Input& input, DType dtype, std::uint64_t seed) {
  Tensor tensor = empty(Dims(input.sizes), DType::kFloat64);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    double value = value_of(seed * 1000003 + static_cast<std::uint64_t>(i), input.values, input.limit);
    if (!is_floating_point(dtype))
      value = std::floor(std::abs(value) * 3);  // small numbers that every integer holds
    if (input.values == Values::kIndex || input.values == Values::kBool) {
      value = value_of(seed * 1000003 + static_cast<std::uint64_t>(i), input.values, input.limit);
    }
    tensor.data<double>()[i] = value;
  }
  return tensor.to(dtype_for(input, dtype));
}
std::vector<Tensor> make_inputs(const std::vector<Input>& specs, DType dtype) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < specs.size(); ++i) inputs.push_back(make_input(specs[i], dtype, i + 1));
  return inputs;
}

Array to_array(const Tensor& tensor) {
  return {{tensor.sizes().begin(), tensor.sizes().end()}, tensor.to_vector<double>()};
}
std::vector<Array> to_arrays(const std::vector<Tensor>& tensors) {
  std::vector<Array> arrays;
  for (const Tensor& tensor : tensors) arrays.push_back(to_array(tensor));
  return arrays;
}

double magnitude(const Array& array) {
  double largest = 0;
  for (const double value : array.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// Small integers wrap around.
double period_of(DType dtype) {
  switch (dtype) {
    case DType::kInt16: return 65536;
    case DType::kInt8:
    case DType::kUInt8: return 256;
    default: return 0;
  }
}

void expect_close(const Tensor& given, const Array& wanted, double tolerance, const std::string& where) {
  ASSERT_EQ(to_text(given.sizes()), to_text(Dims(wanted.sizes))) << where;
  const std::vector<double> values = given.to_vector<double>();
  const double allowed = tolerance * (1 + magnitude(wanted));
  const double period = period_of(given.dtype());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (given.dtype() == DType::kBool) {  // 1 + 1 is true
      ASSERT_EQ(values[i] != 0, wanted.values[i] != 0) << where << " element " << i;
    } else if (period != 0) {
      ASSERT_EQ(std::fmod(values[i] - wanted.values[i], period), 0) << where << " element " << i;
    } else if (std::isnan(wanted.values[i])) {
      ASSERT_TRUE(std::isnan(values[i])) << where << " element " << i;
    } else {
      ASSERT_NEAR(values[i], wanted.values[i], allowed) << where << " element " << i;
    }
  }
}

double tolerance_of(const OpRow& row, DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return 1e-12;
    case DType::kFloat32: return row.tolerance;
    case DType::kFloat16: return 2e-3;
    case DType::kBFloat16: return 1.6e-2;
    default: return 0;
  }
}

std::vector<DType> dtypes_of(Takes takes) {
  std::vector<DType> dtypes = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  if (takes != Takes::kFloating) {
    for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8})
      dtypes.push_back(dtype);
  }
  if (takes == Takes::kAll) dtypes.push_back(DType::kBool);
  return dtypes;
}

// The same values in memory that is not dense: every second element of a larger tensor, dims reversed.
Tensor strided_copy(const Tensor& tensor) {
  Dims reversed, order;
  for (int d = tensor.dim() - 1; d >= 0; --d) {
    reversed.push_back(tensor.sizes()[d] * 2);
    order.push_back(d);
  }
  Tensor strided = zeros(reversed, tensor.dtype());
  for (int d = 0; d < tensor.dim(); ++d) strided = strided.slice(d, 0, INT64_MAX, 2);
  strided = strided.permute(order);
  strided.copy_(tensor);
  return strided;
}

class OpTable : public ::testing::TestWithParam<OpRow> {};

TEST_P(OpTable, MatchesTheReferenceInEveryDType) {
  const OpRow& row = GetParam();
  for (const DType dtype : dtypes_of(row.takes)) {
    for (std::size_t c = 0; c < row.cases.size(); ++c) {
      const std::vector<Tensor> inputs = make_inputs(row.cases[c], dtype);
      const Tensor y = row.call(inputs);
      // Integers may give a floating result, as in a division.
      expect_close(y, row.reference(to_arrays(inputs)),
                   tolerance_of(row, is_floating_point(dtype) ? dtype : y.dtype()),
                   concat(row.name, " ", dtype, " case ", c));
    }
  }
}

TEST_P(OpTable, TakesAnyStrides) {
  const OpRow& row = GetParam();
  for (const DType dtype : dtypes_of(row.takes)) {
    for (std::size_t c = 0; c < row.cases.size(); ++c) {
      std::vector<Tensor> inputs = make_inputs(row.cases[c], dtype);
      const Array wanted = row.reference(to_arrays(inputs));
      for (Tensor& input : inputs) input = strided_copy(input);
      const Tensor y = row.call(inputs);
      expect_close(y, wanted, tolerance_of(row, is_floating_point(dtype) ? dtype : y.dtype()),
                   concat(row.name, " strided ", dtype, " case ", c));
    }
  }
}

TEST_P(OpTable, GradientsMatchFiniteDifferences) {
  const OpRow& row = GetParam();
  if (!row.differentiable) {
    std::vector<Tensor> inputs = make_inputs(row.cases[0], DType::kFloat64);
    inputs[0].requires_grad_();
    EXPECT_FALSE(row.call(inputs).requires_grad()) << row.name;
    return;
  }
  for (std::size_t c = 0; c < row.cases.size(); ++c) {
    for (const bool strided : {false, true}) {
      std::vector<Tensor> inputs = make_inputs(row.cases[c], DType::kFloat64);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (strided) inputs[i] = strided_copy(inputs[i]);
        if (takes_gradient(row.cases[c][i])) inputs[i].requires_grad_();
      }
      const std::function<Tensor(std::span<const Tensor>)> call = row.call;
      EXPECT_NO_THROW(autograd::gradcheck(call, inputs, {.atol = 2e-6}))
          << row.name << " case " << c << (strided ? " strided" : "");
    }
  }
}

// Result and gradients of one case computed in one dtype, from values that `values` holds.
std::vector<Tensor> run_with_gradients(const OpRow& row, const std::vector<Input>& specs, DType dtype,
                                       DType values) {
  std::vector<Tensor> inputs = make_inputs(specs, values);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = inputs[i].to(dtype_for(specs[i], dtype));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (row.differentiable && takes_gradient(specs[i])) inputs[i].requires_grad_();
  }
  const Tensor y = row.call(inputs);
  std::vector<Tensor> results = {y.detach()};
  if (row.differentiable) {
    y.backward(make_input({{y.sizes().begin(), y.sizes().end()}}, values, 99).to(y.dtype()));
    for (const Tensor& input : inputs) {
      if (input.requires_grad()) results.push_back(input.grad());
    }
  }
  return results;
}

// Sums of up to some hundred terms in float32; and half precisions, which compute in it, round what backward is given, what
// it saved and what it returns.
double gradient_tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 4 * 0x1p-11;
    case DType::kBFloat16: return 4 * 0x1p-8;
    default: return 168 * 0x1p-24;
  }
}

TEST_P(OpTable, GradientsOfNarrowDTypesMatchFloat64) {
  const OpRow& row = GetParam();
  if (!row.differentiable) return;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (std::size_t c = 0; c < row.cases.size(); ++c) {
      const std::vector<Tensor> narrow = run_with_gradients(row, row.cases[c], dtype, dtype);
      const std::vector<Tensor> wide = run_with_gradients(row, row.cases[c], DType::kFloat64, dtype);
      ASSERT_EQ(narrow.size(), wide.size());
      for (std::size_t i = 1; i < narrow.size(); ++i) {
        ASSERT_EQ(narrow[i].defined(), wide[i].defined());
        if (!wide[i].defined()) continue;
        expect_close(narrow[i], to_array(wide[i]), gradient_tolerance_of(dtype),
                     concat(row.name, " ", dtype, " gradient ", i - 1, " case ", c));
      }
    }
  }
}

void expect_same_bits(const Tensor& a, const Tensor& b, const std::string& where) {
  if (!a.defined() && !b.defined()) return;
  const Tensor left = a.contiguous(), right = b.contiguous();
  ASSERT_EQ(left.sizes(), right.sizes()) << where;
  if (left.numel() == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(left.numel()) * left.element_size();
  EXPECT_EQ(std::memcmp(left.raw_data(), right.raw_data(), bytes), 0) << where;
}

TEST_P(OpTable, BitsDoNotDependOnThreads) {
  const OpRow& row = GetParam();
  const int before = get_num_threads();
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    set_num_threads(1);
    const std::vector<Tensor> one = run_with_gradients(row, row.large, dtype, dtype);
    for (const int threads : {2, 3, 8}) {
      set_num_threads(threads);
      const std::vector<Tensor> many = run_with_gradients(row, row.large, dtype, dtype);
      for (std::size_t i = 0; i < one.size(); ++i) {
        expect_same_bits(one[i], many[i],
                         concat(row.name, " ", dtype, " result ", i, ", ", threads, " threads"));
      }
    }
  }
  set_num_threads(before);
}

std::string parameter_name(const ::testing::TestParamInfo<OpRow>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, OpTable, ::testing::ValuesIn(all_rows()), parameter_name);

std::int64_t numel_of(const Input& input) { return Array::of(input.sizes).numel(); }

bool any_case(const OpRow& row, const std::function<bool(const std::vector<Input>&)>& holds) {
  return std::any_of(row.cases.begin(), row.cases.end(), holds);
}

// Two inputs that do not have the same sizes, counted from the last dim, because one stands for several elements.
bool is_broadcast(const std::vector<Input>& specs) {
  for (const Input& a : specs) {
    for (const Input& b : specs) {
      if (a.sizes.size() < b.sizes.size()) return true;
      for (std::size_t i = 1; i <= b.sizes.size(); ++i)
        if (a.sizes[a.sizes.size() - i] == 1 && b.sizes[b.sizes.size() - i] != 1) return true;
    }
  }
  return false;
}

// Asks the op: with one input's first dim cut down to 1, is the result as large as before?
bool broadcasts(const OpRow& row) {
  return any_case(row, [&](const std::vector<Input>& specs) {
    const Dims whole = row.call(make_inputs(specs, DType::kFloat64)).sizes();
    for (std::size_t i = 0; specs.size() > 1 && i < specs.size(); ++i) {
      if (specs[i].sizes.empty() || specs[i].sizes[0] < 2) continue;
      std::vector<Input> cut = specs;
      cut[i].sizes[0] = 1;
      try {
        if (row.call(make_inputs(cut, DType::kFloat64)).sizes() == whole) return true;
      } catch (const Error&) {
        continue;  // it wants the sizes as they were
      }
    }
    return false;
  });
}

TEST(OpTableComplete, EveryRowHasLargeEmptyAndBroadcastCases) {
  constexpr std::int64_t kSeveralChunks = 20000;
  for (const OpRow& row : all_rows()) {
    std::int64_t largest = 0;
    for (const Input& input : row.large) largest = std::max(largest, numel_of(input));
    EXPECT_GE(largest, kSeveralChunks) << row.name << " has no case with work for several threads";
    const auto is_empty = [](const std::vector<Input>& specs) {
      return std::any_of(specs.begin(), specs.end(), [](const Input& input) { return numel_of(input) == 0; });
    };
    EXPECT_NE(any_case(row, is_empty), row.refuses_empty) << row.name << ": empty inputs";
    if (row.refuses_empty) {
      SCOPED_TRACE(row.name);
      expect_error<ShapeError>(
          [&] {
            row.call(make_inputs({{{0, 3}}}, DType::kFloat32));
          },
          "of shape [0, 3]");
    }
    if (broadcasts(row)) {
      EXPECT_TRUE(any_case(row, is_broadcast)) << row.name << " broadcasts but has no case of it";
    }
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::filesystem::path kHeaders = std::filesystem::path(TUTTI_SOURCE_DIR) / "include/tutti";

// Functions of a folder's headers that return anything with a Tensor in it.
std::set<std::string> declared_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  const std::regex function(R"(TUTTI_API ([\w:]*(?:<[^;()]*)?\bTensor\b[^;()]*?)[\s&*](\w+)\()");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it)
      names.insert((*it)[2]);
  }
  return names;
}

TEST(OpTableComplete, OpsOfANewHeaderAreSeen) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / concat("tutti_op_table_", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "new_ops.hpp") << "TUTTI_API Tensor one(const Tensor& x);\n"
                                           "TUTTI_API std::vector<Tensor> several(const Tensor& x,\n"
                                           "                                      int parts = 2);\n"
                                           "TUTTI_API std::tuple<int, std::optional<Tensor>>\n"
                                           "nested(const Tensor& x);\n"
                                           "TUTTI_API Tensor& same(Tensor& x);\n"
                                           "TUTTI_API double number(const Tensor& x);\n";
  EXPECT_EQ(declared_in(folder), (std::set<std::string>{"nested", "one", "same", "several"}));
  std::filesystem::remove_all(folder);
}

TEST(OpTableComplete, EveryOpHasARow) {
  std::set<std::string> covered;
  for (const OpRow& row : all_rows()) covered.insert(row.name.substr(0, row.name.find('-')));
  std::set<std::string> declared = declared_in(kHeaders / "ops");
  std::string members = text_of(kHeaders / "tensor/tensor.hpp");
  members = members.substr(members.find("// -- views [d]"));
  members = members.substr(0, members.find("Handle's target"));
  const std::regex member(R"(\n  (?:Tensor|Tensor&|std::pair<Tensor, Tensor>) (\w+|operator\[\])\()");
  for (std::sregex_iterator it(members.begin(), members.end(), member), end; it != end; ++it)
    declared.insert((*it)[1]);
  EXPECT_GT(declared.size(), 50U);
  for (const std::string& name : declared)
    EXPECT_TRUE(covered.contains(name)) << name << " has no row in the table";
}

}  // namespace
}  // namespace tutti::testing
