// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tutti::functors {

template <class... Fs>
struct TypeList {
  static constexpr int kSize = static_cast<int>(sizeof...(Fs));
};

namespace detail {
template <class... Lists>
struct Join;
template <class... Fs>
struct Join<TypeList<Fs...>> {
  using Type = TypeList<Fs...>;
};
template <class... Fs, class... Gs, class... Rest>
struct Join<TypeList<Fs...>, TypeList<Gs...>, Rest...> {
  using Type = typename Join<TypeList<Fs..., Gs...>, Rest...>::Type;
};

template <class F, class G>
inline constexpr bool kSame = false;
template <class F>
inline constexpr bool kSame<F, F> = true;
}  // namespace detail

// One list of the functors of several.
template <class... Lists>
using Joined = typename detail::Join<Lists...>::Type;

// Position of F in the list; a functor that is missing does not compile.
template <class F, class... Fs>
constexpr int index_in(TypeList<Fs...>) {
  static_assert((detail::kSame<F, Fs> || ...),
                "this functor is not in functors::Pointwise (kernels/functors/list.hpp)");
  int index = 0;
  const bool found[] = {detail::kSame<F, Fs>...};
  while (!found[index]) ++index;
  return index;
}

}  // namespace tutti::functors
