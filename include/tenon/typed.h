#pragma once
// Typed functions: lambdas, functors and function pointers from trees to a tree. What transforms,
// control flow and compile have in common; programs use those.
#include <source_location>
#include <string>
#include <tuple>

#include "tenon/flat.h"
#include "tenon/stand_ins.h"
#include "tenon/typed_function.h"

namespace tn::typed {

/// The call operator of a transformed function: with the parameters of the function itself where
/// these are known. `Self` has `call(place, args...)`, and `place` for calls that have none.
template <class Self, class P>
struct Callable;
template <class Self, class... P>
struct Callable<Self, Parameters<P...>> {
  using TypedParameters = Parameters<P...>;
  using IsTransformed = void;
  auto operator()(Taken<P>... args,
                  std::source_location place = std::source_location::current()) const {
    return static_cast<const Self*>(this)->call(place, std::forward<Taken<P>>(args)...);
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
    if (value.defined()) return {value};
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

/// Fails unless the tensors of two trees have the same paths.
template <class T>
void check_like(std::string_view by, std::string_view what, T& wanted, T& given) {
  if constexpr (!std::is_same_v<T, Tensor>)
    tree::check_like(
        by, what, [&](tree::Visitor& v) { tree::visit(wanted, v); },
        [&](tree::Visitor& v) { tree::visit(given, v); });
}

using tree::argument_name;

/// Visits arguments one after the other, each under its name.
template <class... A>
void visit_arguments(tree::Visitor& visitor, A&... args) {
  size_t i = 0;
  ((visitor.argument(i), tree::visit(args, visitor, {.name = argument_name(i++)})), ...);
}

template <class A, class G>
void add_modules(tree::ModuleList& found, G& given) {
  if constexpr (std::is_same_v<std::remove_const_t<G>, A>)
    tree::visit(const_cast<A&>(given), found);
}
/// The modules among the arguments of a function, which gets copies of them.
template <class... A>
tree::ModuleList modules_in(auto&... given) {
  tree::ModuleList found;
  (add_modules<A>(found, given), ...);
  return found;
}

/// One call of a function under a transform, as a function of tensors.
class AnyRun {
 public:
  tree::Contents in;  // the arguments

  AnyRun(std::string_view by, tree::ModuleList modules) : in(by), modules_(std::move(modules)) {}
  AnyRun(const AnyRun&) = delete;
  /// The tensors of the result, for other ones in the arguments.
  Tensors operator()(const Tensors& given);
  Function function();
  /// What errors call arguments and results.
  flat::Names names();
  flat::Derivatives value_and_grad(const std::vector<int>& numbers);
  /// Keeps the structure of arguments and result.
  void forget_tensors();

 protected:
  ~AnyRun() = default;
  void fill_result(Tensors& tensors);
  virtual void visit_arguments(tree::Visitor& visitor) = 0;
  virtual void visit_result(tree::Visitor& visitor) = 0;
  /// Calls the user's function.
  virtual void call() = 0;

 private:
  tree::ModuleList modules_;  // which those of the arguments are copies of
};

template <class F, class... A>
class Run final : public AnyRun {
 public:
  using Result = typed::Result<F, A...>;
  Pack<A...> args;
  Later<Result> out;  // once it has run

  template <class... G>
  Run(std::string_view by, const F& f, G&&... given)
      : AnyRun(by, modules_in<A...>(given...)),
        args(FromValues(), std::forward<G>(given)...),
        f_(f) {
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
