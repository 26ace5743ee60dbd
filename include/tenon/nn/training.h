#pragma once
// Gradients of models, and compiled functions that change models.
#include <memory>
#include <tuple>

#include "tenon/compile.h"
#include "tenon/nn/module.h"

namespace tn::nn {

/// What a function returned, a Tensor or Tensors, and the gradient of (the first of) it, by the
/// names of the trainable parameters.
template <class T>
struct ValueAndGrad {
  T value;
  TensorMap gradients;
};

// For the library.
ValueAndGrad<Tensors> value_and_grad_in(const Visit& model, const std::function<Tensors()>& f);

/// What compiled functions take and give.
inline Tensors as_list(Tensor x) { return {std::move(x)}; }
inline Tensors as_list(Tensors x) { return x; }
template <class T>
T from_list(Tensors&& list) {
  if constexpr (std::same_as<T, Tensor>)
    return std::move(list.at(0));
  else
    return std::move(list);
}

/// A function that returns what `f` returns, and its gradient for the trainable parameters of the
/// model. `f` uses the model, given to it or not, and returns a scalar, or Tensors that start with
/// one.
///
///     auto loss_and_grad = tn::nn::value_and_grad(model, [&](const Tensor& x, const Tensor& y) {
///       return tn::cross_entropy(model(x), y);
///     });
///     auto [loss, gradients] = loss_and_grad(x, y);
///
/// The model must stay where it is.
template <class M, class F>
auto value_and_grad(Module<M>& model, F f) {
  return [&model, f = std::move(f)]<class... A>(A&&... args) mutable {
    using Result = std::decay_t<std::invoke_result_t<F&, A&&...>>;
    auto [values, gradients] =
        value_and_grad_in(model.as_visit(), [&] { return as_list(f(std::forward<A>(args)...)); });
    return ValueAndGrad<Result>{from_list<Result>(std::move(values)), std::move(gradients)};
  };
}

inline void visit_state(Tensor& variable, Visitor& visitor) { visitor.tensor({{}, variable}); }
inline void visit_state(TensorMap& variables, Visitor& visitor) {
  for (auto& [name, variable] : variables) visitor.tensor({{.name = name}, variable});
}
void visit_state(auto& model, Visitor& visitor) { model.as_visit()(visitor); }

/// Calls functions on state that they change: what is traced takes and returns it.
class StateCalls {
 public:
  /// `keep` copies the state; what it returns puts the copy back.
  StateCalls(Visit state, std::function<std::function<void()>()> keep, CompileSettings settings);
  Tensors operator()(const Function& f, const Tensors& args) const;
  std::string show(std::string_view stage, const Function& f, const Tensors& args) const;
  CallStats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A compiled function together with the state that it changes. Copies share both.
template <class F, class... S>
class StatefulFunction {
 public:
  StatefulFunction(F f, std::tuple<S&...> state, CompileSettings settings)
      : f_(std::make_shared<F>(std::move(f))),
        calls_(
            [state](Visitor& v) {
              std::apply([&](auto&... s) { (visit_state(s, v), ...); }, state);
            },
            [state] {
              return [state, copy = std::tuple<S...>(state)]() mutable { state = std::move(copy); };
            },
            std::move(settings)) {}

  template <std::convertible_to<Tensor>... A>
  auto operator()(const A&... args) const {
    using Result = std::decay_t<std::invoke_result_t<F&, const A&...>>;
    return from_list<Result>(calls_(as_function<sizeof...(A)>(), {args...}));
  }
  /// As CompiledFunction::show, for the state as it is and arguments like these.
  template <std::convertible_to<Tensor>... A>
  std::string show(std::string_view stage, const A&... args) const {
    return calls_.show(stage, as_function<sizeof...(A)>(), {args...});
  }
  CallStats stats() const { return calls_.stats(); }

 private:
  template <size_t N>
  Function as_function() const {
    return [f = f_.get()](const Tensors& args) {
      return [&]<size_t... I>(std::index_sequence<I...>) { return as_list((*f)(args[I]...)); }
      (std::make_index_sequence<N>());
    };
  }
  std::shared_ptr<F> f_;
  StateCalls calls_;
};

}  // namespace tn::nn

namespace tn {

/// `f`, a function of tensors that reads and changes `state` and the random state of the thread, as
/// one plan: new values take the memory of the old ones. State is modules, optimizers, tensors and
/// maps of tensors.
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
auto compile(F f, std::tuple<S&...> state, CompileSettings settings = {}) {
  return nn::StatefulFunction<F, S...>(std::move(f), state, std::move(settings));
}

}  // namespace tn
