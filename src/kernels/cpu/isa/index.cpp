// SPDX-License-Identifier: Apache-2.0
// Inner loop of index_add.
#include "kernels/cpu/isa/index_loops.hpp"

#include "kernels/cpu/isa/lanes.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

template <class T>
TUTTI_INLINE void add_to(T& out, const T& in) {
  if constexpr (Floating<T>) {
    Lanes<T>::store(&out, Lanes<T>::load(&out, 1, 0) + Lanes<T>::load(&in, 1, 0), 1);
  } else if constexpr (sizeof(T) == 8) {
    out = static_cast<T>(static_cast<uint64_t>(out) + static_cast<uint64_t>(in));  // wraps around
  } else {
    out = static_cast<T>(static_cast<int64_t>(out) + static_cast<int64_t>(in));
  }
}

template <class T>
void add(void* out, int64_t out_stride, const void* in, int64_t in_stride, int64_t n) {
  T* target = static_cast<T*>(out);
  const T* source = static_cast<const T*>(in);
  if (out_stride != 1 || in_stride != 1) {
    for (int64_t i = 0; i < n; ++i) add_to(target[i * out_stride], source[i * in_stride]);
    return;
  }
  int64_t i = 0;
  if constexpr (Floating<T>) {
    using L = Lanes<T>;
    for (; i + L::kWidth <= n; i += L::kWidth)
      L::store(target + i, L::load(target + i) + L::load(source + i));
    if (i < n) L::store(target + i, L::load(target + i, n - i, 0) + L::load(source + i, n - i, 0), n - i);
  } else {
    for (; i < n; ++i) add_to(target[i], source[i]);
  }
}

template <class... Ts>
constexpr IndexLoops make_loops() {
  return {{add<Ts>...}};
}

}  // namespace

constinit const IndexLoops kIndexLoops =
    make_loops<double, float, Half, BFloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>();

}  // namespace tutti::cpu::TUTTI_ISA
