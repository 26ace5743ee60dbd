#pragma once
// The types of typed functions: parameters and results of lambdas, functors and function pointers.
#include <string>
#include <tuple>

#include "tenon/pack.h"
#include "tenon/tree.h"

namespace tn::typed {

/// The tree that a value of some type is: `x[0]` and operands are tensors.
template <class T>
struct ValueOf {
  using type = T;
};
template <>
struct ValueOf<Selection> {
  using type = Tensor;
};
template <>
struct ValueOf<Operand> {
  using type = Tensor;
};
template <>
struct ValueOf<void> {  // check_callable reports it
  using type = Tensor;
};
template <class A, class B>
struct ValueOf<std::pair<A, B>> {
  using type = std::pair<typename ValueOf<A>::type, typename ValueOf<B>::type>;
};
template <class... A>
struct ValueOf<std::tuple<A...>> {
  using type = std::tuple<typename ValueOf<A>::type...>;
};
template <class T>
using Value = typename ValueOf<std::decay_t<T>>::type;

/// Parameters of a function; `Unknown` of a generic or an overloaded one, whose arguments decide.
template <class... P>
struct Parameters {};
struct Unknown {};

/// What a call takes for a parameter: the same, but tensors for operands.
template <class P>
using Passed = std::conditional_t<std::is_same_v<Value<P>, std::decay_t<P>>, P, const Value<P>&>;

template <class F>
struct ParametersOf {
  using type = Unknown;
};
template <class R, class... P>
struct ParametersOf<R (*)(P...)> {
  using type = Parameters<Passed<P>...>;
};
template <class R, class... P>
struct ParametersOf<R (*)(P...) noexcept> : ParametersOf<R (*)(P...)> {};
template <class R, class C, class... P>
struct ParametersOf<R (C::*)(P...) const> : ParametersOf<R (*)(P...)> {};
template <class R, class C, class... P>
struct ParametersOf<R (C::*)(P...) const noexcept> : ParametersOf<R (*)(P...)> {};
template <class F>
  requires(
      requires { &F::operator(); } && !requires { typename F::TypedParameters; })
struct ParametersOf<F> : ParametersOf<decltype(&F::operator())> {};
template <class F>
  requires requires { typename F::TypedParameters; }
struct ParametersOf<F> {
  using type = typename F::TypedParameters;
};

template <class F>
using ParametersFor = typename ParametersOf<std::decay_t<F>>::type;

/// Whether a class has a call operator, generic and overloaded ones included: then the name is
/// ambiguous in a class that inherits another one.
struct WithCall {
  void operator()();
};
template <class F>
struct WithTwoCalls : F, WithCall {};
template <class F>
constexpr bool has_call() {
  if constexpr (!std::is_class_v<F> || std::is_final_v<F>)
    return !std::is_arithmetic_v<F>;
  else
    return !requires { &WithTwoCalls<F>::operator(); };
}

/// What transforms take.
template <class F>
concept IsFunction = has_call<std::decay_t<F>>();

template <class P>
inline constexpr bool kChangesArguments = false;
template <class... P>
inline constexpr bool kChangesArguments<Parameters<P...>> =
    ((std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>) || ...);
/// What a call takes for such a parameter, so that check_callable is what reports it.
template <class P>
using Taken =
    std::conditional_t<kChangesArguments<Parameters<P>>, const std::remove_reference_t<P>&, P>;

/// A generic function whose parameters bind to variables only: `auto&`.
template <class F, class... A>
constexpr bool takes_variables() {
  if constexpr (std::is_same_v<ParametersFor<F>, Unknown> && std::is_invocable_v<const F&, A&...> &&
                !requires { typename F::IsTransformed; })
    return !std::is_invocable_v<const F&, A...>;
  else
    return false;
}

/// Runs while the call is compiled, so that its sentences come before errors that follow from them.
template <class F, class... A>
consteval void check_callable() {
  static_assert(!kChangesArguments<ParametersFor<F>> && !takes_variables<F, A...>(),
                "a parameter is a reference that is not const, and changes to it would be lost: "
                "take it by value and return it, or capture it and name it in std::tie");
  static_assert(std::is_invocable_v<const F&, A&...> || !std::is_invocable_v<F&, A&...>,
                "the function changes itself: remove `mutable`, and capture by reference what it "
                "changes");
  static_assert(std::is_invocable_v<const F&, A&...>,
                "the function cannot be called with arguments of these types");
  if constexpr (std::is_invocable_v<const F&, A&...>)
    static_assert(!std::is_void_v<std::invoke_result_t<const F&, A&...>>,
                  "the function returns nothing: return a tensor or a tree of tensors");
}

/// Whether check_callable finds that it can be called for a result.
template <class F, class... A>
constexpr bool is_callable() {
  if constexpr (std::is_invocable_v<const F&, A&...>)
    return !std::is_void_v<std::invoke_result_t<const F&, A&...>>;
  else
    return false;
}

template <class F, class... A>
using Result = Value<std::invoke_result_t<const F&, A&...>>;

}  // namespace tn::typed
