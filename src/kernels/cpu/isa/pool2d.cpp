// SPDX-License-Identifier: Apache-2.0
// Backward passes gather: each element of the gradient of x sums, over the windows that cover it and in their order, what they
// hand down. So rows can be computed by any thread, and nothing has to be zeroed first.
#include "kernels/cpu/isa/pool2d_loops.hpp"

#include "kernels/cpu/isa/lanes.hpp"

namespace tutti::cpu::TUTTI_ISA {

extern const PoolLoops kPoolLoops;

namespace {

// Elements [first, last) of a window that lie inside the image along one dim; element i is at start + i * dilation.
struct Inside {
  int64_t start, first, last;
};

TUTTI_INLINE Inside inside(const PoolShape& s, int d, int64_t size, int64_t output) {
  Inside range{output * s.stride[d] - s.padding[d], 0, s.kernel[d]};
  if (range.start < 0) range.first = (-range.start + s.dilation[d] - 1) / s.dilation[d];
  const int64_t reach = size - range.start;  // start + i * dilation < size
  if (reach <= 0) {
    range.last = 0;
  } else if ((range.last - 1) * s.dilation[d] >= reach) {
    range.last = (reach + s.dilation[d] - 1) / s.dilation[d];
  }
  return range;
}

// Outputs [first, last] whose windows may cover a position along one dim (dilation leaves holes between).
struct Covering {
  int64_t first, last;
};

TUTTI_INLINE Covering covering(const PoolShape& s, int d, int64_t outputs, int64_t position) {
  const int64_t reach = (s.kernel[d] - 1) * s.dilation[d];
  const int64_t low = position + s.padding[d] - reach, high = (position + s.padding[d]) / s.stride[d];
  const int64_t first = low <= 0 ? 0 : (low + s.stride[d] - 1) / s.stride[d];
  return {first, high < outputs - 1 ? high : outputs - 1};
}

// Element of the window of `output` at a position, or -1 if dilation skips it.
TUTTI_INLINE int64_t element_at(const PoolShape& s, int d, int64_t output, int64_t position) {
  const int64_t offset = position + s.padding[d] - output * s.stride[d];
  if (s.dilation[d] == 1) return offset;
  return offset % s.dilation[d] == 0 ? offset / s.dilation[d] : -1;
}

// Integers as wide as the lanes, for indices and masks.
template <int kBytes, int kWidth>
struct IntegerOfBytes;
template <int kWidth>
struct IntegerOfBytes<4, kWidth> {
  using Type = VectorOf<int32_t, kWidth>;
};
template <int kWidth>
struct IntegerOfBytes<8, kWidth> {
  using Type = VectorOf<int64_t, kWidth>;
};
template <class L>
using Integers = typename IntegerOfBytes<sizeof(typename L::Number), L::kWidth>::Type;

// A vector of indices to and from lanes; GCC 12 takes bytes apart one by one unless it is told how.
template <class L, class Index>
TUTTI_INLINE Integers<L> widen(VectorOf<Index, L::kWidth> raw) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Index) == 1 && L::kWidth == 16)
    return cast_bits<Integers<L>>(_mm512_maskz_cvtepu8_epi32(0xffff, cast_bits<__m128i>(raw)));
#endif
  if constexpr (sizeof(Index) == 1)
    return __builtin_convertvector(__builtin_convertvector(raw, VectorOf<uint16_t, L::kWidth>), Integers<L>);
  return __builtin_convertvector(raw, Integers<L>);
}
template <class L, class Index>
TUTTI_INLINE VectorOf<Index, L::kWidth> narrow(Integers<L> value) {
  using Result = VectorOf<Index, L::kWidth>;
#if defined(__AVX512F__)
  if constexpr (sizeof(Index) == 1 && L::kWidth == 16)
    return cast_bits<Result>(_mm512_maskz_cvtepi32_epi8(0xffff, cast_bits<__m512i>(value)));
#endif
  if constexpr (sizeof(Index) == 1)
    return __builtin_convertvector(__builtin_convertvector(value, VectorOf<uint16_t, L::kWidth>), Result);
  return __builtin_convertvector(value, Result);
}

template <class L, class Index>
TUTTI_INLINE Integers<L> load_index(const Index* data, int64_t count) {
  VectorOf<Index, L::kWidth> raw{};
  if (count == L::kWidth) {
    __builtin_memcpy(&raw, data, sizeof raw);
  } else {
    Index buffer[L::kWidth] = {};
    for (int64_t i = 0; i < count; ++i) buffer[i] = data[i];
    __builtin_memcpy(&raw, buffer, sizeof raw);
  }
  return widen<L, Index>(raw);
}

template <class L, class Index>
TUTTI_INLINE void store_index(Index* data, Integers<L> value, int64_t count) {
  const VectorOf<Index, L::kWidth> raw = narrow<L, Index>(value);
  if (count == L::kWidth) {
    __builtin_memcpy(data, &raw, sizeof raw);
  } else {
    Index buffer[L::kWidth];
    __builtin_memcpy(buffer, &raw, sizeof raw);
    for (int64_t i = 0; i < count; ++i) data[i] = buffer[i];
  }
}

template <class L>
TUTTI_INLINE typename L::Vector load_part(const typename L::Element* data, int64_t count) {
  return count == L::kWidth ? L::load(data) : L::load(data, count, typename L::Number{0});
}
template <class L>
TUTTI_INLINE void store_part(typename L::Element* data, typename L::Vector value, int64_t count) {
  count == L::kWidth ? L::store(data, value) : L::store(data, value, count);
}

TUTTI_INLINE int64_t part_of(int64_t left, int64_t width) { return left < width ? left : width; }

// ---- max ----------------------------------------------------------------------------------------------------------

// The greatest of a window and its place, for kVectors vectors of channels (or `count` channels of one); NaN beats every number,
// as in PyTorch.
template <class T, class Index, int kVectors>
TUTTI_INLINE void max_of_window(const PoolShape& s, const T* image, const Inside& rows, const Inside& columns,
                                int64_t count, T* y, Index* index) {
  using L = Lanes<T>;
  typename L::Vector best[kVectors];
  Integers<L> place[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    best[v] = broadcast<typename L::Vector>(-static_cast<typename L::Number>(__builtin_inff()));
    place[v] = Integers<L>{} + static_cast<int>(rows.first * s.kernel[1] + columns.first);
  }
  for (int64_t i = rows.first; i < rows.last; ++i) {
    const T* x =
        image +
        ((rows.start + i * s.dilation[0]) * s.w + columns.start + columns.first * s.dilation[1]) * s.c;
    for (int64_t j = columns.first; j < columns.last; ++j, x += s.dilation[1] * s.c) {
      const Integers<L> here = Integers<L>{} + static_cast<int>(i * s.kernel[1] + j);
      for (int v = 0; v < kVectors; ++v) {
        const auto value = load_part<L>(x + v * L::kWidth, count);
        const auto take = (value > best[v]) | (value != value);
        best[v] = take ? value : best[v];
        place[v] = take ? here : place[v];
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    if (s.relu_gradient) place[v] = best[v] <= typename L::Vector{} ? Integers<L>{} - 1 : place[v];
    store_part<L>(y + v * L::kWidth, best[v], count);
    store_index<L>(index + v * L::kWidth, place[v], count);
  }
}

template <class T, class Index>
void max_forward(const MaxPoolRows& r) {
  constexpr int64_t kWidth = Lanes<T>::kWidth;
  const PoolShape& s = *r.shape;
  for (int64_t row = r.begin; row < r.end; ++row) {
    const T* image = static_cast<const T*>(r.in) + row / s.oh * s.h * s.w * s.c;
    T* y = static_cast<T*>(r.out) + row * s.ow * s.c;
    Index* index = static_cast<Index*>(r.indices) + row * s.ow * s.c;
    const Inside rows = inside(s, 0, s.h, row % s.oh);
    for (int64_t column = 0; column < s.ow; ++column, y += s.c, index += s.c) {
      const Inside columns = inside(s, 1, s.w, column);
      int64_t c = 0;
      for (; c + 2 * kWidth <= s.c; c += 2 * kWidth) {
        max_of_window<T, Index, 2>(s, image + c, rows, columns, kWidth, y + c, index + c);
      }
      for (; c < s.c; c += kWidth) {
        max_of_window<T, Index, 1>(s, image + c, rows, columns, part_of(s.c - c, kWidth), y + c, index + c);
      }
    }
  }
}

template <class T>
TUTTI_INLINE void fill_zero(T* x, int64_t count) {
  using L = Lanes<T>;
  int64_t k = 0;
  for (; k + L::kWidth <= count; k += L::kWidth) L::store(x + k, typename L::Vector{});
  if (k < count) L::store(x + k, typename L::Vector{}, count - k);
}

// One window's gradient y [channels] to `count` neighbouring positions of a row of x, whose places are `place`, `place` + 1, ...
template <class T, class Index>
TUTTI_INLINE void spread(const T* y, const Index* places, int64_t channels, int place, T* x, int64_t count) {
  using L = Lanes<T>;
  const typename L::Vector zero{};
  int64_t c = 0;
  for (; c + L::kWidth <= channels; c += L::kWidth) {
    const auto chosen = load_index<L>(places + c, L::kWidth);
    const auto gradient = L::load(y + c);
    for (int64_t p = 0; p < count; ++p)
      L::store(x + p * channels + c, chosen == place + static_cast<int>(p) ? gradient : zero);
  }
  if (c == channels) return;
  const auto chosen = load_index<L>(places + c, channels - c);
  const auto gradient = load_part<L>(y + c, channels - c);
  for (int64_t p = 0; p < count; ++p)
    L::store(x + p * channels + c, chosen == place + static_cast<int>(p) ? gradient : zero, channels - c);
}

// Windows that don't overlap: each element of the gradient of x belongs to one window at most.
template <class T, class Index>
void max_backward_apart(const MaxPoolRows& r) {
  const PoolShape& s = *r.shape;
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t h = row % s.h + s.padding[0], oh = h / s.stride[0], i = h % s.stride[0];
    T* x = static_cast<T*>(r.out) + row * s.w * s.c;
    T* const end = x + s.w * s.c;
    if (oh < s.oh && i < s.kernel[0]) {
      const int64_t at = (row / s.h * s.oh + oh) * s.ow * s.c;
      const T* y = static_cast<const T*>(r.in) + at;
      const Index* places = static_cast<const Index*>(r.indices) + at;
      int64_t left = s.w, j = s.padding[1] % s.stride[1];  // the first window may begin in the padding
      for (int64_t ow = s.padding[1] / s.stride[1]; ow < s.ow && left > 0; ++ow, j = 0) {
        const int64_t step = part_of(s.stride[1] - j, left), covered = part_of(s.kernel[1] - j, step);
        const int place = static_cast<int>(i * s.kernel[1] + j);
        if (covered > 0) spread(y + ow * s.c, places + ow * s.c, s.c, place, x, covered);
        const int64_t first = covered > 0 ? covered : 0;
        fill_zero(x + first * s.c, (step - first) * s.c);
        x += step * s.c;
        left -= step;
      }
    }
    fill_zero(x, end - x);
  }
}

template <class T, class Index>
void max_backward(const MaxPoolRows& r) {
  using L = Lanes<T>;
  const PoolShape& s = *r.shape;
  const bool apart =
      s.stride[0] >= s.kernel[0] && s.stride[1] >= s.kernel[1] && s.dilation[0] == 1 && s.dilation[1] == 1;
  if (apart) return max_backward_apart<T, Index>(r);
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t h = row % s.h, first = row / s.h * s.oh * s.ow * s.c;
    const T* image = static_cast<const T*>(r.in) + first;
    const Index* places = static_cast<const Index*>(r.indices) + first;
    T* x = static_cast<T*>(r.out) + row * s.w * s.c;
    const Covering rows = covering(s, 0, s.oh, h);
    for (int64_t w = 0; w < s.w; ++w, x += s.c) {
      const Covering columns = covering(s, 1, s.ow, w);
      for (int64_t channel = 0; channel < s.c; channel += L::kWidth) {
        const int64_t count = part_of(s.c - channel, L::kWidth);
        typename L::Vector sum{};
        for (int64_t oh = rows.first; oh <= rows.last; ++oh) {
          const int64_t i = element_at(s, 0, oh, h);
          if (i < 0) continue;
          for (int64_t ow = columns.first; ow <= columns.last; ++ow) {
            const int64_t j = element_at(s, 1, ow, w);
            if (j < 0) continue;
            const int64_t at = (oh * s.ow + ow) * s.c + channel;
            const auto gradient = load_part<L>(image + at, count);
            const auto chosen = load_index<L>(places + at, count) == static_cast<int>(i * s.kernel[1] + j);
            sum += chosen ? gradient : typename L::Vector{};
          }
        }
        store_part<L>(x + channel, sum, count);
      }
    }
  }
}

// ---- average ------------------------------------------------------------------------------------------------------

// Elements along one dim that count: those in the image, or those in the padded image.
TUTTI_INLINE int64_t counted(const PoolShape& s, int d, int64_t size, int64_t output) {
  const int64_t start = output * s.stride[d] - s.padding[d], end = start + s.kernel[d];
  const int64_t low = s.include_padding || start > 0 ? start : 0;
  const int64_t limit = s.include_padding ? size + s.padding[d] : size;
  return (end < limit ? end : limit) - low;
}

TUTTI_INLINE int64_t divisor_of(const PoolShape& s, int64_t oh, int64_t ow) {
  return s.divisor != 0 ? s.divisor : counted(s, 0, s.h, oh) * counted(s, 1, s.w, ow);
}

template <class T>
void average_forward(const AveragePoolRows& r) {
  using L = Lanes<T>;
  const PoolShape& s = *r.shape;
  for (int64_t row = r.begin; row < r.end; ++row) {
    const T* image = static_cast<const T*>(r.in) + row / s.oh * s.h * s.w * s.c;
    T* y = static_cast<T*>(r.out) + row * s.ow * s.c;
    const Inside rows = inside(s, 0, s.h, row % s.oh);
    for (int64_t column = 0; column < s.ow; ++column, y += s.c) {
      const Inside columns = inside(s, 1, s.w, column);
      const auto divisor = static_cast<typename L::Number>(divisor_of(s, row % s.oh, column));
      for (int64_t channel = 0; channel < s.c; channel += L::kWidth) {
        const int64_t count = part_of(s.c - channel, L::kWidth);
        typename L::Vector sum{};
        for (int64_t i = rows.first; i < rows.last; ++i) {
          for (int64_t j = columns.first; j < columns.last; ++j) {
            sum += load_part<L>(image + ((rows.start + i) * s.w + columns.start + j) * s.c + channel, count);
          }
        }
        store_part<L>(y + channel, sum / divisor, count);
      }
    }
  }
}

template <class T>
void average_backward(const AveragePoolRows& r) {
  using L = Lanes<T>;
  const PoolShape& s = *r.shape;
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t h = row % s.h;
    const T* image = static_cast<const T*>(r.in) + row / s.h * s.oh * s.ow * s.c;
    T* x = static_cast<T*>(r.out) + row * s.w * s.c;
    const Covering rows = covering(s, 0, s.oh, h);
    for (int64_t w = 0; w < s.w; ++w, x += s.c) {
      const Covering columns = covering(s, 1, s.ow, w);
      for (int64_t channel = 0; channel < s.c; channel += L::kWidth) {
        const int64_t count = part_of(s.c - channel, L::kWidth);
        typename L::Vector sum{};
        for (int64_t oh = rows.first; oh <= rows.last; ++oh) {
          for (int64_t ow = columns.first; ow <= columns.last; ++ow) {
            const auto divisor = static_cast<typename L::Number>(divisor_of(s, oh, ow));
            sum += load_part<L>(image + (oh * s.ow + ow) * s.c + channel, count) / divisor;
          }
        }
        store_part<L>(x + channel, sum, count);
      }
    }
  }
}

}  // namespace

const PoolLoops kPoolLoops = {
    {{max_forward<double, uint8_t>, max_forward<double, int32_t>},
     {max_forward<float, uint8_t>, max_forward<float, int32_t>},
     {max_forward<Half, uint8_t>, max_forward<Half, int32_t>},
     {max_forward<BFloat16, uint8_t>, max_forward<BFloat16, int32_t>}},
    {{max_backward<double, uint8_t>, max_backward<double, int32_t>},
     {max_backward<float, uint8_t>, max_backward<float, int32_t>},
     {max_backward<Half, uint8_t>, max_backward<Half, int32_t>},
     {max_backward<BFloat16, uint8_t>, max_backward<BFloat16, int32_t>}},
    {average_forward<double>, average_forward<float>, average_forward<Half>, average_forward<BFloat16>},
    {average_backward<double>, average_backward<float>, average_backward<Half>, average_backward<BFloat16>}};

}  // namespace tutti::cpu::TUTTI_ISA
