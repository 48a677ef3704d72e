// SPDX-License-Identifier: Apache-2.0
// Ops against PyTorch's values and gradients. Every case of the golden files is either run or stands in one of the two lists
// below of what Tutti does not have.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/golden.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti {
namespace {

namespace golden = tutti::testing::golden;
using golden::Case;
using nlohmann::json;

using Tensors = std::vector<Tensor>;
using Call = std::function<Tensors(const json& args, const Tensors& in)>;

// Ops that Tutti does not have. One that it gets must leave this list: AbsentOpsAreAbsent looks for it in the headers.
const std::set<std::string> kAbsentOps = {
    // pointwise
    "rsqrt", "reciprocal", "square", "expm1", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "erf", "erfinv", "abs", "frac", "floor", "ceil", "round", "trunc", "sign",
    "maximum", "minimum", "atan2", "fmod", "remainder", "lerp", "addcmul", "addcdiv", "clamp", "masked_fill",
    "nan_to_num", "leaky_relu", "elu", "selu", "silu", "softplus", "softsign", "hardtanh", "hardswish",
    "hardsigmoid", "mish", "glu", "threshold", "relu6", "celu", "logsigmoid", "tanhshrink", "softshrink",
    "prelu",
    // reductions, order, indexing, shapes
    "var", "logsumexp", "norm", "prod", "cumsum", "cumprod", "topk", "sort", "quantile", "median", "histc",
    "bincount", "searchsorted", "unique", "gather", "scatter", "scatter_add", "index_add", "index_put",
    "take", "masked_select", "nonzero", "roll", "flip", "repeat", "repeat_interleave", "triu", "tril",
    "diagonal", "pad", "einsum", "unfold", "fold", "addmm",
    // networks
    "conv1d", "conv3d", "conv_transpose2d", "conv_transpose1d", "adaptive_avg_pool2d", "adaptive_max_pool2d",
    "max_pool1d", "avg_pool3d", "interpolate", "pixel_shuffle", "layer_norm", "rms_norm", "group_norm",
    "instance_norm", "local_response_norm", "scaled_dot_product_attention", "embedding", "embedding_bag",
    // losses
    "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "gaussian_nll_loss",
    "cosine_embedding_loss", "triplet_margin_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "ctc_loss"};

Size2d size_of(const json& args, const char* key, int otherwise) {
  if (!args.contains(key)) return otherwise;
  const json& value = args.at(key);
  if (value.is_array()) return {value.at(0).get<int>(), value.at(1).get<int>()};
  return value.get<int>();
}

Dims dims_of(const json& args) {
  Dims dims;
  if (args.at("dim").is_null()) return dims;
  for (const json& dim : args.at("dim")) dims.push_back(dim.get<int>());
  return dims;
}

Tensors run_conv2d(const json& args, const Tensors& in) {
  return {conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(),
                 {.stride = size_of(args, "stride", 1),
                  .padding = size_of(args, "padding", 0),
                  .dilation = size_of(args, "dilation", 1),
                  .groups = args.value("groups", 1)})};
}

Tensors run_cross_entropy(const json& args, const Tensors& in) {
  const std::map<std::string, Reduction> reductions = {
      {"mean", Reduction::kMean}, {"sum", Reduction::kSum}, {"none", Reduction::kNone}};
  return {cross_entropy(in[0], in[1],
                        {.weight = in.size() > 2 ? in[2] : Tensor(),
                         .ignore_index = args.value("ignore_index", std::int64_t{-100}),
                         .reduction = reductions.at(args.at("reduction").get<std::string>()),
                         .label_smoothing = args.value("label_smoothing", 0.0)})};
}

Tensors run_batch_norm(const json& args, const Tensors& in) {
  const Tensor mean = in[3].clone(), variance = in[4].clone();
  const Tensor y = batch_norm(in[0], mean, variance, in[1], in[2],
                              {.training = args.at("training").get<bool>(),
                               .momentum = args.at("momentum").get<double>(),
                               .eps = args.at("eps").get<double>()});
  return {y, mean, variance};
}

void add_pointwise_calls(std::map<std::string, Call>& calls) {
  calls["neg"] = [](const json&, const Tensors& in) { return Tensors{neg(in[0])}; };
  calls["exp"] = [](const json&, const Tensors& in) { return Tensors{exp(in[0])}; };
  calls["log"] = [](const json&, const Tensors& in) { return Tensors{log(in[0])}; };
  calls["sqrt"] = [](const json&, const Tensors& in) { return Tensors{sqrt(in[0])}; };
  calls["tanh"] = [](const json&, const Tensors& in) { return Tensors{tanh(in[0])}; };
  calls["sigmoid"] = [](const json&, const Tensors& in) { return Tensors{sigmoid(in[0])}; };
  calls["relu"] = [](const json&, const Tensors& in) { return Tensors{relu(in[0])}; };
  calls["gelu"] = [](const json& args, const Tensors& in) {
    return Tensors{gelu(in[0], args.at("approximate") == "tanh" ? GeluForm::kTanh : GeluForm::kErf)};
  };
  calls["add"] = [](const json&, const Tensors& in) { return Tensors{add(in[0], in[1])}; };
  calls["sub"] = [](const json&, const Tensors& in) { return Tensors{sub(in[0], in[1])}; };
  calls["mul"] = [](const json&, const Tensors& in) { return Tensors{mul(in[0], in[1])}; };
  calls["div"] = [](const json&, const Tensors& in) { return Tensors{div(in[0], in[1])}; };
  calls["pow"] = [](const json& args, const Tensors& in) {
    if (in.size() > 1) return Tensors{pow(in[0], in[1])};
    return Tensors{pow(in[0], args.at("exponent").get<double>())};
  };
  calls["where"] = [](const json&, const Tensors& in) { return Tensors{where(in[0], in[1], in[2])}; };
}

void add_reduction_calls(std::map<std::string, Call>& calls) {
  calls["sum"] = [](const json& args, const Tensors& in) {
    return Tensors{sum(in[0], dims_of(args), args.value("keepdim", false))};
  };
  calls["mean"] = [](const json& args, const Tensors& in) {
    return Tensors{mean(in[0], dims_of(args), args.value("keepdim", false))};
  };
  calls["amax"] = [](const json& args, const Tensors& in) {
    return Tensors{amax(in[0], dims_of(args), args.value("keepdim", false))};
  };
  calls["max"] = [](const json& args, const Tensors& in) {
    const auto [values, indices] = max(in[0], args.at("dim").get<int>());
    return Tensors{values, indices};
  };
  calls["argmax"] = [](const json& args, const Tensors& in) {
    return Tensors{argmax(in[0], args.at("dim").get<int>())};
  };
}

void add_network_calls(std::map<std::string, Call>& calls) {
  calls["index_select"] = [](const json& args, const Tensors& in) {
    return Tensors{index_select(in[0], args.at("dim").get<int>(), in[1])};
  };
  calls["matmul"] = [](const json&, const Tensors& in) { return Tensors{matmul(in[0], in[1])}; };
  calls["linear"] = [](const json&, const Tensors& in) { return Tensors{linear(in[0], in[1], in[2])}; };
  calls["conv2d"] = run_conv2d;
  calls["max_pool2d"] = [](const json& args, const Tensors& in) {
    return Tensors{max_pool2d(in[0], {.kernel_size = size_of(args, "kernel_size", 0),
                                      .stride = size_of(args, "stride", 0),
                                      .padding = size_of(args, "padding", 0),
                                      .dilation = size_of(args, "dilation", 1),
                                      .ceil_mode = args.value("ceil_mode", false)})};
  };
  calls["avg_pool2d"] = [](const json& args, const Tensors& in) {
    return Tensors{avg_pool2d(in[0], {.kernel_size = size_of(args, "kernel_size", 0),
                                      .stride = size_of(args, "stride", 0),
                                      .padding = size_of(args, "padding", 0),
                                      .count_include_pad = args.value("count_include_pad", true),
                                      .ceil_mode = args.value("ceil_mode", false)})};
  };
  calls["batch_norm"] = run_batch_norm;
  calls["softmax"] = [](const json& args, const Tensors& in) {
    return Tensors{softmax(in[0], args.at("dim").get<int>())};
  };
  calls["log_softmax"] = [](const json& args, const Tensors& in) {
    return Tensors{log_softmax(in[0], args.at("dim").get<int>())};
  };
  calls["cross_entropy"] = run_cross_entropy;
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> kCalls = [] {
    std::map<std::string, Call> all;
    add_pointwise_calls(all);
    add_reduction_calls(all);
    add_network_calls(all);
    return all;
  }();
  return kCalls;
}

struct Tolerance {
  double relative;
  double absolute;
};

// Outputs and the listed gradients. Only the first output of a case has an upstream gradient.
void run_case(const Case& one, DType dtype, Tolerance tolerance) {
  const auto names = [&](const char* key) { return one.json.at(key).get<std::vector<std::string>>(); };
  Tensors in;
  std::map<std::string, Tensor> leaves;
  const auto gradients = names("gradients");
  for (const std::string& name : names("inputs")) {
    Tensor tensor = one.tensor(name);
    if (is_floating_point(tensor.dtype())) tensor = tensor.to(dtype).clone();
    for (const std::string& gradient : gradients) {
      if (gradient == "g" + name) leaves[gradient] = tensor.requires_grad_();
    }
    in.push_back(tensor);
  }
  ASSERT_EQ(leaves.size(), gradients.size());
  const Tensors outputs = calls().at(one.json.at("op").get<std::string>())(one.args(), in);
  const auto output_names = names("outputs");
  ASSERT_EQ(outputs.size(), output_names.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& wanted = one.tensor(output_names[i]);
    EXPECT_EQ(outputs[i].dtype(), is_floating_point(wanted.dtype()) ? dtype : wanted.dtype());
    EXPECT_TRUE(golden::all_close(outputs[i], wanted, tolerance.relative, tolerance.absolute))
        << output_names[i];
  }
  const auto upstream = names("upstream");
  ASSERT_LE(upstream.size(), 1U);
  if (gradients.empty()) return;
  ASSERT_EQ(upstream.at(0), "g" + output_names[0]);
  outputs[0].backward(one.tensor(upstream[0]).to(dtype));
  for (const auto& [name, leaf] : leaves) {
    ASSERT_TRUE(leaf.grad().defined()) << name;
    EXPECT_TRUE(golden::all_close(leaf.grad(), one.tensor(name), tolerance.relative, tolerance.absolute))
        << name;
  }
}

// Runs what is covered; fails for a case whose op is neither covered nor listed as absent.
void run_file(const std::string& name, int wanted_runs, Tolerance float32_tolerance) {
  // The stored values are float32, so float64 matches up to their rounding.
  const Tolerance rounding = {1.0 / (1 << 24), 1e-14};
  int runs = 0;
  for (const Case& one : golden::load(name).cases) {
    SCOPED_TRACE(concat(name, ": ", one.name));
    const auto op = one.json.at("op").get<std::string>();
    if (kAbsentOps.contains(op)) continue;
    ASSERT_TRUE(calls().contains(op)) << op << " is neither run nor in the list of absent ops";
    run_case(one, DType::kFloat64, rounding);
    run_case(one, DType::kFloat32, float32_tolerance);
    ++runs;
  }
  EXPECT_EQ(runs, wanted_runs) << name;
}

TEST(OpsGolden, OpsMatchPyTorch) { run_file("ops", 37, {2e-6, 1e-6}); }
TEST(OpsGolden, NetworkOpsMatchPyTorch) { run_file("nn", 16, {1e-5, 1e-5}); }
TEST(OpsGolden, LossesMatchPyTorch) { run_file("losses", 14, {5e-6, 5e-6}); }

TEST(OpsGolden, AbsentOpsAreAbsent) {
  const std::regex function(R"(TUTTI_API (?:Tensor|std::pair<Tensor, Tensor>) (\w+)\()");
  int declared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE_DIR "/include/tutti/ops")) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it) {
      ++declared;
      EXPECT_FALSE(kAbsentOps.contains((*it)[1])) << (*it)[1] << " is there: run its cases";
    }
  }
  EXPECT_GT(declared, 50);
}

}  // namespace
}  // namespace tutti
