#pragma once
// Typed functions: lambdas, functors and function pointers from trees to a tree. What transforms,
// control flow and compile have in common; programs use those.
#include <source_location>
#include <string>
#include <tuple>

#include "tenon/flat.h"
#include "tenon/pack.h"
#include "tenon/tree.h"

namespace tn::typed {

// Types -------------------------------------------------------------------------------------

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
    requires { &F::operator(); } &&
    !requires { typename F::TypedParameters; }) struct ParametersOf<F>
    : ParametersOf<decltype(&F::operator())> {
};
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

template <class F, class... A>
constexpr void check_callable() {
  static_assert(std::is_invocable_v<const F&, A&...> || !std::is_invocable_v<F&, A&...>,
                "the function changes itself: remove `mutable`, and capture by reference what it "
                "changes");
  static_assert(std::is_invocable_v<const F&, A&...>,
                "the function cannot be called with arguments of these types");
  if constexpr (std::is_invocable_v<const F&, A&...>)
    static_assert(!std::is_void_v<std::invoke_result_t<const F&, A&...>>,
                  "the function returns nothing: return a tensor or a tree of tensors");
}

template <class F, class... A>
using Result = Value<std::invoke_result_t<const F&, A&...>>;

// Calls -------------------------------------------------------------------------------------

/// The call operator of a transformed function: with the parameters of the function itself where
/// these are known. `Self` has `call(place, args...)`, and `place` for calls that have none.
template <class Self, class P>
struct Callable;
template <class Self, class... P>
struct Callable<Self, Parameters<P...>> {
  using TypedParameters = Parameters<P...>;
  using IsTransformed = void;
  auto operator()(P... args, std::source_location place = std::source_location::current()) const {
    return static_cast<const Self*>(this)->call(place, std::forward<P>(args)...);
  }
};
template <class Self>
struct Callable<Self, Unknown> {
  using IsTransformed = void;
  template <class... A>
  auto operator()(A&&... args) const {
    const Self& self = *static_cast<const Self*>(this);
    return self.call(self.place, std::forward<A>(args)...);
  }
};
template <class Self, class F>
using CallableAs = Callable<Self, ParametersFor<F>>;

/// Calls a function. A transformed one has the place where it was made: this is none of the user's.
template <class F, class... A>
decltype(auto) invoke(const F& f, A&... args) {
  if constexpr (requires { typename F::IsTransformed; })
    return f.call(f.place, args...);
  else
    return f(args...);
}

/// While the user's function runs, places are its own.
class UserCode {
 public:
  UserCode();
  ~UserCode();
  UserCode(const UserCode&) = delete;

 private:
  uint64_t outer_;
};

/// The tensors of a tree. A null tensor is an error that begins with `by`, and names the tree.
template <class T>
Tensors tensors_of(T& value, std::string_view by, std::string_view name = "the result",
                   bool allows_null = false) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (value) return {value};
  }
  tree::Contents contents(by);
  contents.allows_null = allows_null;
  tree::visit(value, contents, {.name = name});
  return std::move(contents.tensors);
}
/// A tree with other tensors in its places.
template <class T>
T filled(T value, Tensor* tensors) {
  tree::Filling filling(tensors);
  tree::visit(value, filling);
  return value;
}

/// "argument 0"
std::string_view argument_name(size_t i);

/// Visits arguments one after the other, each under its name.
template <class... A>
void visit_arguments(tree::Visitor& visitor, A&... args) {
  size_t i = 0;
  ((visitor.argument(i), tree::visit(args, visitor, {.name = argument_name(i++)})), ...);
}

/// One call of a function under a transform, as a function of tensors.
class AnyRun {
 public:
  tree::Contents in;  // the arguments

  explicit AnyRun(std::string_view by) : in(by) {}
  AnyRun(const AnyRun&) = delete;
  /// The tensors of the result, for other ones in the arguments.
  Tensors operator()(const Tensors& given);
  Function function();
  /// What errors call arguments and results.
  flat::Names names();
  /// Keeps the structure of arguments and result.
  void forget_tensors();

 protected:
  ~AnyRun() = default;
  void fill_result(Tensors& tensors);
  virtual void visit_arguments(tree::Visitor& visitor) = 0;
  virtual void visit_result(tree::Visitor& visitor) = 0;
  /// Calls the user's function.
  virtual void call() = 0;
};

template <class F, class... A>
class Run final : public AnyRun {
 public:
  using Result = typed::Result<F, A...>;
  Pack<A...> args;
  Later<Result> out;  // once it has run

  template <class... G>
  Run(std::string_view by, const F& f, G&&... given)
      : AnyRun(by), args(FromValues(), std::forward<G>(given)...), f_(f) {
    visit_arguments(in);
    in.argument(sizeof...(A));
  }

  /// The result with other tensors.
  Result result(Tensors tensors) {
    fill_result(tensors);
    return std::move(*out);
  }
  /// Argument I with other tensors: those of all arguments are given.
  template <size_t I>
  auto argument(Tensors& tensors) {
    return filled(at<I>(args), tensors.data() + in.first[I]);
  }
  Pack<A...> arguments(Tensors& tensors) {
    Pack<A...> made = args;
    tree::Filling filling(tensors.data());
    made.with([&](A&... each) { typed::visit_arguments(filling, each...); });
    return made;
  }

 protected:
  void visit_arguments(tree::Visitor& visitor) override {
    args.with([&](A&... each) { typed::visit_arguments(visitor, each...); });
  }
  void visit_result(tree::Visitor& visitor) override {
    tree::visit(*out, visitor, {.name = "result"});
  }
  void call() override {
    args.with(
        [this](A&... each) { out.set([&]() -> decltype(auto) { return invoke(f_, each...); }); });
  }

 private:
  const F& f_;
};

}  // namespace tn::typed
