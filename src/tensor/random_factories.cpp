// SPDX-License-Identifier: Apache-2.0
// Factories of random tensors. Element i in row-major order draws the numbers at position i of the
// generator's sequence, so the values depend on neither layout nor device nor the number of threads.
#include <numeric>

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

void check_floating(const char* op, DType dtype) {
  TUTTI_CHECK(is_floating_point(dtype), DTypeError, op, ": wanted a floating-point dtype, given ", dtype);
}

Tensor uniform(Tensor out, Generator* generator, const char* op) {
  check_floating(op, out.dtype());
  tutti_random call{};
  call.kind = TUTTI_UNIFORM;
  call.a = 0;
  call.b = 1;
  return randomized(std::move(out), generator, call, op);
}

Tensor normal(Tensor out, Generator* generator, const char* op) {
  check_floating(op, out.dtype());
  tutti_random call{};
  call.kind = TUTTI_NORMAL;
  call.a = 0;
  call.b = 1;
  return randomized(std::move(out), generator, call, op);
}

}  // namespace

Tensor rand(const Dims& sizes, DType dtype, Device device, Generator* generator) {
  return uniform(raw::allocate(sizes, dtype, device, "rand"), generator, "rand");
}

Tensor randn(const Dims& sizes, DType dtype, Device device, Generator* generator) {
  return normal(raw::allocate(sizes, dtype, device, "randn"), generator, "randn");
}

Tensor rand_like(const Tensor& other, Generator* generator) {
  return uniform(empty_like(other), generator, "rand_like");
}
Tensor randn_like(const Tensor& other, Generator* generator) {
  return normal(empty_like(other), generator, "randn_like");
}

namespace {

Tensor integers(Tensor out, std::int64_t low, std::int64_t high, Generator* generator, const char* op) {
  TUTTI_CHECK(low < high, ValueError, op, ": wanted low below high, given ", low, " and ", high);
  TUTTI_CHECK(raw::holds(out.dtype(), low) && raw::holds(out.dtype(), high - 1), ValueError, op, ": ",
              out.dtype(), " can't hold all of [", low, ", ", high, ")");
  tutti_random call{};
  call.kind = TUTTI_RANDINT;
  call.low = low;
  call.high = high;
  return randomized(std::move(out), generator, call, op);
}

}  // namespace

Tensor randint(std::int64_t low, std::int64_t high, const Dims& sizes, DType dtype, Device device,
               Generator* generator) {
  return integers(raw::allocate(sizes, dtype, device, "randint"), low, high, generator, "randint");
}
Tensor randint_like(const Tensor& other, std::int64_t low, std::int64_t high, Generator* generator) {
  return integers(empty_like(other), low, high, generator, "randint_like");
}

// Fisher-Yates from the end, on the host: each step depends on the one before.
Tensor randperm(std::int64_t count, Device device, Generator* generator) {
  TUTTI_CHECK(count >= 0, ValueError, "randperm: the count can't be negative, given ", count);
  Tensor result = raw::allocate({count}, DType::kInt64, {}, "randperm");
  auto* values = result.data<std::int64_t>();
  std::iota(values, values + count, 0);
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
