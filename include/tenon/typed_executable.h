#pragma once
// Executables as typed functions; part of executable.h.
#include <map>

#include "tenon/executable.h"

namespace tn {

namespace typed {

/// As the only argument of an executable its inputs by name, as a result its outputs by name.
using ByName = std::map<std::string, Tensor>;
/// The inputs of an executable in order.
Tensors inputs_by_name(const Executable& executable, const ByName& given);
/// Of compile_ahead, for inputs in their order.
ByName inputs_by_name(const std::vector<InputInfo>& inputs, const Tensors& given);
ByName outputs_by_name(const Executable& executable, Tensors made);
/// Fails unless the outputs have names.
void check_named_outputs(const Executable& executable);
template <class... A>
inline constexpr bool takes_names = std::is_same_v<Parameters<A...>, Parameters<ByName>>;

/// Fails unless an executable has so many tensors as inputs and outputs; -1: any number.
void check_counts(const Executable& executable, int64_t inputs, int64_t outputs);
/// Names of inputs that have none, and the number of them.
void name_inputs(std::vector<InputInfo>& inputs, const std::vector<std::string>& names);

/// Collects "arg0.w", …
struct InputNames final : tree::Visitor {
  std::vector<std::string> all;
  void tensor(const tree::Slot& slot) override;
};
/// Those of a result: "w", "layers.0.w".
std::vector<std::string> output_names(const Callback<void(tree::Visitor&)>& result);

/// Numbers, text and modes in trees, which are constants of what is compiled.
struct Settings : tree::Visitor {
  std::vector<uint64_t> words = {};
  void module(const tree::Path& path, nn::ModuleBase& module, VisitModule*) override;
  void setting(const tree::Path& path, uint64_t bits) override;
};
/// As text for the surface of an executable, and back: none of one that C++ did not make.
std::string text_of(const Settings& settings);
std::vector<uint64_t> settings_in(const std::string& surface);
/// Fails with the path of the first setting that differs.
void check_settings(const std::vector<uint64_t>& made,
                    const Callback<void(tree::Visitor&)>& arguments);
/// Fails where a result has settings, or lists of lengths, that a new one of its type has not.
void check_result(const Callback<void(tree::Visitor&)>& result,
                  const Callback<void(tree::Visitor&)>& fresh);

/// What a new tree of type T has.
template <class T>
struct NewTree {
  tree::Contents contents{"executable"};
  NewTree() {
    T tree{};
    contents.allows_null = true;
    tree::visit(tree, contents);
  }
  int64_t count() const { return static_cast<int64_t>(contents.tensors.size()); }
};

/// How many tensors an argument of type T has: -1 where values decide.
template <class T>
int64_t fixed_count() {
  NewTree<T> made;
  return made.contents.structure.size() ? -1 : made.count();
}

/// How many results a T takes: those of a new one, whose lists and maps have the lengths they have.
template <class T>
int64_t result_count() {
  if constexpr (std::is_same_v<T, Tensors> || std::is_same_v<T, ByName>)
    return -1;
  else
    return NewTree<T>().count();
}

}  // namespace typed

template <class Signature>
class ExecutableOf : public Executable {
 public:
  explicit ExecutableOf(Executable made) : Executable(std::move(made)) {
    static_assert(std::is_function_v<Signature>,
                  "the type of an executable is that of a function, as in "
                  "tn::Executable::load<tn::Tensor(tn::Tensor)>(path)");
  }
};

/// An executable as a function of trees.
template <class R, class... A>
class ExecutableOf<R(A...)> : public Executable {
 public:
  using Executable::operator();
  explicit ExecutableOf(Executable made)
      : Executable(std::move(made)), settings_(typed::settings_in(surface())) {
    typed::check_counts(*this, count(typed::fixed_count<typed::Value<A>>()...),
                        typed::result_count<typed::Value<R>>());
    if constexpr (std::is_same_v<R, typed::ByName>) typed::check_named_outputs(*this);
  }
  typed::Value<R> operator()(const typed::Value<A>&... args,
                             std::source_location at = std::source_location::current()) const
    requires(!(std::is_same_v<typed::Value<A>, Tensors> && ...) || !std::is_same_v<R, Tensors>)
  {
    flat::Place here(at);
    Tensors out = (*static_cast<const Executable*>(this))(inputs_of(args...));
    if constexpr (std::is_same_v<R, Tensors>)
      return out;
    else if constexpr (std::is_same_v<R, typed::ByName>)
      return typed::outputs_by_name(*this, std::move(out));
    else
      return typed::filled(typed::Value<R>{}, out.data());
  }

 private:
  std::vector<uint64_t> settings_;  // of the arguments that the function was traced with

  Tensors inputs_of(const typed::Value<A>&... args) const {
    if constexpr (typed::takes_names<typed::Value<A>...>) {
      return typed::inputs_by_name(*this, args...);
    } else {
      auto visit = [&](tree::Visitor& visitor) {
        typed::visit_arguments(visitor, const_cast<typed::Value<A>&>(args)...);
      };
      if (!settings_.empty()) typed::check_settings(settings_, visit);
      tree::Contents contents("executable");
      visit(contents);
      return std::move(contents.tensors);
    }
  }
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
struct Ahead {
  template <class F>
  static ExecutableOf<Signature> make(const F&, const std::vector<InputInfo>&,
                                      const AheadSettings&) {
    return ExecutableOf<Signature>(Executable(nullptr));
  }
};
template <class R, class... A>
struct Ahead<R(A...)> {
  template <class F>
  static ExecutableOf<R(A...)> make(const F& f,
                                    std::vector<InputInfo> inputs,  // NOLINT(performance-*): named
                                    AheadSettings settings) {
    check_callable<F, A...>();
    static_assert(!(std::is_arithmetic_v<A> || ...),
                  "an executable takes tensors: close over a number, or use compile_ahead_sized");
    Pack<A...> args{FromValues{}, A{}...};
    auto visit = [&](tree::Visitor& visitor) {
      args.with([&](A&... each) { visit_arguments(visitor, each...); });
    };
    if constexpr (takes_names<A...>) {
      at<0>(args) = inputs_by_name(inputs, Tensors(inputs.size()));
    } else if constexpr (std::is_same_v<Parameters<A...>, Parameters<Tensors>>) {
      at<0>(args).resize(inputs.size());
    } else {
      InputNames names;
      visit(names);
      name_inputs(inputs, names.all);
    }
    [[maybe_unused]] R fresh{};      // not in the trace, which a module cannot draw its weights in
    std::vector<std::string> names;  // of outputs
    // NOLINTNEXTLINE(performance-unnecessary-value-param): Filling moves them, for most signatures
    auto on_list = [&](Tensors given) {
      if constexpr (takes_names<A...>) {
        at<0>(args) = inputs_by_name(inputs, given);
      } else {
        tree::Filling filling(given.data());
        visit(filling);
      }
      UserCode own;
      R result(args.with([&](A&... each) { return R(invoke(f, each...)); }));
      if constexpr (tree::HasFields<R> || std::is_same_v<R, ByName>)
        names = output_names([&](tree::Visitor& v) { tree::visit(result, v); });
      if constexpr (!std::is_same_v<R, Tensor> && !std::is_same_v<R, Tensors> &&
                    !std::is_same_v<R, ByName>)
        check_result([&](tree::Visitor& v) { tree::visit(result, v, {.name = "result"}); },
                     [&](tree::Visitor& v) { tree::visit(fresh, v); });
      return tensors_of(result, "compile_ahead");
    };
    Settings constants;
    if constexpr (!takes_names<A...>) visit(constants);
    if (!settings.surface)
      settings.surface = [&] {
        return Surface{constants.words.empty() ? "" : text_of(constants), names};
      };
    return ExecutableOf<R(A...)>(flat::compile_ahead(on_list, inputs, settings));
  }
};

}  // namespace typed

/// `f` compiled for inputs that are described, one for each tensor of its arguments. It is called
/// once, with parameters like those, in default-constructed arguments: numbers, text and modes in
/// these are constants, and a call with other ones is an error. What it asks about sizes must have
/// one answer on their whole ranges, or is checked at every call. A function of one map from text
/// to tensors takes the inputs by name; a map as a result has the outputs by name.
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
