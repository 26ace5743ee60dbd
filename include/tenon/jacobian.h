#pragma once
// Jacobians and Hessians of typed functions.
#include "tenon/transforms.h"

namespace tn {

namespace typed {

/// `R` with the Jacobians of its tensors, or `W`, the chosen arguments, with those of a single
/// tensor; of several tensors with respect to several, one `W` for each tensor of the result.
template <class F, class W, bool kReverse>
struct Jacobian : CallableAs<Jacobian<F, W, kReverse>, F> {
  F f;
  std::string_view name;
  std::source_location place;

  Jacobian(F function, std::string_view by, std::source_location at)
      : f(std::move(function)), name(by), place(at) {}

  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    check_callable<F, Value<A>...>();
    Chosen<W>::template check<Value<A>...>();
    flat::Place here(at);
    Run<F, Value<A>...> run(name, f, std::forward<A>(args)...);
    std::vector<int> numbers = Chosen<W>::numbers(run);
    Tensors made = (kReverse ? flat::jacrev : flat::jacfwd)(run.function(), numbers,
                                                            run.names())(run.in.tensors);
    using Row = decltype(Chosen<W>::trees(run, numbers, made.data()));
    if constexpr (std::is_same_v<Result<F, Value<A>...>, Tensor>) {
      return Chosen<W>::trees(run, numbers, made.data());
    } else if constexpr (std::is_same_v<Row, Tensor>) {
      return run.result(std::move(made));
    } else {
      std::vector<Row> rows;
      for (size_t i = 0; i + numbers.size() <= made.size(); i += numbers.size())
        rows.push_back(Chosen<W>::trees(run, numbers, made.data() + i));
      return rows;
    }
  }
};

}  // namespace typed

/// The Jacobian of `f` with respect to its first argument, or to those that are named. Of a tensor
/// with respect to a tensor it is one with the axes of the result followed by those of the
/// argument. Where one of the two is another tree, it is a tree like that; where both are, it is a
/// vector with a tree like the argument for each tensor of the result.
///
///     tn::Tensor J = tn::jacobian([](tn::Tensor x) { return tn::sin(x); })(x);   // diagonal
///
/// `jacrev` works row by row, from the result; `jacfwd` column by column, from the argument. Take
/// the one with fewer of them; `jacobian` is `jacrev`.
template <typed::IsFunction F, class W = Wrt<0>>
auto jacrev(F f, W = {}, std::source_location place = std::source_location::current()) {
  return typed::Jacobian<F, W, true>(std::move(f), "jacrev", place);
}
template <typed::IsFunction F, class W = Wrt<0>>
auto jacfwd(F f, W = {}, std::source_location place = std::source_location::current()) {
  return typed::Jacobian<F, W, false>(std::move(f), "jacfwd", place);
}
template <typed::IsFunction F, class W = Wrt<0>>
auto jacobian(F f, W which = {}, std::source_location place = std::source_location::current()) {
  return jacrev(std::move(f), which, place);
}

/// The second derivatives of `f`, which returns a scalar: the Jacobian of its gradient.
///
///     tn::Tensor H = tn::hessian(f)(x);   // the axes of x twice
template <typed::IsFunction F, class W = Wrt<0>>
auto hessian(F f, W which = {}, std::source_location place = std::source_location::current()) {
  auto gradient = grad(std::move(f), which, place);
  return typed::Jacobian<decltype(gradient), W, false>(std::move(gradient), "hessian", place);
}

}  // namespace tn
