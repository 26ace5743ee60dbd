#pragma once
// Calls of compiled functions: the core on lists of tensors, and the typed call above it.
#include "tenon/compile_settings.h"
#include "tenon/shared_ptr.h"
#include "tenon/typed.h"

namespace tn {

namespace flat {

/// A call of a compiled function: its arguments, and how to trace the function for them.
class CompiledCall {
 public:
  tree::Contents in{"compile"};  // the arguments
  size_t donated = 0;            // the number of leading tensors that may be overwritten
  std::source_location place;

  explicit CompiledCall(std::source_location at) : place(at) {}
  virtual ~CompiledCall();
  /// Runs the function with parameters in place of the arguments.
  virtual Tensors trace(const Tensors& params) = 0;
  /// What `finish` needs from the latest trace.
  virtual SharedPtr<const void> kept() { return nullptr; }
  virtual void finish(Tensors&& results, const void* kept) = 0;
  virtual void visit_arguments(tree::Visitor& visitor) = 0;
  /// The name of a tensor of the arguments, and their settings, in errors and reports.
  virtual std::string name(size_t tensor);
  virtual std::vector<tree::Setting> settings();
};

/// The traces of a function, found by the types and the structure of arguments. Copies share them;
/// calls may come from any thread.
class CompiledFunction {
 public:
  CompiledFunction();
  CompiledFunction(const CompileSettings& settings, const std::source_location& at);
  /// Donated arguments are null afterwards. They are restored if a run fails before it has
  /// overwritten them.
  void operator()(CompiledCall& call) const;
  std::string show(std::string_view stage, CompiledCall& call) const;
  std::string explain(CompiledCall& call) const;
  CallStats stats() const;
  std::vector<std::string> why_recompiled() const;

 private:
  struct State;
  SharedPtr<State> state_;
};

}  // namespace flat

namespace typed {

/// A call of a compiled `F` with trees of the types `A`, which are not copied.
template <class F, class... A>
class CompiledCall final : public flat::CompiledCall {
 public:
  using R = Result<F, A...>;

  /// Rvalues are moved from, module or not.
  template <class... G>
  CompiledCall(const F& f, [[maybe_unused]] size_t donated_arguments, std::source_location at,
               G&&... given)
      : flat::CompiledCall(at),
        f_(f),
        args_(FromValues(), const_cast<A&>(static_cast<const A&>(given))...) {
    in.tensors.reserve((capacity(given) + ... + 0));
    size_t i = 0;
    (collect<G>(i++, const_cast<A&>(static_cast<const A&>(given)), donated_arguments), ...);
  }
  R take() { return std::move(*result_); }

  Tensors trace(const Tensors& params) override {
    Pack<A...> args = args_.with([](A&... each) { return Pack<A...>(FromValues(), each...); });
    Tensors tensors = params;
    tree::Filling filling(tensors.data());
    args.with([&](A&... each) { typed::visit_arguments(filling, each...); });
    tree::ModuleList originals, copies;
    visit_arguments(originals);
    args.with([&](A&... each) { typed::visit_arguments(copies, each...); });
    Later<R> made;
    {
      tree::StandIns stand_ins(originals, copies);
      UserCode own;
      args.with(
          [&](A&... each) { made.set([&]() -> decltype(auto) { return invoke(f_, each...); }); });
    }
    tensors = tensors_of(*made, "compile");
    if constexpr (!kIsList) {
      tree::Hollowing hollowing;
      tree::visit(*made, hollowing);
      kept_ = SharedPtr<const R>::make(std::move(*made));
    }
    return tensors;
  }
  SharedPtr<const void> kept() override { return kept_; }
  void finish(Tensors&& results, const void* kept) override {
    if constexpr (std::is_same_v<R, Tensor>)
      result_.set([&] { return std::move(results[0]); });
    else if constexpr (kIsList)
      result_.set([&] { return std::move(results); });
    else
      result_.set([&] { return filled(R(*static_cast<const R*>(kept)), results.data()); });
  }
  void visit_arguments(tree::Visitor& visitor) override {
    args_.with([&](A&... each) { typed::visit_arguments(visitor, each...); });
  }

 private:
  static constexpr bool kIsList = std::is_same_v<R, Tensor> || std::is_same_v<R, Tensors>;

  template <class T>
  static size_t capacity(const T& value) {
    size_t bytes = sizeof(T);
    if constexpr (requires {
                    value.capacity();
                    value.size();
                  })
      bytes = value.size() * sizeof(*value.begin());
    return bytes / sizeof(Tensor);
  }
  template <class G, class T>
  void collect(size_t i, T& argument, size_t donated_arguments) {
    in.takes_over = !std::is_lvalue_reference_v<G> && !std::is_const_v<G>;
    if constexpr (std::is_same_v<T, Tensor>) {
      if (argument.defined() && in.takes_over)
        in.tensors.push_back(std::move(argument));
      else if (argument.defined())
        in.tensors.push_back(argument);
      else
        visit_named(i, argument);
    } else {
      visit_named(i, argument);
    }
    if (i < donated_arguments) donated = in.tensors.size();
  }
  template <class T>
  void visit_named(size_t i, T& argument) {
    flat::Place here(place);
    tree::visit(argument, in, {.name = argument_name(i)});
  }

  const F& f_;
  Pack<A&...> args_;
  Later<R> result_;
  SharedPtr<const void> kept_;  // an R: the structure of the result
};

/// An argument as a tree: selections and operands become tensors.
template <class T>
decltype(auto) as_value(T&& value) {
  if constexpr (std::is_same_v<Value<T>, std::remove_cvref_t<T>>)
    return std::forward<T>(value);
  else
    return Value<T>(value);
}

}  // namespace typed

}  // namespace tn
