// SPDX-License-Identifier: Apache-2.0
// Convolutions on oneDNN. The batch is cut into parts of a few images; the number of parts depends on the shape alone and each
// part is one single-threaded call, so the bits don't depend on the number of threads. Weight gradients of the parts are summed
// in part order.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/integers.hpp"
#include "core/parallel_for.hpp"
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/isa/matmul_kernels.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/onednn/packed_weights.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

namespace {

using namespace onednn;
using Tag = dnnl::memory::format_tag;

enum KeyKind : std::int64_t {
  kForward = 16,
  kBackwardData,
  kBackwardWeight,
  kPackForward,
  kPackData,
  kUnpack
};

constexpr std::int64_t kMostParts = 16;
constexpr std::int64_t kMostWeightParts = 8;
constexpr std::int64_t kCachedBytes = 1 << 19;
// A part's weight gradient is written and read once more; so many positions of the result make that worth it.
constexpr std::int64_t kWeightPartPositions = 512;

// Multiplications worth a part: what a core does in about 50 us.
std::int64_t part_work(const Convolution& conv) { return conv.dtype == TUTTI_F32 ? 1 << 22 : 1 << 25; }

std::int64_t images_per_part(const Convolution& conv) {
  std::int64_t images = std::max(divide_up(part_work(conv), std::max<std::int64_t>(1, conv.image_work())),
                                 divide_up(conv.n, kMostParts));
  // A relu of our own finds the part in the second-level cache.
  if (conv.epilogue == TUTTI_EPILOGUE_RELU) {
    images = std::min(
        images, std::max<std::int64_t>(1, kCachedBytes / (conv.y_image() * element_size(conv.out_dtype))));
  }
  return std::min(conv.n, images);
}

// oneDNN sums the bias's gradient with SSE instructions: our own sum makes LeNet's step 2 % faster.
bool sums_bias_itself(const Convolution& conv) { return conv.dtype == TUTTI_F32; }

std::int64_t weight_parts(const Convolution& conv) {
  const std::int64_t by_work = conv.n * conv.image_work() / part_work(conv);
  const std::int64_t by_positions = conv.n * conv.oh * conv.ow / kWeightPartPositions;
  return std::clamp<std::int64_t>(std::min(by_work, by_positions), 1, std::min(conv.n, kMostWeightParts));
}

Key key_of(const Convolution& conv, std::int64_t images, KeyKind kind) {
  const bool gelu = conv.epilogue == TUTTI_EPILOGUE_GELU;
  const tutti_view& weight = conv.weight.view;
  return {{kind,
           conv.dtype | conv.out_dtype << 8 | (conv.bias ? conv.bias_dtype + 1 : 0) << 16 | gelu << 24,
           images,
           conv.c,
           conv.h,
           conv.w,
           conv.o,
           conv.kh,
           conv.kw,
           conv.groups,
           conv.stride[0],
           conv.stride[1],
           conv.padding[0],
           conv.padding[1],
           conv.dilation[0],
           conv.dilation[1],
           weight.strides[0],
           weight.strides[1],
           weight.strides[2],
           weight.strides[3]}};
}

ConvolutionGeometry geometry_of(const Convolution& conv) {
  // Padding after the last row: as much as the windows reach, which may be less or more than before the first.
  const auto after = [&](int d, std::int64_t in, std::int64_t out, std::int64_t kernel) {
    return (out - 1) * conv.stride[d] + (kernel - 1) * conv.dilation[d] + 1 - in - conv.padding[d];
  };
  return {{conv.stride[0], conv.stride[1]},
          {conv.dilation[0] - 1, conv.dilation[1] - 1},
          {conv.padding[0], conv.padding[1]},
          {after(0, conv.h, conv.oh, conv.kh), after(1, conv.w, conv.ow, conv.kw)}};
}

Desc x_desc(const Convolution& conv, std::int64_t images, std::int32_t dtype) {
  return {{images, conv.c, conv.h, conv.w}, data_type(dtype), Tag::nhwc};
}
Desc y_desc(const Convolution& conv, std::int64_t images, std::int32_t dtype) {
  return {{images, conv.o, conv.oh, conv.ow}, data_type(dtype), Tag::nhwc};
}
Dims weight_dims(const Convolution& conv) {
  if (conv.groups == 1) return {conv.o, conv.c, conv.kh, conv.kw};
  return {conv.groups, conv.o / conv.groups, conv.c / conv.groups, conv.kh, conv.kw};
}
Desc any_weight(const Convolution& conv, std::int32_t dtype) {
  return {weight_dims(conv), data_type(dtype), Tag::any};
}
Desc strided_weight(const Convolution& conv) {
  const auto& s = conv.weight.view.strides;
  Dims strides{s[0], s[1], s[2], s[3]};
  if (conv.groups != 1) strides.insert(strides.begin(), conv.o / conv.groups * s[0]);
  return {weight_dims(conv), data_type(conv.dtype), strides};
}
Desc bias_desc(const Convolution& conv, std::int32_t dtype) { return {{conv.o}, data_type(dtype), Tag::x}; }

dnnl::convolution_forward::primitive_desc describe_forward(const Convolution& conv, std::int64_t images,
                                                           const Desc& weight) {
  const Desc bias = conv.bias ? bias_desc(conv, conv.bias_dtype) : Desc();
  return convolution_forward_desc(x_desc(conv, images, conv.dtype), weight, conv.bias ? &bias : nullptr,
                                  y_desc(conv, images, conv.out_dtype), geometry_of(conv),
                                  {conv.epilogue == TUTTI_EPILOGUE_GELU, false});
}

dnnl::convolution_backward_data::primitive_desc describe_data(const Convolution& conv, std::int64_t images,
                                                              const Desc& weight) {
  return convolution_backward_data_desc(x_desc(conv, images, conv.out_dtype), weight,
                                        y_desc(conv, images, conv.dtype), geometry_of(conv));
}

// The weight's layout for parts of so many images; a smaller last part uses the same.
Desc packed_layout(const Convolution& conv, std::int64_t images, bool forward) {
  const Desc any = any_weight(conv, conv.dtype);
  return forward ? describe_forward(conv, images, any).weights_desc()
                 : describe_data(conv, images, any).weights_desc();
}

Executable& forward_of(const Convolution& conv, std::int64_t images, std::int64_t whole) {
  Key key = key_of(conv, images, kForward);
  key.words[20] = whole;
  return cached(key, [&] {
    const auto description = describe_forward(conv, images, packed_layout(conv, whole, true));
    std::vector<Executable::Argument> arguments{{DNNL_ARG_SRC, description.src_desc()},
                                                {DNNL_ARG_WEIGHTS, description.weights_desc()},
                                                {DNNL_ARG_DST, description.dst_desc()}};
    if (conv.bias) arguments.push_back({DNNL_ARG_BIAS, description.bias_desc()});
    return std::make_unique<Executable>(description, dnnl::convolution_forward(description), arguments);
  });
}

Executable& data_of(const Convolution& conv, std::int64_t images, std::int64_t whole) {
  Key key = key_of(conv, images, kBackwardData);
  key.words[20] = whole;
  return cached(key, [&] {
    const auto description = describe_data(conv, images, packed_layout(conv, whole, false));
    return std::make_unique<Executable>(
        description, dnnl::convolution_backward_data(description),
        std::vector<Executable::Argument>{{DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                                          {DNNL_ARG_WEIGHTS, description.weights_desc()},
                                          {DNNL_ARG_DIFF_SRC, description.diff_src_desc()}});
  });
}

// The gradient of a part of `images` images. `layout` is what oneDNN chose for parts of `whole` images, null to let it choose.
Executable& weight_of(const Convolution& conv, std::int64_t images, std::int64_t whole, const Desc* layout) {
  Key key = key_of(conv, images, kBackwardWeight);
  key.words[20] = layout ? whole : 0;
  return cached(key, [&] {
    const Desc weight = layout ? *layout : any_weight(conv, TUTTI_F32);
    const Desc bias = bias_desc(conv, TUTTI_F32);
    const auto description = convolution_backward_weights_desc(
        x_desc(conv, images, conv.dtype), weight, conv.bias ? &bias : nullptr,
        y_desc(conv, images, conv.dtype), geometry_of(conv));
    std::vector<Executable::Argument> arguments{{DNNL_ARG_SRC, description.src_desc()},
                                                {DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                                                {DNNL_ARG_DIFF_WEIGHTS, description.diff_weights_desc()}};
    if (conv.bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, description.diff_bias_desc()});
    return std::make_unique<Executable>(description, dnnl::convolution_backward_weights(description),
                                        arguments);
  });
}

// The weight in the layout that oneDNN prefers: kept with the weight if it has a slot, else in this thread's workspace.
std::shared_ptr<const void> pack_weight(const Convolution& conv, std::int64_t images, bool forward,
                                        const void** packed) {
  const SerialScope serial;
  const Key key = key_of(conv, images, forward ? kPackForward : kPackData);
  Executable& reorder =
      cached(key, [&] { return make_reorder(strided_weight(conv), packed_layout(conv, images, forward)); });
  const std::size_t bytes = reorder.desc_of(DNNL_ARG_TO).get_size();
  const auto fill = [&](void* memory) { reorder.run({conv.weight.view.data, memory}); };
  Key layout = key;
  // A slot belongs to a storage, of which several weights may be views.
  layout.words[21] = reinterpret_cast<std::intptr_t>(conv.weight.view.data);
  std::shared_ptr<const void> kept = packed_copy(conv.weight, layout, bytes, PackWhen::kFirstUse, fill);
  *packed = kept.get();
  if (!kept) {
    void* memory = workspace(Purpose::kPacked, bytes);
    fill(memory);
    *packed = memory;
  }
  return kept;
}

char* advance(const void* data, std::int64_t elements, std::int32_t dtype) {
  return static_cast<char*>(const_cast<void*>(data)) + elements * element_size(dtype);
}

// The first of `parts` arrays becomes the sum of all, in order.
void sum_partials(float* partials, std::int64_t count, std::int64_t parts) {
  if (parts == 1) return;
  parallel_for(0, count, 1 << 13, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = 1; part < parts; ++part) {
      matmul_kernels().add_f32(partials + begin, partials + part * count + begin, end - begin);
    }
  });
}

}  // namespace

void conv2d_onednn_forward(const Convolution& conv) {
  const std::int64_t whole = images_per_part(conv);
  const void* packed = nullptr;
  const auto kept = pack_weight(conv, whole, true, &packed);
  parallel_for(0, divide_up(conv.n, whole), 1, [&](std::int64_t begin, std::int64_t end) {
    const SerialScope serial;
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t first = part * whole, images = std::min(whole, conv.n - first);
      const void* x = advance(conv.x, first * conv.x_image(), conv.dtype);
      void* y = advance(conv.y, first * conv.y_image(), conv.out_dtype);
      Executable& convolution = forward_of(conv, images, whole);
      conv.bias ? convolution.run({x, packed, y, conv.bias}) : convolution.run({x, packed, y});
      if (conv.epilogue == TUTTI_EPILOGUE_RELU) relu(y, images * conv.y_image(), conv.out_dtype);
    }
  });
}

void conv2d_onednn_backward_data(const Convolution& conv) {
  const std::int64_t whole = images_per_part(conv);
  const void* packed = nullptr;
  const auto kept = pack_weight(conv, whole, false, &packed);
  parallel_for(0, divide_up(conv.n, whole), 1, [&](std::int64_t begin, std::int64_t end) {
    const SerialScope serial;
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t first = part * whole, images = std::min(whole, conv.n - first);
      data_of(conv, images, whole)
          .run({advance(conv.y, first * conv.y_image(), conv.dtype), packed,
                advance(conv.x, first * conv.x_image(), conv.out_dtype)});
    }
  });
}

void conv2d_onednn_backward_weight(const Convolution& original, const WeightGradients& out) {
  Convolution conv = original;
  const bool own_bias = out.bias && sums_bias_itself(conv);
  conv.bias = own_bias ? nullptr : out.bias;
  const std::int64_t whole = divide_up(conv.n, weight_parts(conv)), parts = divide_up(conv.n, whole);
  const Desc layout = [&] {
    const SerialScope serial;
    return weight_of(conv, whole, whole, nullptr).desc_of(DNNL_ARG_DIFF_WEIGHTS);
  }();
  // Partial gradients lie one after the other: weight, then bias.
  const std::int64_t weight_bytes = round_up(static_cast<std::int64_t>(layout.get_size()), kAlignment);
  const std::int64_t bytes = weight_bytes + (out.bias ? round_up(conv.o * 4, kAlignment) : 0);
  char* partials = static_cast<char*>(workspace(Purpose::kPartials, static_cast<std::size_t>(parts * bytes)));
  parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    const SerialScope serial;
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t first = part * whole, images = std::min(whole, conv.n - first);
      const void* x = advance(conv.x, first * conv.x_image(), conv.dtype);
      const void* y = advance(conv.y, first * conv.y_image(), conv.dtype);
      char* weight = partials + part * bytes;
      Executable& gradient = weight_of(conv, images, whole, images == whole ? nullptr : &layout);
      conv.bias ? gradient.run({x, y, weight, weight + weight_bytes}) : gradient.run({x, y, weight});
      if (own_bias) {
        matmul_kernels().column_sums(static_cast<const float*>(y), images * conv.oh * conv.ow, conv.o,
                                     reinterpret_cast<float*>(weight + weight_bytes));
      }
    }
  });
  sum_partials(reinterpret_cast<float*>(partials), bytes / 4, parts);
  const SerialScope serial;
  cached(key_of(conv, whole, kUnpack), [&] {
    Dims strides(weight_dims(conv));
    std::int64_t stride = 1;
    for (auto d = strides.rbegin(); d != strides.rend(); ++d) stride *= std::exchange(*d, stride);
    return make_reorder(layout, Desc(weight_dims(conv), DataType::f32, strides));
  }).run({partials, out.weight});
  if (out.bias) std::memcpy(out.bias, partials + weight_bytes, static_cast<std::size_t>(conv.o) * 4);
}

}  // namespace tutti::cpu
