// SPDX-License-Identifier: Apache-2.0
// Factories of random tensors. Element i in row-major order draws the numbers at position i of the
// generator's sequence, so the values depend on neither layout nor device nor the number of threads.
#include "backend/registry.hpp"
#include "device/devices.hpp"
#include "tensor/raw.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {

namespace {

Generator& or_default(Generator* generator) {
  return generator != nullptr ? *generator : default_generator();
}

// 32-bit numbers that the kernel draws: two for eight-byte elements; normal ones come in pairs (Box-Muller).
std::uint64_t numbers_for(const Tensor& tensor, std::int32_t kind) {
  const auto numel = static_cast<std::uint64_t>(tensor.numel());
  return (kind == TUTTI_NORMAL ? (numel + 1) / 2 * 2 : numel) * (tensor.element_size() == 8 ? 2 : 1);
}

Tensor randomized(Tensor out, Generator* generator, tutti_random call, const char* op) {
  const PhiloxState state = or_default(generator).reserve(numbers_for(out, call.kind));
  if (out.numel() == 0) return out;
  call.stream = current_stream(out.device()).handle();
  call.philox = {state.seed, state.stream, state.offset};
  raw::fill_view(call.out, out);
  const tutti_backend& backend = backend_of(out.device());
  backend::check(backend, backend.kernels.random(&call), op);
  return out;
}

Tensor uniform(Tensor out, Generator* generator) {
  TUTTI_CHECK(is_floating_point(out.dtype()), DTypeError, "rand: wanted a floating-point dtype, given ",
              out.dtype());
  tutti_random call{};
  call.kind = TUTTI_UNIFORM;
  call.a = 0;
  call.b = 1;
  return randomized(std::move(out), generator, call, "rand");
}

Tensor normal(Tensor out, Generator* generator) {
  TUTTI_CHECK(is_floating_point(out.dtype()), DTypeError, "randn: wanted a floating-point dtype, given ",
              out.dtype());
  tutti_random call{};
  call.kind = TUTTI_NORMAL;
  call.a = 0;
  call.b = 1;
  return randomized(std::move(out), generator, call, "randn");
}

}  // namespace

Tensor rand(const Dims& sizes, DType dtype, Device device, Generator* generator) {
  return uniform(empty(sizes, dtype, device), generator);
}

Tensor randn(const Dims& sizes, DType dtype, Device device, Generator* generator) {
  return normal(empty(sizes, dtype, device), generator);
}

Tensor rand_like(const Tensor& other, Generator* generator) { return uniform(empty_like(other), generator); }
Tensor randn_like(const Tensor& other, Generator* generator) { return normal(empty_like(other), generator); }

namespace {

Tensor integers(Tensor out, std::int64_t low, std::int64_t high, Generator* generator) {
  TUTTI_CHECK(low < high, ValueError, "randint: wanted low below high, given ", low, " and ", high);
  // What fill accepts is what the dtype holds.
  const Tensor probe = empty({0}, out.dtype());
  raw::fill(probe, low);
  raw::fill(probe, high - 1);
  tutti_random call{};
  call.kind = TUTTI_RANDINT;
  call.low = low;
  call.high = high;
  return randomized(std::move(out), generator, call, "randint");
}

}  // namespace

Tensor randint(std::int64_t low, std::int64_t high, const Dims& sizes, DType dtype, Device device,
               Generator* generator) {
  return integers(empty(sizes, dtype, device), low, high, generator);
}
Tensor randint_like(const Tensor& other, std::int64_t low, std::int64_t high, Generator* generator) {
  return integers(empty_like(other), low, high, generator);
}

// Fisher-Yates from the end, on the host: each step depends on the one before.
Tensor randperm(std::int64_t count, Device device, Generator* generator) {
  TUTTI_CHECK(count >= 0, ValueError, "randperm: the count can't be negative, given ", count);
  Tensor result = arange(0, count, 1, DType::kInt64);
  auto* values = result.data<std::int64_t>();
  Generator& source = or_default(generator);
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(values[i], values[source.next_below(static_cast<std::uint64_t>(i) + 1)]);
  }
  if (device.is_cpu()) return result;
  Tensor out = empty({count}, DType::kInt64, device);
  raw::copy(out, result);
  return out;
}

}  // namespace tutti
