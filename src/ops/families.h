#pragma once
// The five builders. An op is `constexpr auto exp_def = Family<Attrs>{…}; TN_OP(exp);`: what the
// author does not write follows from the family. Members without a default are required.
#include "ops/rules.h"

namespace tn::ops {

/// The two constants of an op, which builders make of what is written.
struct Definition {
  OpDef op;
  OpRules rules;
};

/// Defines the op `name`, and its rules, from the builder `name_def` before it.
#define TN_OP(name)                                         \
  constinit const OpDef name = name##_def.define(#name).op; \
  constinit const OpRules name##_rules = name##_def.define(#name).rules

template <class A>
constexpr Definition start(Family family, std::string_view name, std::string_view doc) {
  must(!doc.empty(), "an op has a doc");
  Definition d;
  d.op.family = family, d.op.name = name, d.op.attrs = &attr_kind<A>, d.rules.doc = doc;
  return d;
}

/// LAPACK and the Fourier transforms have no narrow types.
constexpr Precision precision_in(std::string_view module, Precision given) {
  bool wide = module == "linalg" || module == "fft";
  return wide && given == Precision::any ? Precision::full : given;
}

/// One scalar function, applied at every point; operands broadcast and are promoted.
template <class A = NoAttrs>
struct Elementwise {
  std::string_view doc;
  List<std::string_view, 6> aliases = {};
  std::string_view symbol = {};
  List<ArgDef, 6> args = {};  // default: x, or x1 and x2
  KindSet types;
  Operands operands = Operands::same;
  ResultType result = ResultType::operand;
  ScalarRule<A, S> scalar;
  ScalarRule<A, Z> complex = {};  // for complex operands, when `types` has them
  PrepareRule<A> prepare = {};
  // One of: a partial per operand; linear with its adjoint; jvp; or why there is none.
  List<PartialRule<A>, 4> partials = {};
  Linear linear = Linear::no;
  AdjointRule<A> adjoint = {};
  DerivativeRule<A> jvp = {};
  Gradient gradient = Gradient::by_rule;
  Precision precision = Precision::any;
  bool surface = true;
  List<Sample, 8> samples;

  constexpr Definition define(std::string_view name) const {
    Definition d = start<A>(Family::elementwise, name, doc);
    must(samples.size() > 0, "an op has samples");
    must(scalar.arity > 0, "an elementwise op has a scalar rule");
    must(types.has(Kind::complex) == (complex.arity > 0),
         "complex types and the complex rule come together");
    d.rules.aliases = aliases, d.op.symbol = symbol, d.op.types = types, d.op.operands = operands,
    d.op.result = result;
    d.op.args = args.size()         ? args
                : scalar.arity == 1 ? List<ArgDef, 6>{"x"}
                                    : List<ArgDef, 6>{"x1", "x2"};
    must(d.op.args.size() == scalar.arity, "as many names as operands");
    d.rules.scalar = scalar.f, d.rules.complex = complex.f, d.rules.prepare = prepare.f,
    d.rules.samples = samples;
    d.rules.partials = partials_of<A>(partials), d.op.linear = linear, d.rules.adjoint = adjoint.f;
    d.rules.jvp = jvp.f, d.op.gradient = gradient, d.op.precision = precision,
    d.op.surface = surface;
    bool varies = types.has(Kind::floating) && result != ResultType::boolean;
    if (!varies) d.op.gradient = Gradient::zero;
    must(d.op.gradient != Gradient::by_rule || jvp.given || partials.size() == scalar.arity ||
             (linear != Linear::no && adjoint.given),
         "an elementwise op says how it changes with its operands");
    return d;
  }
};

struct ReduceAttrs {
  Maybe<Axes> axis;
  bool keepdims = false;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis), f("keepdims", a.keepdims); }
};

/// Folds axes with a monoid. The tree depends on the extent alone, so the bits do too.
/// The attributes have `axis` and `keepdims`; others (dtype) are resolved by `prepare`, which
/// unsets them.
template <class A = ReduceAttrs>
struct Reduction {
  std::string_view doc;
  List<std::string_view, 6> aliases = {};
  loop::Monoid monoid;
  KindSet types;
  Operands operands =
      Operands::same;  // `as_given` keeps the type; all and any convert to bool in prepare
  PrepareRule<A> prepare = {};
  Linear linear = Linear::no;
  AdjointRule<A> adjoint = {};
  DerivativeRule<A> jvp = {};
  Gradient gradient = Gradient::by_rule;
  List<Sample, 8> samples;

  constexpr Definition define(std::string_view name) const {
    Definition d = start<A>(Family::reduction, name, doc);
    must(samples.size() > 0, "an op has samples");
    d.rules.aliases = aliases, d.op.args = {"x"}, d.op.types = types, d.op.monoid = monoid;
    d.op.reduce_axes = [](const void* a, Axes& axes, bool& keepdims) {
      axes = static_cast<const A*>(a)->axis.value, keepdims = static_cast<const A*>(a)->keepdims;
    };
    d.op.operands = operands, d.rules.prepare = prepare.f, d.rules.samples = samples;
    d.op.linear = linear, d.rules.adjoint = adjoint.f, d.rules.jvp = jvp.f,
    d.op.gradient = gradient;
    bool accumulates = monoid == loop::Monoid::add || monoid == loop::Monoid::mul;
    if (accumulates) d.op.precision = Precision::full;
    return d;
  }
};

/// Reads its operand in another order: a view.
template <class A>
struct Movement {
  std::string_view doc;
  List<std::string_view, 6> aliases = {};
  bool surface = true, moves = false;
  PrepareRule<A> prepare = {};
  Rule<A, TypeList, Types> infer = {};  // follows from the view
  Rule<A, View, const Type&> view;
  MovementAdjoint<A> adjoint;
  List<Sample, 8> samples;

  constexpr Definition define(std::string_view name) const {
    Definition d = start<A>(Family::movement, name, doc);
    must(samples.size() > 0 && view.given, "a movement has a view and samples");
    d.rules.aliases = aliases, d.op.args = {"x"}, d.rules.prepare = prepare.f, d.op.view = view.f,
    d.rules.samples = samples, d.op.surface = surface, d.op.moves = moves, d.op.infer = infer.f,
    d.op.linear = Linear::each, d.rules.adjoint = adjoint.f;
    return d;
  }
};

/// A name for other ops. When recorded it stays one node until a backend claims it or it is
/// expanded.
template <class A = NoAttrs>
struct Composite {
  std::string_view doc;
  List<std::string_view, 6> aliases = {};
  std::string_view module = {};  // of Python
  std::string_view symbol = {};
  List<ArgDef, 6> args;
  List<std::string_view, 4> results = {};
  bool recorded = false, surface = true, moves = false;
  PrepareRule<A> prepare = {};
  Rule<A, TypeList, Types> infer = {};    // follows from the body
  Rule<A, Tensors, const Tensors&> body;  // absent optional operands are null tensors
  // For recorded ones, where something better is known than what follows from the body.
  DerivativeRule<A> jvp = {};
  DerivativeRule<A> vjp = {};
  Precision precision = Precision::any;
  Batch batch = Batch::family;
  BatchRule<A> batch_rule = {};
  List<Sample, 8> samples = {};

  constexpr Definition define(std::string_view name) const {
    Definition d = start<A>(Family::composite, name, doc);
    must((samples.size() > 0 || !surface) && body.given, "a composite has a body and samples");
    d.op.module = module, d.rules.aliases = aliases, d.op.symbol = symbol, d.op.args = args,
    d.op.results = results, d.op.recorded = recorded, d.op.surface = surface, d.op.moves = moves;
    d.rules.prepare = prepare.f, d.op.infer = infer.f, d.rules.body = body.f,
    d.rules.samples = samples;
    d.op.precision = precision_in(module, precision);
    d.rules.jvp = jvp.f, d.rules.vjp = vjp.f, d.op.batch = batch, d.rules.batch_rule = batch_rule.f;
    return d;
  }
};

/// Anything else: inference, and a loop nest, unless backends have kernels for it.
template <class A = NoAttrs>
struct Op {
  std::string_view doc;
  List<std::string_view, 6> aliases = {};
  std::string_view module = {};  // of Python
  std::string_view symbol = {};
  List<ArgDef, 6> args;
  List<std::string_view, 4> results = {};
  bool surface = true, moves = false, meets = false;
  PrepareRule<A> prepare = {};
  Rule<A, TypeList, Types> infer;
  Rule<A, void, loop::Lowering&> lower = {};
  // One of: linear with its adjoint; jvp; or why there is none.
  Linear linear = Linear::no;
  AdjointRule<A> adjoint = {};
  DerivativeRule<A> jvp = {};
  DerivativeRule<A> vjp = {};
  Gradient gradient = Gradient::by_rule;
  Precision precision = Precision::any;
  Batch batch = Batch::family;
  BatchRule<A> batch_rule = {};
  List<Sample, 8> samples = {};

  constexpr Definition define(std::string_view name) const {
    Definition d = start<A>(Family::general, name, doc);
    must(samples.size() > 0 || !surface, "an op has samples");
    must(infer.given, "a general op says what types it gives");
    must(gradient != Gradient::by_rule || linear != Linear::no || jvp.given || vjp.given,
         "a general op says how it changes with its operands");
    must(batch_rule.given || batch != Batch::family || args.size() == 0,
         "a general op says how it is batched: by a rule, aligned, or in a loop");
    must(linear == Linear::no || adjoint.given || vjp.given, "a linear op has an adjoint");
    d.op.module = module, d.rules.aliases = aliases, d.op.symbol = symbol, d.op.args = args;
    d.op.results = results, d.op.surface = surface, d.op.moves = moves, d.op.meets = meets;
    d.rules.prepare = prepare.f;
    d.op.infer = infer.f, d.rules.lower = lower.f;
    d.rules.samples = samples;
    d.op.linear = linear, d.rules.adjoint = adjoint.f, d.rules.jvp = jvp.f, d.rules.vjp = vjp.f;
    d.op.gradient = gradient, d.op.batch = batch_rule.given ? Batch::custom : batch;
    d.rules.batch_rule = batch_rule.f, d.op.precision = precision_in(module, precision);
    return d;
  }
};

}  // namespace tn::ops
