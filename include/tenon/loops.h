#pragma once
// Control flow besides control_flow.h: one of several branches, a function of each element in
// turn, and prefixes of an associative function.
#include "tenon/control_flow.h"
#include "tenon/tree_functions.h"

namespace tn {

namespace flat {

/// Combines two lists of tensors element by element along axis 0.
using Combine = Callback<Tensors(const Tensors& earlier, const Tensors& later)>;
Tensors associative_scan(const Combine& combine, Tensors elems, bool reverse, int axis);

}  // namespace flat

namespace typed {

void check_index(const Tensor& index);

template <size_t First, size_t End, class B, class... A>
auto chosen(const Tensor& index, const B& branches, const A&... operands) {
  if constexpr (End - First == 1) {
    return Result<std::tuple_element_t<First, B>, A...>(std::get<First>(branches)(operands...));
  } else {
    constexpr size_t kMiddle = (First + End) / 2;
    return cond(
        less(index, static_cast<int64_t>(kMiddle)),
        [&](const Tensor& i, const A&... a) { return chosen<First, kMiddle>(i, branches, a...); },
        [&](const Tensor& i, const A&... a) { return chosen<kMiddle, End>(i, branches, a...); },
        index, operands...);
  }
}

}  // namespace typed

/// `branches[index](operands...)`; an index out of bounds is clamped. Only the selected branch
/// runs, except under `vmap` with an index that differs between examples.
///
///     tn::switch_(i, std::tuple{[](Tensor x) { return x; }, [](Tensor x) { return -x; }}, x);
template <class... F, class... A>
auto switch_(const Operand& index, const std::tuple<F...>& branches, const A&... operands) {
  static_assert(sizeof...(F) > 0, "switch_ has no branches");
  (typed::check_callable<F, typed::Value<A>...>(), ...);
  flat::Place here(index.place);
  Tensor at = index.tensor ? *index.tensor : Tensor::from_scalar(index.scalar);
  typed::check_index(at);
  return typed::chosen<0, sizeof...(F)>(at, branches, typed::Value<A>(operands)...);
}

/// `f` of each element along the first axis of `xs` in turn, stacked. `vmap` computes all of them
/// at once; `map` needs the memory of one.
template <class F, class X>
auto map(const F& f, const X& xs, std::source_location place = std::source_location::current()) {
  using Element = typed::Value<X>;
  typed::check_callable<F, Element>();
  auto body = [&](std::tuple<> carry, const Element& x) {
    return std::pair<std::tuple<>, typed::Result<F, Element>>(carry, f(x));
  };
  return scan(body, std::tuple<>(), xs, {}, place).second;
}

struct AssociativeScanSettings {
  /// From the end.
  bool reverse = false;
  int axis = 0;
};
/// Prefix results of the associative `f` along an axis: a, f(a, b), f(f(a, b), c) ... `f` receives
/// trees like `elems` with several elements along axis 0, and combines them element by element; it
/// is called a logarithmic number of times.
template <class F, class T>
T associative_scan(const F& f, T elems, AssociativeScanSettings settings = {},
                   std::source_location place = std::source_location::current()) {
  flat::Place here(place);
  auto combine = [&](const Tensors& earlier, const Tensors& later) {
    return tree::leaves(T(f(tree::unflatten(elems, earlier), tree::unflatten(elems, later))));
  };
  Tensors made =
      flat::associative_scan(combine, tree::leaves(elems), settings.reverse, settings.axis);
  return tree::unflatten(std::move(elems), std::move(made));
}

}  // namespace tn
