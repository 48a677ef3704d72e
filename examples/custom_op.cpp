// SPDX-License-Identifier: Apache-2.0
// An operation, a dataset and a comm hook of one's own. Runs alone or under mpirun:
//
//   mpirun -np 2 custom_op
#include <tutti/tutti.hpp>

#include <cstdio>

using namespace tutti;

// y = x^3, dy/dx = 3 x^2
struct Cube : autograd::Function<Cube> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save(x);
    return x * x * x;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const Tensor x = ctx.saved(0);
    return 3 * x * x * grad_y;
  }
};
Tensor cube(const Tensor& x) { return Cube::apply(x); }

// Readings of eight sensors, and what is to be predicted from them: the sum of their cubes.
struct Sensors : data::Dataset<Sensors> {
  static constexpr std::int64_t kSensors = 8;

  std::size_t size() const { return 4096; }
  // Called from worker threads: writes its row of the batch in place. The generator depends on the sample alone.
  void read(std::size_t index, data::Row& row) const {
    Generator generator{/*seed=*/7, /*stream=*/index};
    float sum = 0;
    for (float& reading : row.input<float>({kSensors})) {
      reading = static_cast<float>(2 * generator.next_double() - 1);
      sum += reading * reading * reading;
    }
    row.target<float>({1})[0] = sum;
  }
};

struct Net : nn::Module<Net> {
  nn::Linear mix{*this, "mix", {.in_features = Sensors::kSensors, .out_features = 16}};
  nn::Linear head{*this, "head", {.in_features = 16, .out_features = 1}};

  Tensor forward(const Tensor& readings) { return head(cube(mix(readings))); }
};

int main(int argc, char** argv) {
  Environment env{argc, argv};
  manual_seed(1);

  // The derivative is checked against finite differences; a wrong one throws.
  const auto check = autograd::gradcheck([](std::span<const Tensor> x) { return cube(x[0]); },
                                         std::vector<Tensor>{randn({5}, DType::kFloat64).requires_grad_()});

  Net net;
  parallel::DistributedDataParallel model{net};
  // Sends gradients in half precision. Returns the work that leaves their sum over the ranks in the bucket.
  model.register_comm_hook([](parallel::GradBucket& bucket) {
    const Tensor half = bucket.buffer().to(DType::kFloat16);
    return bucket.group().all_reduce(half).then([&bucket, half] { bucket.buffer().copy_(half); });
  });
  data::DataLoader loader{Sensors{}, {.batch_size = 64, .shuffle = true, .num_workers = 1}};
  optim::AdamW optimizer{net.parameters(), {.lr = 1e-2}};

  double first_loss = 0;
  double loss_value = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (const auto& [readings, sums] : loader) {
      optimizer.zero_grad();
      const Tensor error = model(readings) - sums;
      const Tensor loss = (error * error).mean();
      loss.backward();
      optimizer.step();
      loss_value = loss.item();
      if (first_loss == 0) first_loss = loss_value;
    }
  }
  if (env.rank() == 0)
    std::printf("gradient of cube: off by %.1e; loss %.4f, then %.6f\n", check.deviation, first_loss,
                loss_value);
  TUTTI_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), Error, "the output could not be written");
  return loss_value < 0.01 * first_loss ? 0 : 1;
}
