#pragma once
// Gradients of models, and compiled functions that change models.
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "tenon/compile.h"
#include "tenon/nn/module.h"

namespace tn::nn {

/// What a function returned, and the gradient of its first tensor by the names of the trainable
/// parameters.
template <class T>
struct ValueAndGrad {
  T value;
  TensorMap gradients;
  static void fields(auto& v, auto&& f) { f("value", v.value), f("gradients", v.gradients); }
};

// For the library.
/// `visit` visits the model.
ValueAndGrad<Tensors> value_and_grad_in(const ModuleBase& model, const Visit& visit,
                                        const Callback<Tensors()>& f, const Place& at);

/// A function that returns what `f` returns, and its gradient for the trainable parameters of the
/// model. `f` uses the model, given to it or not, and returns a scalar, or a tree whose first
/// tensor is one.
///
///     auto loss_and_grad = tn::nn::value_and_grad(model, [&](const Tensor& x, const Tensor& y) {
///       return tn::cross_entropy(model(x), y);
///     });
///     auto [loss, gradients] = loss_and_grad(x, y);
///
/// The model must stay where it is.
template <class M, class F>
auto value_and_grad(Module<M>& model, F f, Place place = Place::current()) {
  return [&model, f = std::move(f), place]<class... A>(A&&... args) {
    typed::check_callable<F, std::remove_reference_t<A>...>();
    using Result = typed::Value<std::invoke_result_t<const F&, A&&...>>;
    std::optional<Result> out;
    auto run = [&] {
      {
        typed::UserCode own;
        out.emplace(f(std::forward<A>(args)...));
      }
      return typed::tensors_of(*out, "value_and_grad");
    };
    auto [values, gradients] = value_and_grad_in(model, model.as_visit(), run, place);
    return ValueAndGrad<Result>{typed::filled(std::move(*out), values.data()),
                                std::move(gradients)};
  };
}

/// Visits a model, an optimizer or another tree.
void visit_state(auto& state, Visitor& visitor) {
  if constexpr (requires { state.as_visit(); })
    state.as_visit()(visitor);
  else
    tree::visit(state, visitor);
}

/// A part of the state of a function. `keep` copies it; what that returns puts the copy back.
struct StatePart {
  Visit visit;
  Callback<Callback<void()>()> keep;
};
template <class S>
StatePart state_part(S& state) {
  return {[&state](Visitor& v) { visit_state(state, v); },
          [&state] { return [&state, copy = state]() mutable { state = std::move(copy); }; }};
}

/// State by reference, as std::tie gives it.
template <class S>
inline constexpr bool is_tied = false;
template <class... S>
inline constexpr bool is_tied<std::tuple<S&...>> = true;
/// What is given to compile as state, but not by std::tie.
template <class S>
concept IsUntied =
    !is_tied<S> && !std::convertible_to<const S&, CompileSettings> &&
    !std::convertible_to<const S&, std::source_location> && !std::convertible_to<const S&, int>;

/// Calls functions on state that they change: what is traced takes and returns it.
class StateCalls {
 public:
  StateCalls(std::vector<StatePart> state, const CompileSettings& settings,
             const std::source_location& at);
  void operator()(flat::CompiledCall& call) const;
  std::string show(std::string_view stage, flat::CompiledCall& call) const;
  std::string explain(flat::CompiledCall& call) const;
  CallStats stats() const;
  std::vector<std::string> why_recompiled() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A compiled function together with the state that it changes. Copies share both.
template <class F, class... S>
class StatefulFunction : public typed::CallableAs<StatefulFunction<F, S...>, F>,
                         public typed::InspectedAs<StatefulFunction<F, S...>, F> {
 public:
  StatefulFunction(F f, std::tuple<S&...> state, CompileSettings settings, std::source_location at)
      : place(at),
        f_(std::make_shared<F>(std::move(f))),
        calls_(std::apply([](S&... s) { return std::vector<StatePart>{state_part(s)...}; }, state),
               std::move(settings), at) {}

  CallStats stats() const { return calls_.stats(); }
  /// Why each trace was made.
  std::vector<std::string> why_recompiled() const { return calls_.why_recompiled(); }

  // For the library.
  std::source_location place;  // of calls without one
  template <class... A>
  auto call(const std::source_location& at, A&&... args) const {
    return with_call(
        at, [&](auto& call) { return calls_(call), call.take(); },
        typed::as_value(std::forward<A>(args))...);
  }
  template <class... A>
  std::string show_stage(std::string_view stage, const A&... args) const {
    return with_call(
        place, [&](auto& call) { return calls_.show(stage, call); }, typed::as_value(args)...);
  }
  template <class... A>
  std::string explain_call(const A&... args) const {
    return with_call(
        place, [&](auto& call) { return calls_.explain(call); }, typed::as_value(args)...);
  }

 private:
  template <class G, class... A>
  auto with_call(const std::source_location& at, G&& use, A&&... args) const {
    typed::check_callable<F, std::remove_cvref_t<A>...>();
    typed::CompiledCall<F, std::remove_cvref_t<A>...> call(*f_, 0, at, std::forward<A>(args)...);
    return use(call);
  }
  std::shared_ptr<F> f_;
  StateCalls calls_;
};

}  // namespace tn::nn

namespace tn {

/// `f`, a function of trees that reads and changes `state` and the random state of the thread, as
/// one plan: new values take the memory of the old ones. State is modules, optimizers, tensors and
/// other trees.
///
///     auto step = tn::compile([&](const Tensor& x, const Tensor& y) {
///       auto [loss, gradients] = loss_and_grad(x, y);
///       optimizer.update(model, gradients);
///       return loss;
///     }, std::tie(model, optimizer));
///     Tensor loss = step(x, y);
///
/// It is traced again when types, settings or what is frozen have changed. A call in which there is
/// more state afterwards, such as the first one of an optimizer, runs as it is written. The state
/// must stay where it is, and calls must not overlap.
template <class F, class... S>
auto compile(F f, std::tuple<S&...> state, CompileSettings settings = {},
             std::source_location place = std::source_location::current()) {
  return nn::StatefulFunction<F, S...>(std::move(f), state, std::move(settings), place);
}
template <typed::IsFunction F, nn::IsUntied S, class... More>
auto compile(F f, const S&, const More&...) {
  static_assert(!nn::IsUntied<S>,
                "state that a compiled function changes is named in std::tie: "
                "tn::compile(f, std::tie(model, optimizer))");
  return CompiledFunction<F>(std::move(f));
}

}  // namespace tn
