// SPDX-License-Identifier: Apache-2.0
// Inner loops of batch norm.
//
// Moments: blocks that fit the first cache (4,096 elements of a run, 64 rows) are read twice: for a mean,
// then for the deviations from it, whose own sum mends what rounding the mean left (corrected two-pass
// algorithm); blocks are merged in double. So a mean that is large against the deviation costs no digits, and
// memory is read once.
#include "kernels/cpu/isa/batch_norm_loops.hpp"

#include "kernels/cpu/isa/lanes.hpp"
#include "kernels/cpu/isa/row_steps.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

constexpr int64_t kBlockRows = 64;
constexpr int kStrip = 4;  // vectors of channels whose sums stay in registers

// Moments::merge is inline with external linkage; these files have functions of their own.
TUTTI_INLINE void merge(double count, double more, double more_mean, double more_squares, double& mean,
                        double& squares) {
  const double total = count + more;
  const double delta = more_mean - mean;
  mean += delta * (more / total);
  squares += more_squares + delta * delta * (count * more / total);
}

// ---- runs ---------------------------------------------------------------------------------------------------------
template <class T>
Moments run_moments(const void* data, int64_t n) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(data);
  Moments moments;
  for (int64_t begin = 0; begin < n; begin += kRowBlock) {
    const int64_t count = n - begin < kRowBlock ? n - begin : kRowBlock;
    const T* block = x + begin;
    const double number = static_cast<double>(count);
    const N middle = static_cast<N>(
        sum_of_row<N>(count, [&](int64_t i, const auto& access) { return access.load(block + i, N{0}); }) /
        number);
    const double rest = sum_of_row<N>(
        count, [&](int64_t i, const auto& access) { return access.load(block + i, middle) - middle; });
    const double squares = sum_of_row<N>(count, [&](int64_t i, const auto& access) {
      const auto deviation = access.load(block + i, middle) - middle;
      return deviation * deviation;
    });
    merge(moments.count, number, static_cast<double>(middle) + rest / number, squares - rest * rest / number,
          moments.mean, moments.squares);
    moments.count += number;
  }
  return moments;
}

template <class N>
TUTTI_INLINE N first_of(const void* values) {
  return *static_cast<const N*>(values);
}

template <class T>
void run_normalise(const void* in, void* out, int64_t n, const ChannelAffine& affine) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const N mean = first_of<N>(affine.mean);
  const N scale = first_of<N>(affine.scale);
  const N shift = first_of<N>(affine.shift);
  for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
    access.store(y + i, (access.load(x + i, N{0}) - mean) * scale + shift);
  });
}

template <class T>
void run_grad_sums(const void* in, const void* gradient, int64_t n, const void* means, double* sums,
                   double* dots) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(in);
  const T* grad = static_cast<const T*>(gradient);
  const N mean = first_of<N>(means);
  for (int64_t begin = 0; begin < n; begin += kRowBlock) {
    const int64_t count = n - begin < kRowBlock ? n - begin : kRowBlock;
    *sums += sum_of_row<N>(
        count, [&](int64_t i, const auto& access) { return access.load(grad + begin + i, N{0}); });
    *dots += sum_of_row<N>(count, [&](int64_t i, const auto& access) {
      return access.load(grad + begin + i, N{0}) * (access.load(x + begin + i, mean) - mean);
    });
  }
}

template <class T>
void run_grad(const void* in, const void* gradient, void* out, int64_t n, const ChannelAffine& affine) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(in);
  const T* grad = static_cast<const T*>(gradient);
  T* dx = static_cast<T*>(out);
  const N mean = first_of<N>(affine.mean);
  const N scale = first_of<N>(affine.scale);
  const N shift = first_of<N>(affine.shift);
  const N grad_scale = first_of<N>(affine.grad_scale);
  for_each_vector<N>(0, n, [&](int, int64_t i, const auto& access) {
    const auto centred = access.load(x + i, N{0}) - mean;
    access.store(dx + i, access.load(grad + i, N{0}) * grad_scale + (centred * scale + shift));
  });
}

// ---- rows ---------------------------------------------------------------------------------------------------------
// Calls strip(first channel, vectors, access) for strips of kStrip vectors, then single ones, then a part of
// one.
template <class N, class Body>
TUTTI_INLINE void for_each_strip(int64_t channels, const Body& body) {
  constexpr int kWidth = Lanes<N>::kWidth;
  int64_t c = 0;
  for (; c + kStrip * kWidth <= channels; c += kStrip * kWidth)
    body.template operator()<kStrip>(c, WholeVector{});
  for (; c + kWidth <= channels; c += kWidth) body.template operator()<1>(c, WholeVector{});
  if (c < channels) body.template operator()<1>(c, PartVector{channels - c});
}

// Moments of the channels of one strip over at most kBlockRows rows, merged with those of `seen` rows.
template <class T, int kVectors, class Access>
TUTTI_INLINE void strip_moments(const T* x, int64_t rows, int64_t stride, int64_t channels,
                                const Access& access, double seen, double* means, double* squares) {
  using L = Lanes<T>;
  using N = typename L::Number;
  using V = typename L::Vector;
  const double number = static_cast<double>(rows);
  V sum[kVectors] = {};
  for (int64_t r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[v] += access.load(x + r * stride + v * L::kWidth, N{0});
  }
  V middle[kVectors];
  for (int v = 0; v < kVectors; ++v) middle[v] = sum[v] * static_cast<N>(1.0 / number);
  V rest[kVectors] = {};
  V square[kVectors] = {};
  for (int64_t r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const V deviation = access.load(x + r * stride + v * L::kWidth, N{0}) - middle[v];
      rest[v] += deviation;
      square[v] += deviation * deviation;
    }
  }
  N lanes[3][kVectors * L::kWidth];
  __builtin_memcpy(lanes[0], middle, sizeof middle);
  __builtin_memcpy(lanes[1], rest, sizeof rest);
  __builtin_memcpy(lanes[2], square, sizeof square);
  for (int64_t c = 0; c < channels; ++c) {
    const double difference = static_cast<double>(lanes[1][c]);
    merge(seen, number, static_cast<double>(lanes[0][c]) + difference / number,
          static_cast<double>(lanes[2][c]) - difference * difference / number, means[c], squares[c]);
  }
}

template <class T>
void row_moments(const BatchNormRows& call, double* means, double* squares) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(call.x);
  for (int64_t c = 0; c < call.channels; ++c) means[c] = squares[c] = 0.0;
  for (int64_t r = 0; r < call.rows; r += kBlockRows) {
    const int64_t rows = call.rows - r < kBlockRows ? call.rows - r : kBlockRows;
    for_each_strip<N>(call.channels, [&]<int kVectors, class Access>(int64_t c, const Access& access) {
      const int64_t width = kVectors * Lanes<T>::kWidth;
      const int64_t channels = call.channels - c < width ? call.channels - c : width;
      strip_moments<T, kVectors>(x + r * call.x_stride + c, rows, call.x_stride, channels, access,
                                 static_cast<double>(r), means + c, squares + c);
    });
  }
}

template <class T>
void row_normalise(const BatchNormRows& call, const ChannelAffine& affine) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(call.x);
  T* y = static_cast<T*>(call.out);
  const N* mean = static_cast<const N*>(affine.mean);
  const N* scale = static_cast<const N*>(affine.scale);
  const N* shift = static_cast<const N*>(affine.shift);
  for (int64_t r = 0; r < call.rows; ++r, x += call.x_stride, y += call.out_stride) {
    for_each_vector<N>(0, call.channels, [&](int, int64_t c, const auto& access) {
      const auto centred = access.load(x + c, N{0}) - access.load(mean + c, N{0});
      access.store(y + c, centred * access.load(scale + c, N{0}) + access.load(shift + c, N{0}));
    });
  }
}

template <class T>
void row_grad_sums(const BatchNormRows& call, const void* means, double* sums, double* dots) {
  using L = Lanes<T>;
  using N = typename L::Number;
  using V = typename L::Vector;
  const T* x = static_cast<const T*>(call.x);
  const T* grad = static_cast<const T*>(call.grad);
  const N* mean = static_cast<const N*>(means);
  for (int64_t first = 0; first < call.rows; first += kBlockRows) {
    const int64_t end = call.rows - first < kBlockRows ? call.rows : first + kBlockRows;
    for_each_strip<N>(call.channels, [&]<int kVectors, class Access>(int64_t c, const Access& access) {
      V middle[kVectors];
      for (int v = 0; v < kVectors; ++v) middle[v] = access.load(mean + c + v * L::kWidth, N{0});
      V sum[kVectors] = {};
      V dot[kVectors] = {};
      for (int64_t r = first; r < end; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          const int64_t channel = c + v * L::kWidth;
          const V dy = access.load(grad + r * call.grad_stride + channel, N{0});
          sum[v] += dy;
          dot[v] += dy * (access.load(x + r * call.x_stride + channel, N{0}) - middle[v]);
        }
      }
      N lanes[2][kVectors * L::kWidth];
      __builtin_memcpy(lanes[0], sum, sizeof sum);
      __builtin_memcpy(lanes[1], dot, sizeof dot);
      const int64_t width = kVectors * L::kWidth;
      const int64_t channels = call.channels - c < width ? call.channels - c : width;
      for (int64_t i = 0; i < channels; ++i) {
        sums[c + i] += static_cast<double>(lanes[0][i]);
        dots[c + i] += static_cast<double>(lanes[1][i]);
      }
    });
  }
}

template <class T>
void row_grad(const BatchNormRows& call, const ChannelAffine& affine) {
  using N = typename Lanes<T>::Number;
  const T* x = static_cast<const T*>(call.x);
  const T* grad = static_cast<const T*>(call.grad);
  T* dx = static_cast<T*>(call.out);
  const N* mean = static_cast<const N*>(affine.mean);
  const N* scale = static_cast<const N*>(affine.scale);
  const N* shift = static_cast<const N*>(affine.shift);
  const N* grad_scale = static_cast<const N*>(affine.grad_scale);
  for (int64_t r = 0; r < call.rows;
       ++r, x += call.x_stride, grad += call.grad_stride, dx += call.out_stride) {
    for_each_vector<N>(0, call.channels, [&](int, int64_t c, const auto& access) {
      const auto centred = access.load(x + c, N{0}) - access.load(mean + c, N{0});
      const auto through_statistics = centred * access.load(scale + c, N{0}) + access.load(shift + c, N{0});
      access.store(dx + c,
                   access.load(grad + c, N{0}) * access.load(grad_scale + c, N{0}) + through_statistics);
    });
  }
}

template <class... Ts>
constexpr BatchNormLoops make_loops() {
  return {{run_moments<Ts>...},   {row_moments<Ts>...},   {run_normalise<Ts>...}, {row_normalise<Ts>...},
          {run_grad_sums<Ts>...}, {row_grad_sums<Ts>...}, {run_grad<Ts>...},      {row_grad<Ts>...}};
}

}  // namespace

constinit const BatchNormLoops kBatchNormLoops = make_loops<double, float, Half, BFloat16>();

}  // namespace tutti::cpu::TUTTI_ISA
