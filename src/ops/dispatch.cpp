// SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch.hpp"

#include "backend/registry.hpp"

namespace tutti::dispatch {

const tutti_backend& backend_of(Device device) { return backend::get(static_cast<int>(device.type())); }

void check(Device device, tutti_status status, const char* op) {
  if (status != TUTTI_OK) [[unlikely]]
    backend::throw_status(backend_of(device), status, op);
}

namespace {

constexpr int kMaxInputs = 3;

// The inputs of one call after promotion: the one that is the number is left out.
struct Operands {
  std::array<Tensor, kMaxInputs> converted;         // keeps temporaries alive
  std::array<const Tensor*, kMaxInputs> tensors{};  // null: the scalar
  int count = 0;
};

bool is_host_number(const Tensor& tensor, Device device) {
  return tensor.dim() == 0 && tensor.device().is_cpu() && !device.is_cpu();
}

Device common_device(const char* name, std::initializer_list<const Tensor*> inputs) {
  Device device;
  bool found = false;
  for (const Tensor* input : inputs) {
    if (input->dim() == 0 && input->device().is_cpu() && inputs.size() > 1) continue;
    if (!found) {
      device = input->device();
      found = true;
    }
    TUTTI_CHECK(input->device() == device, DeviceError, name, ": tensors on ", device, " and ",
                input->device(), "; move them to one device first");
  }
  return device;
}

// A number that the computing dtype can't hold would stand for another one. Negative ones wrap around in arithmetic, as its
// results do, and would be wrong in a comparison.
void check_number(const Pointwise& call) {
  if (call.scalar_input < 0 || is_floating_point(call.compute)) return;
  raw::check_number(call.name, call.compute, call.scalar,
                    call.result == DType::kBool ? raw::Negatives::kRefuse : raw::Negatives::kWrap);
}

// Converts inputs to the computing dtype. `where` (and its like) keeps a bool condition in front.
void prepare(Operands& operands, const Pointwise& call, Device device,
             std::initializer_list<const Tensor*> inputs) {
  check_number(call);
  for (const Tensor* input : inputs) {
    if (operands.count == call.scalar_input)
      operands.tensors[static_cast<std::size_t>(operands.count++)] = nullptr;
    const auto slot = static_cast<std::size_t>(operands.count++);
    const DType wanted = call.functor == kFunctor<functors::Where> && slot == 0 ? DType::kBool : call.compute;
    if (input->device() == device && input->dtype() == wanted) {
      operands.tensors[slot] = input;
      continue;
    }
    operands.converted[slot] = input->dtype() == wanted ? *input : raw::to_dtype(*input, wanted);
    if (is_host_number(*input, device)) {
      Tensor moved = empty({}, wanted, device);
      raw::copy(moved, operands.converted[slot]);
      operands.converted[slot] = moved;
    }
    operands.tensors[slot] = &operands.converted[slot];
  }
  if (operands.count == call.scalar_input)
    operands.tensors[static_cast<std::size_t>(operands.count++)] = nullptr;
}

// True if every operand is dense, row-major and of one shape: the common case, one flat loop.
bool all_flat(const Operands& operands, const Tensor& first) {
  for (int i = 0; i < operands.count; ++i) {
    const Tensor* tensor = operands.tensors[static_cast<std::size_t>(i)];
    if (tensor == nullptr) continue;
    if (!tensor->impl()->is_contiguous || !(tensor->sizes() == first.sizes())) return false;
  }
  return true;
}

const Tensor& first_tensor(const Operands& operands) {
  return *(operands.tensors[0] != nullptr ? operands.tensors[0] : operands.tensors[1]);
}

void flat_view(tutti_view& view, const Tensor& tensor) {
  view.data = tensor.impl()->data;
  view.dtype = static_cast<std::int32_t>(tensor.impl()->dtype);
  view.ndim = 1;
  view.sizes[0] = tensor.impl()->numel;
  view.strides[0] = 1;
}

Dims broadcast_sizes(const char* name, const Operands& operands) {
  Dims sizes = first_tensor(operands).sizes();
  for (int i = 0; i < operands.count; ++i) {
    const Tensor* tensor = operands.tensors[static_cast<std::size_t>(i)];
    if (tensor != nullptr && !(tensor->sizes() == sizes))
      sizes = broadcast_shapes(sizes, tensor->sizes(), name);
  }
  return sizes;
}

// Layout of the result: that of the first input which is dense and has the result's shape.
Tensor allocate_result(const Operands& operands, const Dims& sizes, DType dtype, Device device) {
  for (int i = 0; i < operands.count; ++i) {
    const Tensor* tensor = operands.tensors[static_cast<std::size_t>(i)];
    if (tensor == nullptr || !(tensor->sizes() == sizes)) continue;
    if (tensor->impl()->is_contiguous) break;
    if (raw::is_dense(*tensor)) return empty_strided(sizes, tensor->strides(), dtype, device);
  }
  return empty(sizes, dtype, device);
}

void run(const Pointwise& call, const Operands& operands, const Tensor& out, bool flat) {
  tutti_pointwise args;  // not cleared: only what is used is written
  args.stream = stream_of(out.device());
  args.inputs = operands.count;
  args.scalar_input = call.scalar_input;
  args.scalar = {call.scalar.to_double(), call.scalar.to_int64()};
  for (std::size_t i = 0; i < 4; ++i) args.params[i] = call.params[i];
  if (flat) {
    flat_view(args.out, out);
  } else {
    raw::fill_view(args.out, out);
  }
  for (int i = 0; i < operands.count; ++i) {
    const Tensor* tensor = operands.tensors[static_cast<std::size_t>(i)];
    if (tensor == nullptr) {
      args.in[i].data = nullptr;
    } else if (flat) {
      flat_view(args.in[i], *tensor);
    } else {
      raw::fill_view_broadcast(args.in[i], *tensor, out.sizes());
    }
  }
  const tutti_backend& backend = backend_of(out.device());
  const tutti_status status = backend.kernels.pointwise[call.functor](&args);
  if (status != TUTTI_OK) [[unlikely]]
    backend::throw_status(backend, status, call.name);
}

// The loops read and write element by element, so an operand may be `out` itself but not share memory with it otherwise: the
// dense ones do overlap, of interleaved views a copy is read.
void separate_operands(const Pointwise& call, const Tensor& out, Operands& operands) {
  raw::check_writable(out, call.name);
  for (std::size_t i = 0; i < static_cast<std::size_t>(operands.count); ++i) {
    const Tensor* tensor = operands.tensors[i];
    if (tensor == nullptr || tensor->is_same(out) || raw::memory_is_disjoint(out, *tensor)) continue;
    if (tensor->impl()->data == out.impl()->data && tensor->sizes() == out.sizes() &&
        tensor->strides() == out.strides())
      continue;
    TUTTI_CHECK(!raw::is_dense(out) || !raw::is_dense(*tensor), ShapeError, call.name,
                ": the tensor written in place and an operand overlap in memory (shapes ", out.sizes(),
                " and ", tensor->sizes(), " at offsets ", out.storage_offset(), " and ",
                tensor->storage_offset(), "); clone() the operand first");
    operands.converted[i] = raw::clone(*tensor);
    operands.tensors[i] = &operands.converted[i];
  }
}

}  // namespace

Tensor pointwise(const Pointwise& call, std::initializer_list<const Tensor*> inputs) {
  const Device device = common_device(call.name, inputs);
  Operands operands;
  prepare(operands, call, device, inputs);
  const Tensor& first = first_tensor(operands);
  if (all_flat(operands, first)) {
    Tensor out = empty(first.sizes(), call.result, device);
    run(call, operands, out, true);
    return out;
  }
  Tensor out = allocate_result(operands, broadcast_sizes(call.name, operands), call.result, device);
  run(call, operands, out, false);
  return out;
}

Tensor pointwise_reusing(const Tensor& spent, const Pointwise& call,
                         std::initializer_list<const Tensor*> inputs) {
  if (spent.dtype() != call.result || !raw::is_sole_view(spent)) return pointwise(call, inputs);
  const Device device = common_device(call.name, inputs);
  Operands operands;
  prepare(operands, call, device, inputs);
  const bool flat = all_flat(operands, spent) && spent.impl()->is_contiguous;
  if (!flat && (!(broadcast_sizes(call.name, operands) == spent.sizes()) || !raw::is_dense(spent)))
    return pointwise(call, inputs);
  run(call, operands, spent, flat);
  return spent;
}

void pointwise_into(const Tensor& out, const Pointwise& call, std::initializer_list<const Tensor*> inputs) {
  const Device device = common_device(call.name, inputs);
  TUTTI_CHECK(out.device() == device, DeviceError, call.name, ": the result is on ", out.device(),
              ", the inputs on ", device);
  Operands operands;
  prepare(operands, call, device, inputs);
  const Dims sizes = broadcast_sizes(call.name, operands);
  TUTTI_CHECK(broadcast_shapes(sizes, out.sizes(), call.name) == out.sizes(), ShapeError, call.name,
              ": the result of shape ", sizes, " does not fit into a tensor of shape ", out.sizes());
  TUTTI_CHECK(out.dtype() == call.result, DTypeError, call.name, ": the result is ", call.result,
              ", the tensor written in place is ", out.dtype());
  separate_operands(call, out, operands);
  run(call, operands, out, out.impl()->is_contiguous && all_flat(operands, out));
}

Tensor reduce(const char* name, int op, const Tensor& x, std::uint32_t mask, bool keepdim, DType result) {
  Dims kept = x.sizes();
  Dims shown;
  for (int d = 0; d < x.dim(); ++d) {
    if ((mask >> d & 1U) != 0) {
      kept[d] = 1;
    } else {
      shown.push_back(x.sizes()[d]);
    }
  }
  Tensor out = empty(kept, result, x.device());
  tutti_reduce args;
  args.stream = stream_of(x.device());
  args.op = op;
  args.dims = mask;
  raw::fill_view(args.out, out);
  raw::fill_view(args.in, x);
  check(x.device(), backend_of(x.device()).kernels.reduce(&args), name);
  return keepdim ? out : raw::view(out, shown);
}

}  // namespace tutti::dispatch
