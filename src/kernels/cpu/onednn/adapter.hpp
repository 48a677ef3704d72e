// SPDX-License-Identifier: Apache-2.0
// All that differs between oneDNN 2.6 and 3.x, and what every use of it needs: an engine, prepared primitives that are
// re-pointed at data, and a cache of them.
//
// oneDNN always runs on one thread here. Its own threading picks blockings and partial sums by the number of threads
// (measured: bf16 products and weight gradients differ in bits), so drivers cut the work into parts fixed by the shape
// and run the parts on the team.
#pragma once

#include <omp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "kernels/cpu/onednn/workspace.hpp"

namespace tutti::cpu::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using DataType = dnnl::memory::data_type;

// Lives for the whole process; oneDNN's instruction sets are capped as TUTTI_ISA caps ours.
const dnnl::engine& engine();

// What the CPU (as far as DNNL_MAX_CPU_ISA and TUTTI_ISA let oneDNN use it) multiplies natively.
struct Capabilities {
  bool bf16 = false;      // AVX512-BF16 or AMX
  bool amx_bf16 = false;  // worth three bf16 products in place of one f32
  bool f16 = false;       // oneDNN 3.x on AVX512-FP16
};
const Capabilities& capabilities();

DataType data_type(std::int32_t dtype);  // of TUTTI_F32, TUTTI_F16, TUTTI_BF16

// While it lives, oneDNN creates and runs primitives on the calling thread alone.
class SerialScope {
 public:
  SerialScope() noexcept : threads_(omp_get_max_threads()) {
    if (threads_ != 1) omp_set_num_threads(1);
  }
  ~SerialScope() {
    if (threads_ != 1) omp_set_num_threads(threads_);
  }
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  int threads_;
};

// A primitive with its memory objects, made once and pointed at other data each time. Belongs to one thread.
class Executable {
 public:
  struct Argument {
    int id;  // DNNL_ARG_*
    Desc desc;
  };
  template <class PrimitiveDesc>
  Executable(const PrimitiveDesc& description, const dnnl::primitive& primitive,
             const std::vector<Argument>& arguments)
      : primitive_(primitive),
        scratchpad_bytes_(description.scratchpad_desc().get_size()),
        is_brgemm_(std::string_view(description.impl_info_str()).starts_with("brg")) {
    for (const Argument& argument : arguments) append(argument.id, argument.desc);
    append(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  }

  // data: one pointer for each argument, in the constructor's order.
  void run(std::initializer_list<const void*> data);

  // Layout that oneDNN chose for an argument.
  Desc desc_of(int id) const;
  // Whether oneDNN runs it on its batch-reduce kernels, which sum over k in order.
  bool is_brgemm() const noexcept { return is_brgemm_; }

 private:
  static constexpr int kMost = 6;
  void append(int id, const Desc& desc);

  dnnl::primitive primitive_;
  std::array<dnnl::memory, kMost> memories_;
  std::array<dnnl_exec_arg_t, kMost> arguments_{};
  int count_ = 0;
  std::size_t scratchpad_bytes_;
  bool is_brgemm_;
};

// Everything a primitive depends on, as plain words.
struct Key {
  static constexpr int kWords = 24;
  std::array<std::int64_t, kWords> words{};
  bool operator==(const Key& other) const noexcept { return words == other.words; }
  std::uint64_t hash() const noexcept {
    std::uint64_t lanes[4] = {1, 2, 3, 4};
    for (int i = 0; i < kWords; i += 4) {
      for (int lane = 0; lane < 4; ++lane) {
        lanes[lane] = (lanes[lane] ^ static_cast<std::uint64_t>(words[static_cast<std::size_t>(i + lane)])) *
                      0x9e3779b97f4a7c15ULL;
        lanes[lane] ^= lanes[lane] >> 29U;
      }
    }
    std::uint64_t mixed = 0;
    for (const std::uint64_t lane : lanes) mixed = (mixed ^ lane) * 0xff51afd7ed558ccdULL;
    return mixed ^ (mixed >> 32U);
  }
};

inline constexpr std::size_t kCacheSets = 64, kCacheWays = 8;
// This thread's executable for a key; make() creates it on a miss and the least recently used of its set goes.
// The reference is valid until the thread's next call with another key.
using MakeExecutable = std::unique_ptr<Executable> (*)(const void* context);
Executable& cached(const Key& key, MakeExecutable make, const void* context);
template <class Make>
Executable& cached(const Key& key, const Make& make) {
  return cached(
      key, [](const void* context) { return (*static_cast<const Make*>(context))(); },
      static_cast<const void*>(&make));
}

// ---- creation of primitives ---------------------------------------------------------------------------------------
// The same calls for 2.6 and 3.x. A configuration that oneDNN doesn't implement throws dnnl::error.

// No relu: oneDNN's turns NaN into 0, which would hide a diverging model. Callers do it on the part that is in cache.
struct PostOps {
  bool gelu = false;
  bool accumulate = false;  // adds the former destination, after gelu
};
dnnl::matmul::primitive_desc matmul_desc(const Desc& a, const Desc& b, const Desc* bias, const Desc& out,
                                         const PostOps& post_ops);

struct ConvolutionGeometry {
  Dims strides, dilations, padding_left, padding_right;  // dilations count from 0, as oneDNN's
};
dnnl::convolution_forward::primitive_desc convolution_forward_desc(const Desc& x, const Desc& weight,
                                                                   const Desc* bias, const Desc& y,
                                                                   const ConvolutionGeometry& geometry,
                                                                   const PostOps& post_ops);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data_desc(
    const Desc& grad_x, const Desc& weight, const Desc& grad_y, const ConvolutionGeometry& geometry);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights_desc(
    const Desc& x, const Desc& grad_weight, const Desc* grad_bias, const Desc& grad_y,
    const ConvolutionGeometry& geometry);

// A copy between layouts (and dtypes) of one shape.
std::unique_ptr<Executable> make_reorder(const Desc& from, const Desc& to);

}  // namespace tutti::cpu::onednn
