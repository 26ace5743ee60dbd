#pragma once
// The five builders. An op is `constinit const OpDef name = Family<Attrs>{.name = …};`: what the
// author does not write follows from the family. Members without a default are required.
#include "ops/rules.h"

namespace tn::ops {

template <class A>
constexpr OpDef start(Family family, std::string_view name, std::string_view doc) {
  must(!name.empty() && !doc.empty(), "an op has a name and a doc");
  OpDef op;
  op.family = family, op.name = name, op.doc = doc, op.attrs = &attr_kind<A>;
  return op;
}

/// LAPACK and the Fourier transforms have no narrow types.
constexpr Precision precision_in(std::string_view module, Precision given) {
  bool wide = module == "linalg" || module == "fft";
  return wide && given == Precision::any ? Precision::full : given;
}

/// The runtime has no readers.
constexpr OpDef finish(OpDef op) {
  if (kRuntime) op.doc = {}, op.aliases = {}, op.samples = {}, op.partials = {};
  return op;
}

/// One scalar function, applied at every point; operands broadcast and are promoted.
template <class A = NoAttrs>
struct Elementwise {
  std::string_view name, doc;
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
  List<Sample, 8> samples;

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::elementwise, name, doc);
    must(samples.size() > 0, "an op has samples");
    must(scalar.arity > 0, "an elementwise op has a scalar rule");
    must(types.has(Kind::complex) == (complex.arity > 0),
         "complex types and the complex rule come together");
    op.aliases = aliases, op.symbol = symbol, op.types = types, op.operands = operands,
    op.result = result;
    op.args = args.size()         ? args
              : scalar.arity == 1 ? List<ArgDef, 6>{"x"}
                                  : List<ArgDef, 6>{"x1", "x2"};
    must(op.args.size() == scalar.arity, "as many names as operands");
    op.scalar = scalar.f, op.complex = complex.f, op.prepare = prepare.f, op.samples = samples;
    op.partials = partials_of<A>(partials), op.linear = linear, op.adjoint = adjoint.f;
    op.jvp = jvp.f, op.gradient = gradient, op.precision = precision;
    bool varies = types.has(Kind::floating) && result != ResultType::boolean;
    if (!varies) op.gradient = Gradient::zero;
    must(op.gradient != Gradient::by_rule || jvp.given || partials.size() == scalar.arity ||
             (linear != Linear::no && adjoint.given),
         "an elementwise op says how it changes with its operands");
    return finish(op);
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
  std::string_view name, doc;
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

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::reduction, name, doc);
    must(samples.size() > 0, "an op has samples");
    op.aliases = aliases, op.args = {"x"}, op.types = types, op.monoid = monoid;
    op.reduce_axes = [](const void* a, Axes& axes, bool& keepdims) {
      axes = static_cast<const A*>(a)->axis.value, keepdims = static_cast<const A*>(a)->keepdims;
    };
    op.operands = operands, op.prepare = prepare.f, op.samples = samples;
    op.linear = linear, op.adjoint = adjoint.f, op.jvp = jvp.f, op.gradient = gradient;
    bool accumulates = monoid == loop::Monoid::add || monoid == loop::Monoid::mul;
    if (accumulates) op.precision = Precision::full;
    return finish(op);
  }
};

/// Reads its operand in another order: a view.
template <class A>
struct Movement {
  std::string_view name, doc;
  List<std::string_view, 6> aliases = {};
  PrepareRule<A> prepare = {};
  Rule<A, View, const Type&> view;
  MovementAdjoint<A> adjoint;
  List<Sample, 8> samples;

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::movement, name, doc);
    must(samples.size() > 0 && view.given, "a movement has a view and samples");
    op.aliases = aliases, op.args = {"x"}, op.prepare = prepare.f, op.view = view.f,
    op.samples = samples, op.linear = Linear::each, op.adjoint = adjoint.f;
    return finish(op);
  }
};

/// A name for other ops. When recorded it stays one node until a backend claims it or it is
/// expanded.
template <class A = NoAttrs>
struct Composite {
  std::string_view name, doc;
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

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::composite, name, doc);
    must((samples.size() > 0 || !surface) && body.given, "a composite has a body and samples");
    op.module = module, op.aliases = aliases, op.symbol = symbol, op.args = args,
    op.results = results, op.recorded = recorded, op.surface = surface, op.moves = moves;
    op.prepare = prepare.f, op.infer = infer.f, op.body = body.f, op.samples = samples;
    op.precision = precision_in(module, precision);
    op.jvp = jvp.f, op.vjp = vjp.f, op.batch = batch, op.batch_rule = batch_rule.f;
    return finish(op);
  }
};

/// Anything else: inference, and a loop nest, unless backends have kernels for it.
template <class A = NoAttrs>
struct Op {
  std::string_view name, doc;
  List<std::string_view, 6> aliases = {};
  std::string_view module = {};  // of Python
  std::string_view symbol = {};
  List<ArgDef, 6> args;
  List<std::string_view, 4> results = {};
  bool surface = true, moves = false;
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

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::general, name, doc);
    must(samples.size() > 0 || !surface, "an op has samples");
    must(infer.given, "a general op says what types it gives");
    must(gradient != Gradient::by_rule || linear != Linear::no || jvp.given || vjp.given,
         "a general op says how it changes with its operands");
    must(batch_rule.given || batch != Batch::family || args.size() == 0,
         "a general op says how it is batched: by a rule, aligned, or in a loop");
    must(linear == Linear::no || adjoint.given || vjp.given, "a linear op has an adjoint");
    op.module = module, op.aliases = aliases, op.symbol = symbol, op.args = args;
    op.results = results, op.surface = surface, op.moves = moves, op.prepare = prepare.f;
    op.infer = infer.f, op.lower = lower.f;
    op.samples = samples;
    op.linear = linear, op.adjoint = adjoint.f, op.jvp = jvp.f, op.vjp = vjp.f;
    op.gradient = gradient, op.batch = batch_rule.given ? Batch::custom : batch;
    op.batch_rule = batch_rule.f, op.precision = precision_in(module, precision);
    return finish(op);
  }
};

}  // namespace tn::ops
