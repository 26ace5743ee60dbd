#pragma once
// OptimizerDef: everything the library knows about an optimizer, as one constant value. The classes
// of C++ and Python follow from it (docs/design/032-optimizers.md).
//
//     extern constinit const OptimizerDef lion = UpdateRule<LionAttrs>{.name = "Lion", …};
#include "ops/rules.h"
#include "tenon/ops.h"

namespace tn::optim {

using ops::T;

/// The numbers that a hyper-parameter may be.
struct Range {
  bool (*has)(double);
  std::string_view text;
};
inline constexpr Range not_negative{[](double v) { return v >= 0; }, "at least 0"};
/// The decay factor of a running average.
inline constexpr Range share{[](double v) { return v >= 0 && v < 1; },
                             "at least 0 and less than 1"};

/// A hyper-parameter: a field of attributes, or two with one name, as `betas`.
struct Hyperparameter {
  const char* name;
  FieldList parts = {};
  const Range* range = nullptr;
  bool is_decay() const { return name == std::string_view("weight_decay"); }  // read by the base
};

/// Lists hyper-parameters: `f("eps", a.eps, not_negative)`, `f("betas", a.beta1, a.beta2, share)`.
struct HyperparameterLister {
  std::vector<Hyperparameter>& out;
  void operator()(const char* name, auto&... parts) {
    out.push_back({.name = name});
    (add(out.back(), parts), ...);
  }
  static void add(Hyperparameter& to, const Range& range) { to.range = &range; }
  static void add(Hyperparameter& to, auto& part) { FieldLister{to.parts}(to.name, part); }
};

struct OptimizerDef;

/// A step of one parameter, in at least float32: inputs of the rule, and state that it replaces.
struct OptimizerStep {
  const OptimizerDef& def;
  Tensor gradient, parameter;
  Tensor step;         // the number of steps, this one included
  Tensor rate;         // the learning rate
  Tensors state = {};  // by StateDef; null: absent

  Tensor& operator[](std::string_view name);
};

/// A state tensor per parameter. `initial` returns null if the parameter does not need it.
struct StateDef {
  std::string_view name;
  Tensor (*initial)(const void* attrs, const Tensor& parameter) = nullptr;  // null: zeros
};

struct OptimizerDef {
  std::string_view name, doc;
  std::string_view example;            // lines of a Python session
  std::string_view alias;              // PyTorch's spelling in Python
  const OptimizerDef* base = nullptr;  // Python's class derives from that one
  double learning_rate = 1e-3;
  bool decoupled = false;  // weight decay is subtracted from the parameter
  void (*defaults)(void* attrs) = nullptr;
  void (*list)(void* attrs, std::vector<Hyperparameter>& out) = nullptr;
  std::string_view (*check)(const void* attrs) = nullptr;  // the error, or ""
  List<StateDef, 4> state;
  Tensor (*update)(const void* attrs, OptimizerStep& u) = nullptr;
};

template <class A>
struct StateRule {
  std::string_view name;
  ops::Rule<A, Tensor, const Tensor&> initial;
  constexpr StateRule() = default;
  constexpr StateRule(const char* text, ops::Rule<A, Tensor, const Tensor&> rule = {})
      : name(text), initial(rule) {}
};

/// The builder of a record, with rules that take the attributes as their own type.
template <class A>
struct UpdateRule {
  std::string_view name, doc, example = {}, alias = {};
  const OptimizerDef* base = nullptr;
  double learning_rate = 1e-3;
  bool decoupled = false;
  ops::Rule<A, std::string_view> check = {};
  List<StateRule<A>, 4> state = {};
  ops::Rule<A, Tensor, OptimizerStep&> update;

  constexpr operator OptimizerDef() const {
    static_assert(sizeof(A) <= AttrBuffer::kBytes && std::is_trivially_copyable_v<A>);
    OptimizerDef def;
    def.name = name, def.doc = doc, def.example = example, def.alias = alias, def.base = base;
    def.learning_rate = learning_rate, def.decoupled = decoupled;
    def.defaults = [](void* at) { new (at) A{}; };
    def.list = [](void* at, std::vector<Hyperparameter>& out) {
      A::fields(*static_cast<A*>(at), HyperparameterLister{out});
    };
    def.check = check.f, def.update = update.f;
    for (const StateRule<A>& each : state)
      def.state.items[def.state.count++] = {each.name, each.initial.f};
    return def;
  }
};

/// For state that only some options need.
inline Tensor zeros_if(bool needed, const Tensor& parameter) {
  return needed ? zeros_like(parameter) : Tensor();
}

/// Every optimizer of the library, base classes before those that derive from them (generated).
std::span<const OptimizerDef* const> optimizer_table();
/// By name; null when unknown.
const OptimizerDef* find_optimizer(std::string_view name);

/// The hyper-parameters in `attrs`.
std::vector<Hyperparameter> hyperparameters_of(const OptimizerDef& def, void* attrs);
/// Fails for values that are out of range, in the name of `optimizer`.
void check_attrs(const OptimizerDef& def, void* attrs, std::string_view optimizer);
/// The state before the first step, by StateDef.
Tensors initial_state(const OptimizerDef& def, const void* attrs, const Tensor& parameter);

}  // namespace tn::optim
