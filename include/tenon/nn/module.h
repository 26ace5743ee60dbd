#pragma once
// Module: a function of tensors together with its parameters.
#include <iosfwd>
#include <utility>

#include "tenon/error.h"
#include "tenon/nn/parameters.h"

namespace tn::nn {

/// Runs `f`, a call of `module`; an error that leaves it names the module inside that failed.
template <class M, class F>
decltype(auto) called(const M& module, F&& f);

/// The base of layers and models, which are plain values: a copy has parameters of its own. Those
/// that require gradients become separate variables, without a gradient, when the copy is first
/// called or visited.
///
///     struct Perceptron : tn::nn::Module<Perceptron> {
///       tn::nn::Linear hidden{2, 64}, out{64, 3};
///
///       tn::Tensor forward(const tn::Tensor& x) const { return out(tn::relu(hidden(x))); }
///       static void fields(auto& m, auto&& f) { f("hidden", m.hidden), f("out", m.out); }
///     };
///     Perceptron model;
///     tn::Tensor y = model(x);
///
/// Members that `fields` omits are constants: not trained, not saved. Those of a class derived from
/// a model are such: hold the model as a member instead. `forward` is const unless it changes the
/// module, as with running statistics.
template <class Self>
class Module : public ModuleBase {
 public:
  Module() = default;

  template <class... A>
  auto operator()(A&&... args) const
    requires requires(const Self& s) { s.forward(std::forward<A>(args)...); }
  {
    return called(self(), [&] { return self().forward(std::forward<A>(args)...); });
  }
  template <class... A>
  auto operator()(A&&... args)
    requires requires(Self& s) { s.forward(std::forward<A>(args)...); }
  {
    if (changes_are_noted()) note_changes(this->home(), as_followed_visit());
    return called(self(), [&] { return self().forward(std::forward<A>(args)...); });
  }

  /// All tensors, under the names they have in files: "blocks.3.attn.q.weight".
  TensorMap state_dict(Place at = Place::current()) const { return tensors_in(as_visit(), at); }
  /// The parameters in their places, for an optimizer or a loop.
  Parameters parameters(Place at = Place::current()) & { return Parameters(*this, at); }
  /// Those that are neither frozen nor buffers.
  TensorMap trainable_parameters(Place at = Place::current()) const {
    return trainable_in(as_visit(), at);
  }
  /// Replaces tensors by name; names may be omitted. Tensors that require gradients still require
  /// them.
  Self& update(const TensorMap& tensors, Place at = Place::current()) {
    return nn::update(as_visit(), tensors, at), self();
  }
  /// Replaces all tensors by name. An error lists all mismatches of names, shapes and types, and
  /// then nothing has changed.
  Self& load_state_dict(TensorMap tensors, const LoadWeights& how = {},
                        std::source_location at = std::source_location::current()) {
    return put_all(as_visit(), "load_state_dict", std::move(tensors), how, at), self();
  }
  /// Writes `state_dict()` to a safetensors file atomically. Python reads it too.
  void save_weights(const std::string& path,
                    std::source_location at = std::source_location::current()) const {
    nn::save_weights(as_visit(), path, at);
  }
  /// `load_state_dict` of a safetensors file.
  Self& load_weights(const std::string& path, const LoadWeights& how = {},
                     std::source_location at = std::source_location::current()) {
    return nn::load_weights(as_visit(), path, how, at), self();
  }

  /// Sets whether the modules inside behave as in training.
  Self& train(bool mode = true, Place at = Place::current()) {
    return set_training(as_visit(), mode, at), self();
  }
  Self& eval(Place at = Place::current()) { return train(false, at); }
  /// Excludes all tensors, or those of fields with these names, here and in modules inside, from
  /// training. A name that no tensor has is an error.
  Self& freeze(const std::set<std::string>& names = {},
               std::source_location at = std::source_location::current()) {
    return set_frozen(as_visit(), names, true, at), self();
  }
  Self& unfreeze(const std::set<std::string>& names = {},
                 std::source_location at = std::source_location::current()) {
    return set_frozen(as_visit(), names, false, at), self();
  }

  /// A line for each tensor, with its name and type, and the number of trainable elements.
  std::string to_string() const { return text_of(as_visit()); }
  friend std::ostream& operator<<(std::ostream& out, const Module& module) {
    return print(out, module.as_visit());
  }

  /// Visits the members: modules are trees (tree.h).
  void visit(Visitor& visitor, const Path& path) { nn::visit(self(), visitor, path); }
  /// The module as a visit. Visitors of a constant module must not change it.
  Visit as_visit() const {
    return [this](Visitor& v) { nn::visit(const_cast<Self&>(self()), v); };
  }
  /// The same wherever the module is moved to.
  Visit as_followed_visit() {
    return
        [home = this->home()](Visitor& v) { nn::visit(static_cast<Self&>(module_of(*home)), v); };
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
};

template <class M, class F>
decltype(auto) called(const M& module, F&& f) {
  if (module.lacks_variables()) own_all_variables(module.as_visit());
  try {
    return std::forward<F>(f)();
  } catch (const UserError& error) {
    fail_in(module.as_visit(), module, error);
  }
}

}  // namespace tn::nn
