// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/onednn/adapter.hpp"

#include <algorithm>

#include "backend/backend.h"
#include "core/cpu_features.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu::onednn {

namespace {

dnnl::engine* make_engine() {
  // Has no effect when the program itself has used oneDNN before; then the CPU's own level stays.
  if (active_isa() == IsaLevel::kV3 && detected_isa() != IsaLevel::kV3) {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  } else if (active_isa() == IsaLevel::kV2 && detected_isa() != IsaLevel::kV2) {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
  }
  return new dnnl::engine(dnnl::engine::kind::cpu, 0);
}

// A thread has its own stream: executing on a shared one isn't promised to be safe.
const dnnl::stream& stream() {
  thread_local const dnnl::stream this_threads(engine());
  return this_threads;
}

bool has(dnnl_cpu_isa_t level) {
  const auto bits = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  return (bits & static_cast<unsigned>(level)) == static_cast<unsigned>(level);
}

void append_eltwise(dnnl::post_ops& list, dnnl::algorithm algorithm) {
#if DNNL_VERSION_MAJOR >= 3
  list.append_eltwise(algorithm, 0.0F, 0.0F);
#else
  list.append_eltwise(1.0F, algorithm, 0.0F, 0.0F);
#endif
}

dnnl::primitive_attr attributes(const PostOps& post_ops) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops list;
  if (post_ops.gelu) append_eltwise(list, dnnl::algorithm::eltwise_gelu_erf);
  if (post_ops.accumulate) list.append_sum();
  if (list.len() != 0) attributes.set_post_ops(list);
  return attributes;
}

// A bias that isn't there is a zero descriptor to oneDNN.
Desc or_none(const Desc* desc) { return desc ? *desc : Desc(); }

// The same dims in another dtype, layout left to oneDNN.
Desc any_layout(const Desc& desc, DataType type) {
#if DNNL_VERSION_MAJOR >= 3
  return {desc.get_dims(), type, dnnl::memory::format_tag::any};
#else
  return {desc.dims(), type, dnnl::memory::format_tag::any};
#endif
}

DataType type_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_data_type();
#else
  return desc.data_type();
#endif
}

}  // namespace

const dnnl::engine& engine() {
  // Never destroyed: threads' caches may outlive static objects.
  static const dnnl::engine* const only = make_engine();
  return *only;
}

const Capabilities& capabilities() {
  static const Capabilities found = [] {
    engine();  // caps the level first
    Capabilities result;
    result.bf16 = has(dnnl_cpu_isa_avx512_core_bf16);
    result.amx_bf16 = has(dnnl_cpu_isa_avx512_core_amx);
#if DNNL_VERSION_MAJOR >= 3
    result.f16 = has(dnnl_cpu_isa_avx512_core_fp16);
#endif
    return result;
  }();
  return found;
}

DataType data_type(std::int32_t dtype) {
  switch (dtype) {
    case TUTTI_F32: return DataType::f32;
    case TUTTI_F16: return DataType::f16;
    case TUTTI_BF16: return DataType::bf16;
    default: throw KernelError(TUTTI_UNSUPPORTED, concat("oneDNN: no data type for ", dtype_text(dtype)));
  }
}

void Executable::append(int id, const Desc& desc) {
  const auto index = static_cast<std::size_t>(count_++);
  memories_[index] = dnnl::memory(desc, engine(), nullptr);
  arguments_[index] = {id, memories_[index].get()};
}

void Executable::run(std::initializer_list<const void*> data) {
  std::size_t index = 0;
  for (const void* pointer : data) {
    dnnl::error::wrap_c_api(
        dnnl_memory_set_data_handle(arguments_[index++].memory, const_cast<void*>(pointer)),
        "oneDNN: could not set a memory's data");
  }
  if (scratchpad_bytes_ != 0) {
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(arguments_[index].memory,
                                                        workspace(Purpose::kScratchpad, scratchpad_bytes_)),
                            "oneDNN: could not set the scratchpad");
  }
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream().get(), count_, arguments_.data()),
                          "oneDNN: could not execute a primitive");
}

Desc Executable::desc_of(int id) const {
  for (int i = 0; i < count_; ++i) {
    if (arguments_[static_cast<std::size_t>(i)].arg == id)
      return memories_[static_cast<std::size_t>(i)].get_desc();
  }
  throw KernelError(TUTTI_DEVICE_FAILED, concat("oneDNN: a primitive without argument ", id));
}

Executable& cached(const Key& key, MakeExecutable make, const void* context) {
  struct Entry {
    Key key;
    std::uint64_t used = 0;
    std::unique_ptr<Executable> executable;
  };
  struct Cache {
    std::uint64_t clock = 0;
    std::array<std::array<Entry, kCacheWays>, kCacheSets> sets;
  };
  thread_local const std::unique_ptr<Cache> cache = std::make_unique<Cache>();
  auto& set = cache->sets[key.hash() % kCacheSets];
  const std::uint64_t now = ++cache->clock;
  for (Entry& entry : set) {
    if (entry.executable && entry.key == key) {
      entry.used = now;
      return *entry.executable;
    }
  }
  std::unique_ptr<Executable> executable = make(context);
  Entry& oldest = *std::min_element(set.begin(), set.end(),
                                    [](const Entry& a, const Entry& b) { return a.used < b.used; });
  oldest.key = key;
  oldest.used = now;
  oldest.executable = std::move(executable);
  return *oldest.executable;
}

// ---- creation ----------------------------------------------------------------------------------------------------

dnnl::matmul::primitive_desc matmul_desc(const Desc& a, const Desc& b, const Desc* bias, const Desc& out,
                                         const PostOps& post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), a, b, or_none(bias), out, attributes(post_ops)};
#else
  return {{a, b, or_none(bias), out}, attributes(post_ops), engine()};
#endif
}

dnnl::convolution_forward::primitive_desc convolution_forward_desc(const Desc& x, const Desc& weight,
                                                                   const Desc* bias, const Desc& y,
                                                                   const ConvolutionGeometry& g,
                                                                   const PostOps& post_ops) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),
          kKind,
          kAlgorithm,
          x,
          weight,
          or_none(bias),
          y,
          g.strides,
          g.dilations,
          g.padding_left,
          g.padding_right,
          attributes(post_ops)};
#else
  return {{kKind, kAlgorithm, x, weight, or_none(bias), y, g.strides, g.dilations, g.padding_left,
           g.padding_right},
          attributes(post_ops),
          engine()};
#endif
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data_desc(const Desc& grad_x,
                                                                               const Desc& weight,
                                                                               const Desc& grad_y,
                                                                               const ConvolutionGeometry& g) {
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  // The hint is a forward in the inputs' dtype; a gradient in f32 is the backward's own matter.
  const auto hint =
      convolution_forward_desc(any_layout(grad_x, type_of(grad_y)), weight, nullptr, grad_y, g, {});
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),    kAlgorithm,     grad_x,          weight, grad_y,        g.strides,
          g.dilations, g.padding_left, g.padding_right, hint,   attributes({})};
#else
  return {{kAlgorithm, grad_x, weight, grad_y, g.strides, g.dilations, g.padding_left, g.padding_right},
          attributes({}),
          engine(),
          hint};
#endif
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights_desc(
    const Desc& x, const Desc& grad_weight, const Desc* grad_bias, const Desc& grad_y,
    const ConvolutionGeometry& g) {
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const auto hint = convolution_forward_desc(x, any_layout(grad_weight, type_of(x)), nullptr, grad_y, g, {});
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),           kAlgorithm,      x,         grad_weight,
          or_none(grad_bias), grad_y,          g.strides, g.dilations,
          g.padding_left,     g.padding_right, hint,      attributes({})};
#else
  return {{kAlgorithm, x, grad_weight, or_none(grad_bias), grad_y, g.strides, g.dilations, g.padding_left,
           g.padding_right},
          attributes({}),
          engine(),
          hint};
#endif
}

std::unique_ptr<Executable> make_reorder(const Desc& from, const Desc& to) {
  const dnnl::reorder::primitive_desc description(engine(), from, engine(), to, attributes({}));
  return std::make_unique<Executable>(
      description, dnnl::reorder(description),
      std::vector<Executable::Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace tutti::cpu::onednn
