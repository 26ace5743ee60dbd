#pragma once
// Derivatives of typed functions. They compose with each other, with vmap and with compile.
//
//     auto f = [](tn::Tensor x) { return tn::sum(tn::sin(x) * x); };
//     tn::Tensor slope = tn::grad(f)(x);
//
// A function is a lambda, a functor or a function pointer. Its arguments and its result are trees
// of tensors (tree.h), and derivatives are trees of the same types.

#include "tenon/typed.h"

namespace tn {

/// The arguments to differentiate with respect to: `tn::grad(f, tn::wrt<0, 2>)`.
template <size_t... I>
struct Wrt {};
template <size_t... I>
inline constexpr Wrt<I...> wrt;

namespace typed {

/// The numbers of the tensors of some arguments that a module does not fix.
std::vector<int> trained_in(const tree::Contents& in, std::initializer_list<size_t> arguments);
/// `count` tensors: the derivatives at their numbers, and null ones.
Tensors placed(size_t count, const std::vector<int>& numbers, Tensor* derivatives);

template <class W>
struct Chosen {
  static_assert(
      !std::is_same_v<W, W>,
      "arguments are chosen by tn::wrt: tn::grad(f, tn::wrt<0>), tn::grad(f, tn::wrt<0, 1>)");
};
template <size_t... I>
struct Chosen<Wrt<I...>> {
  /// The numbers of the tensors of the chosen arguments that a module does not fix.
  static std::vector<int> numbers(const AnyRun& run) { return trained_in(run.in, {I...}); }
  /// The chosen arguments with derivatives in their places: the only one, or a tuple.
  template <class Run>
  static auto trees(Run& run, const std::vector<int>& numbers, Tensor* derivatives) {
    Tensors all = placed(run.in.tensors.size(), numbers, derivatives);
    if constexpr (sizeof...(I) == 1)
      return (run.template argument<I>(all), ...);
    else
      return std::tuple(run.template argument<I>(all)...);
  }
  template <class... A>
  static constexpr void check() {
    static_assert(sizeof...(I) > 0, "name an argument: tn::wrt<0>");
    static_assert(((I < sizeof...(A)) && ...), "wrt names an argument that the call does not have");
    static_assert((!std::is_arithmetic_v<std::tuple_element_t<I, std::tuple<A..., char>>> && ...),
                  "a number is a constant: derivatives are with respect to tensors");
  }
};

template <class F, class W>
struct ValueAndGrad : CallableAs<ValueAndGrad<F, W>, F> {
  F f;
  std::source_location place;

  ValueAndGrad(F function, std::source_location at) : f(std::move(function)), place(at) {}
  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    check_callable<F, Value<A>...>();
    Chosen<W>::template check<Value<A>...>();
    static_assert(!std::is_arithmetic_v<Result<F, Value<A>...>>,
                  "the function returns a number, which depends on nothing: return the tensor "
                  "itself, without item()");
    flat::Place here(at);
    Run<F, Value<A>...> run("grad", f, std::forward<A>(args)...);
    std::vector<int> numbers = Chosen<W>::numbers(run);
    flat::Derivatives made = run.value_and_grad(numbers);
    return std::pair(run.result(std::move(made.values)),
                     Chosen<W>::trees(run, numbers, made.derivatives.data()));
  }
};

template <class F, class W>
struct Grad : CallableAs<Grad<F, W>, F> {
  ValueAndGrad<F, W> both;
  std::source_location place;

  Grad(F function, std::source_location at) : both(std::move(function), at), place(at) {}
  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    return both.call(at, std::forward<A>(args)...).second;
  }
};

/// The only parameter of a function, for arguments in braces.
template <class P>
struct OnlyOf {
  using type = Tensor;
};
template <class P>
struct OnlyOf<Parameters<P>> {
  using type = Value<P>;
};
template <class F>
using Only = typename OnlyOf<ParametersFor<F>>::type;

/// The run for one argument, or for a tuple of them where the function takes several.
template <class F, class X>
auto run_of(std::string_view by, const F& f, const X& primals) {
  if constexpr (std::is_invocable_v<const F&, X&>) {
    check_callable<F, X>();
    return Run<F, X>(by, f, primals);
  } else {
    static_assert(
        requires { std::tuple_size<X>::value; },
        "the function cannot be called with this argument; several arguments are given "
        "as a tuple: tn::jvp(f, std::tuple(x, y), std::tuple(dx, dy))");
    return std::apply(
        [&]<class... A>(const A&... args) {
          check_callable<F, A...>();
          return Run<F, A...>(by, f, args...);
        },
        primals);
  }
}

/// The derivative of a call, backwards: from a cotangent of its result to those of its arguments,
/// as often as wanted. Null tensors are zeros; tensors without a derivative get null ones.
template <class F, class... A>
class Pullback {
 public:
  Pullback(SharedPtr<Run<F, A...>> run, flat::Pullback core, std::vector<int> numbers)
      : run_(std::move(run)), core_(std::move(core)), numbers_(std::move(numbers)) {}

  /// The cotangent of the only argument, or a tuple of them.
  auto operator()(typename Run<F, A...>::Result cotangent,
                  std::source_location place = std::source_location::current()) const {
    flat::Place here(place);
    check_like("vjp", "the cotangent", *run_->out, cotangent);
    Tensors made = core_(tensors_of(cotangent, "vjp", "cotangent", true));
    return trees(made, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... I>
  auto trees(Tensors& made, std::index_sequence<I...>) const {
    return Chosen<Wrt<I...>>::trees(*run_, numbers_, made.data());
  }
  SharedPtr<Run<F, A...>> run_;  // names what errors are about
  flat::Pullback core_;
  std::vector<int> numbers_;
};

/// The numbers of the tensors that derivatives exist for.
std::vector<int> differentiable(const Tensors& tensors);

}  // namespace typed

/// The gradient of `f`, which returns a scalar, or a tree whose first tensor is one, with respect
/// to its first argument, or to those that are named.
///
///     auto loss = [](const Params& p, const tn::Tensor& x) { return tn::mean(x * p.w); };
///     Params d = tn::grad(loss)(params, x);
///     auto [dp, dx] = tn::grad(loss, tn::wrt<0, 1>)(params, x);
///
/// Of a module, tensors that are frozen or buffers are not differentiated; theirs is a null tensor.
template <typed::IsFunction F, class W = Wrt<0>>
auto grad(F f, W = {}, std::source_location place = std::source_location::current()) {
  return typed::Grad<F, W>(std::move(f), place);
}

/// The same with the result of `f`:
///
///     auto [value, d] = tn::value_and_grad(loss)(params, x);
template <typed::IsFunction F, class W = Wrt<0>>
auto value_and_grad(F f, W = {}, std::source_location place = std::source_location::current()) {
  return typed::ValueAndGrad<F, W>(std::move(f), place);
}

/// The result of `f` and its derivative in the direction of a tangent, which is a tree like the
/// argument; null tensors in it are zeros. Several arguments, and their tangents, are tuples.
///
///     auto [y, dy] = tn::jvp(f, x, t);
///     auto [z, dz] = tn::jvp(g, std::tuple(x, y), std::tuple(dx, dy));
template <typed::IsFunction F, class X = typed::Only<F>, class T = X>
auto jvp(const F& f, const X& primal, const T& tangent,
         std::source_location place = std::source_location::current()) {
  static_assert(std::is_same_v<typed::Value<X>, typed::Value<T>>,
                "the tangent is a tree of the type of the argument");
  flat::Place here(place);
  auto run = typed::run_of("jvp", f, typed::Value<X>(primal));
  typed::Value<T> given(tangent);
  typed::Value<X> like(primal);
  typed::check_like("jvp", "the tangent", like, given);
  Tensors tangents = typed::tensors_of(given, "jvp", "tangent", true);
  flat::Derivatives made = flat::jvp(run.function(), run.in.tensors, tangents, run.names());
  auto derivatives = typed::filled(*run.out, made.derivatives.data());
  return std::pair(run.result(std::move(made.values)), std::move(derivatives));
}

/// The result of `f`, and a function from its cotangent to those of the arguments:
///
///     auto [y, pullback] = tn::vjp(f, x);
///     tn::Tensor dx = pullback(tn::ones_like(y));
template <typed::IsFunction F, class... A>
auto vjp(const F& f, const A&... args) {
  typed::check_callable<F, typed::Value<A>...>();
  using Run = typed::Run<F, typed::Value<A>...>;
  auto run = SharedPtr<Run>::make("vjp", f, args...);
  std::vector<int> numbers = typed::differentiable(run->in.tensors);
  flat::Pullback core(run->function(), run->in.tensors, numbers, run->names());
  typename Run::Result out = typed::filled(*run->out, Tensors(core.outputs()).data());
  return std::pair(std::move(out), typed::Pullback<F, typed::Value<A>...>(run, core, numbers));
}

}  // namespace tn
