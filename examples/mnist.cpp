// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network on Fashion-MNIST: mnist.cpp in one process, mnist_ddp.cpp on any number of ranks. Compare the two.
//
//   mnist [--data DIR] [--epochs N] [--batch-size N] [--lr X] [--seed N] [--trace FILE]
#include <tutti/tutti.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

using namespace tutti;

struct Net : nn::Module<Net> {
  nn::Conv2d conv1{*this, "conv1", {.in_channels = 1, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  nn::Conv2d conv2{*this, "conv2", {.in_channels = 32, .out_channels = 64, .kernel_size = 3, .padding = 1}};
  nn::Linear fc1{*this, "fc1", {.in_features = 64 * 7 * 7, .out_features = 128}};
  nn::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 10}};
  Tensor forward(const Tensor& images) {
    Tensor h = max_pool2d(relu(conv1(images)), {.kernel_size = 2});
    h = max_pool2d(relu(conv2(h)), {.kernel_size = 2});
    return fc2(relu(fc1(h.flatten(1))));
  }
};

const data::MnistOptions kNormalize{.mean = 0.286F, .deviation = 0.353F};  // of the training images
using Options = std::map<std::string, std::string>;

// Options and their defaults; a batch is one rank's, lr the greatest of the cycle, trace a file for ui.perfetto.dev.
Options parse(int argc, char** argv) {
  Options options{{"--data", "/usr/share/datasets/fashion-mnist"},
                  {"--epochs", "3"},
                  {"--batch-size", "64"},
                  {"--lr", "0.006"},
                  {"--seed", "1"},
                  {"--trace", ""}};
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const auto option = options.find(name);
    TUTTI_CHECK(option != options.end() && i + 1 < argc, ValueError, name, ": unknown, or without a value");
    option->second = argv[i + 1];
  }
  return options;
}

double number(const Options& options, const std::string& name) {
  const char* text = options.at(name).c_str();
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  TUTTI_CHECK(*text && !*end && value >= 0 && value < 1e9, ValueError, name, " wants 0 to 1e9, given ", text);
  return value;
}

// The share of test images that the network gets right.
double test_accuracy(Net& net, const std::string& data, Device device) {
  data::DataLoader loader{data::FashionMnist{data, data::Split::kTest, kNormalize},
                          {.batch_size = 250, .device = device}};
  const autograd::InferenceGuard inference;
  net.eval();
  Tensor counts = zeros({2}, DType::kInt64, device);  // right, all
  for (const auto& [images, labels] : loader) {
    counts[0].add_((net(images).argmax(1) == labels).sum());
    counts[1].add_(labels.numel());
  }
  return counts[0].item() / counts[1].item();
}

int main(int argc, char** argv) {
  Environment env{argc, argv};
  const Options options = parse(argc, argv);
  const std::string data = options.at("--data"), trace_file = options.at("--trace");
  const int epochs = static_cast<int>(number(options, "--epochs"));
  const auto seed = static_cast<std::uint64_t>(number(options, "--seed"));
  manual_seed(seed);
  trace::enable(!trace_file.empty());

  Net net;
  net.to(env.device());
  data::DataLoader loader{data::FashionMnist{data, data::Split::kTrain, kNormalize},
                          {.batch_size = static_cast<std::int64_t>(number(options, "--batch-size")),
                           .shuffle = true,
                           .num_workers = 1,
                           .pin_memory = true,
                           .seed = seed,
                           .device = env.device()}};
  optim::AdamW optimizer{net.parameters()};  // its learning rate is the schedule's
  optim::OneCycleLR schedule{
      optimizer,
      {.max_lr = number(options, "--lr"), .total_steps = epochs * loader.size(), .pct_start = 0.2}};

  auto batches = progress(loader, {.epochs = epochs, .unit = "images"});
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const auto& [images, labels] : batches) {
      optimizer.zero_grad();
      Tensor loss = cross_entropy(net(images), labels);
      loss.backward();
      optimizer.step();
      schedule.step();
      batches.set("loss", loss);
    }

  if (!trace_file.empty()) profiler::write_chrome_trace(trace_file);
  const std::string verdict = profiler::make_verdict(batches.steps().total()).to_text();
  const double accuracy = test_accuracy(net, data, env.device());
  if (env.rank() == 0)
    std::printf("test accuracy %.2f %%, %.0f images/s in training\n%s\n", 100 * accuracy,
                batches.samples_per_second(), verdict.c_str());
  TUTTI_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), Error, "the output could not be written");
}
