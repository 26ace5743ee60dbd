#pragma once
// Executables as typed functions; part of executable.h.
#include "tenon/executable.h"

namespace tn {

namespace typed {

/// Fails unless an executable has so many tensors as inputs and outputs; -1: any number.
void check_counts(const Executable& executable, int64_t inputs, int64_t outputs);
/// Names of inputs that have none, and the number of them.
void name_inputs(std::vector<InputInfo>& inputs, const std::vector<std::string>& names);

/// Collects "arg0.w", …
struct InputNames final : tree::Visitor {
  std::vector<std::string> all;
  void tensor(const tree::Slot& slot) override;
};

/// How many tensors a tree of type T has: -1 where values decide.
template <class T>
int64_t fixed_count() {
  T tree{};
  tree::Contents contents("executable");
  contents.allows_null = true;
  tree::visit(tree, contents);
  return contents.structure.size() ? -1 : static_cast<int64_t>(contents.tensors.size());
}

}  // namespace typed

/// An executable as a function of trees.
template <class R, class... A>
class ExecutableOf<R(A...)> : public Executable {
 public:
  using Executable::operator();
  explicit ExecutableOf(Executable made) : Executable(std::move(made)) {
    typed::check_counts(*this, count(typed::fixed_count<typed::Value<A>>()...),
                        typed::fixed_count<typed::Value<R>>());
  }
  typed::Value<R> operator()(const typed::Value<A>&... args,
                             std::source_location at = std::source_location::current()) const
    requires(!(std::is_same_v<typed::Value<A>, Tensors> && ...) || !std::is_same_v<R, Tensors>)
  {
    flat::Place here(at);
    Tensors in;
    auto add = [&](auto& argument) {
      for (Tensor& t : typed::tensors_of(argument, "executable", "an argument"))
        in.push_back(std::move(t));
    };
    (add(const_cast<typed::Value<A>&>(args)), ...);
    Tensors out = (*static_cast<const Executable*>(this))(in);
    if constexpr (std::is_same_v<R, Tensors>)
      return out;
    else
      return typed::filled(typed::Value<R>{}, out.data());
  }

 private:
  template <class... N>
  static int64_t count(N... counts) {
    return ((counts < 0) || ...) ? -1 : (int64_t{0} + ... + counts);
  }
};

namespace typed {

template <class F, class P>
struct SignatureFrom;
template <class F, class... P>
struct SignatureFrom<F, Parameters<P...>> {
  using type = Result<F, Value<P>...>(Value<P>...);
};

template <class Signature>
struct Ahead;
template <class R, class... A>
struct Ahead<R(A...)> {
  template <class F>
  static ExecutableOf<R(A...)> make(const F& f, std::vector<InputInfo> inputs,
                                    AheadSettings settings) {
    check_callable<F, A...>();
    static_assert(!(std::is_arithmetic_v<A> || ...),
                  "an executable takes tensors: close over a number, or use compile_ahead_sized");
    Pack<A...> args{FromValues{}, A{}...};
    auto visit = [&](tree::Visitor& visitor) {
      args.with([&](A&... each) { visit_arguments(visitor, each...); });
    };
    if constexpr (std::is_same_v<Parameters<A...>, Parameters<Tensors>>) {
      at<0>(args).resize(inputs.size());
    } else {
      InputNames names;
      visit(names);
      name_inputs(inputs, names.all);
    }
    auto on_list = [&](Tensors given) {
      tree::Filling filling(given.data());
      visit(filling);
      UserCode own;
      R result(args.with([&](A&... each) { return R(invoke(f, each...)); }));
      return tensors_of(result, "compile_ahead");
    };
    return ExecutableOf<R(A...)>(flat::compile_ahead(on_list, std::move(inputs), settings));
  }
};

}  // namespace typed

/// `f` compiled for inputs that are described, one for each tensor of its arguments. It is called
/// once, with parameters like those. What it asks about sizes must have one answer on their whole
/// ranges, or is checked at every call.
///
///     auto f = [](tn::Tensor x, tn::Tensor w) { return tn::matmul(x, w); };
///     auto exe = tn::compile_ahead(f, {{.shape = {{1, 8, 64, "batch"}, 4}}, {.shape = {4, 2}}});
///     tn::Tensor y = exe(x, w);
///
/// A generic function needs its types: `tn::compile_ahead<tn::Tensor(tn::Tensor)>(f, ...)`.
template <class Signature = void, typed::IsFunction F>
auto compile_ahead(const F& f, std::vector<InputInfo> inputs, AheadSettings settings = {},
                   std::source_location at = std::source_location::current()) {
  flat::Place here(at);
  using Known = typed::ParametersFor<F>;
  static_assert(!std::is_void_v<Signature> || !std::is_same_v<Known, typed::Unknown>,
                "the function is generic: say its types, compile_ahead<Tensor(Tensor)>(f, inputs)");
  if constexpr (std::is_void_v<Signature>)
    return typed::Ahead<typename typed::SignatureFrom<F, Known>::type>::make(f, std::move(inputs),
                                                                             std::move(settings));
  else
    return typed::Ahead<Signature>::make(f, std::move(inputs), std::move(settings));
}

}  // namespace tn
