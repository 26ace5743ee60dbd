#pragma once
// vmap: a typed function of one example, applied to a batch. checkpoint: a function whose
// intermediate values are recomputed for derivatives.
#include "tenon/typed.h"

namespace tn {

/// An axis for each argument or result, or one for all; `tn::none`: shared by all examples.
struct BatchAxes {
  flat::BatchAxes list;  // empty: axis 0 everywhere
  bool is_for_all = false;

  BatchAxes() = default;
  BatchAxes(int axis) : list{axis}, is_for_all(true) {}
  BatchAxes(std::initializer_list<Maybe<int>> axes) : list(axes) {}
  BatchAxes(flat::BatchAxes axes) : list(std::move(axes)) {}
};

namespace typed {

/// One axis a tensor, from one axis a tree of `counts` tensors each. No axes: axis 0 everywhere.
flat::BatchAxes axes_by_tensor(const BatchAxes& axes, const std::vector<size_t>& counts,
                               std::string_view what);

template <class T>
size_t count_of(T& value) {
  return tensors_of(value, "vmap", "", true).size();
}
/// How many tensors the parts of a result have: those of a tuple or pair, or the whole.
template <class R>
std::vector<size_t> counts_of(R& result) {
  if constexpr (requires { result.begin(); } || !requires { std::tuple_size<R>::value; })
    return {count_of(result)};
  else
    return std::apply([](auto&... part) { return std::vector<size_t>{count_of(part)...}; }, result);
}

template <class F>
struct Vmap : CallableAs<Vmap<F>, F> {
  F f;
  BatchAxes in_axes, out_axes;
  std::source_location place;

  Vmap(F function, BatchAxes in, BatchAxes out, std::source_location at)
      : f(std::move(function)), in_axes(std::move(in)), out_axes(std::move(out)), place(at) {}

  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    check_callable<F, Value<A>...>();
    flat::Place here(at);
    Run<F, Value<A>...> run("vmap", f, std::forward<A>(args)...);
    std::vector<size_t> counts;
    for (size_t i = 0; i < sizeof...(A); ++i)
      counts.push_back(run.in.first[i + 1] - run.in.first[i]);
    Tensors made = flat::call_mapped(
        run.function(), run.in.tensors, axes_by_tensor(in_axes, counts, "argument"),
        [&] { return axes_by_tensor(out_axes, counts_of(*run.out), "result"); }, run.names());
    return run.result(std::move(made));
  }
};

template <class F>
struct Checkpoint : CallableAs<Checkpoint<F>, F> {
  F f;
  int segments;
  std::source_location place;

  Checkpoint(F function, int parts, std::source_location at)
      : f(std::move(function)), segments(parts), place(at) {}

  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    check_callable<F, Value<A>...>();
    flat::Place here(at);
    Run<F, Value<A>...> run("checkpoint", f, std::forward<A>(args)...);
    return run.result(flat::checkpoint(run.function(), segments)(run.in.tensors));
  }
};

}  // namespace typed

/// `f` applied along an axis of each argument, and its results stacked along an axis: axis 0 unless
/// `in_axes` and `out_axes` name others: one number for all, or a list with an axis for each
/// argument, and for each element of a tuple that `f` returns. It holds for all tensors in it.
///
///     auto dots = tn::vmap([](tn::Tensor a, tn::Tensor b) { return tn::sum(a * b); });
///     tn::Tensor each = dots(m, n), columns = tn::vmap(norm, 1)(m);
///     tn::Tensor slopes = tn::vmap(tn::grad(loss), {tn::none, 0, 0})(w, xs, ys).w;
template <typed::IsFunction F>
auto vmap(F f, BatchAxes in_axes = {}, BatchAxes out_axes = {},
          std::source_location place = std::source_location::current()) {
  return typed::Vmap<F>(std::move(f), std::move(in_axes), std::move(out_axes), place);
}

/// `f`, whose derivatives keep only the arguments and rematerialise intermediate values. Values and
/// gradients have the same bits, except that the gradients of an argument of several such calls may
/// be added in another order. With several `segments` the values at their boundaries are kept too.
///
///     auto block = tn::checkpoint([&](tn::Tensor x) { return layer(x); });
template <typed::IsFunction F>
auto checkpoint(F f, int segments = 1,
                std::source_location place = std::source_location::current()) {
  return typed::Checkpoint<F>(std::move(f), segments, place);
}

}  // namespace tn
