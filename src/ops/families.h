#pragma once
// The five builders. An op is `constinit const OpDef name = Family<Attrs>{.name = …};`: what the
// author does not write follows from the family. Members without a default are required.
#include "ir/emit.h"
#include "ir/opdef.h"
#include "loop/lowering.h"

namespace tn::ops {

using loop::S;
using loop::Z;
namespace sc = loop::sc;

/// A rule written as a function: `.infer = rule<infer_matmul>`.
template <auto kFunction>
inline constexpr auto rule =
    [](auto&&... args) { return kFunction(std::forward<decltype(args)>(args)...); };

/// The attributes a rule is called with. Ops without any are called with null.
template <class A>
const A& attrs_of(const void* a) {
  static constexpr A kNone{};
  return std::is_empty_v<A> ? kNone : *static_cast<const A*>(a);
}

/// A rule: a lambda without captures that takes the attributes first, erased to a function pointer.
template <class A, class R, class... P>
struct Rule {
  R (*f)(const void*, P...) = nullptr;
  bool given = false;  // sanitizers do not let a constant compare function pointers
  constexpr Rule() = default;
  template <class L>
  constexpr Rule(L) {
    static_assert(std::is_empty_v<L>, "a rule is a lambda without captures, or rule<function>");
    static_assert(std::is_invocable_r_v<R, L, const A&, P...>, "a rule takes (const Attrs&, …)");
    given = true;
    f = [](const void* a, P... p) -> R { return L{}(attrs_of<A>(a), static_cast<P>(p)...); };
  }
};

/// The surface rule: may change attributes and operands before the op is recorded.
template <class A>
struct PrepareRule {
  void (*f)(void*, Tensors&) = nullptr;
  constexpr PrepareRule() = default;
  template <class L>
  constexpr PrepareRule(L) {
    static_assert(std::is_invocable_v<L, A&, Tensors&>, "prepare takes (Attrs&, Tensors&)");
    f = [](void* a, Tensors& in) { L{}(*static_cast<A*>(a), in); };
  }
};

/// A function of scalars, with or without the attributes in front. The arity is the lambda's.
template <class A, class V>
struct ScalarRule {
  V (*f)(const void*, const V*) = nullptr;
  int arity = 0;
  constexpr ScalarRule() = default;
  template <class L>
  constexpr ScalarRule(L) {
    static_assert(std::is_empty_v<L>, "a rule is a lambda without captures, or rule<function>");
    if constexpr (std::is_invocable_v<L, V>)
      f = [](const void*, const V* v) -> V { return L{}(v[0]); }, arity = 1;
    else if constexpr (std::is_invocable_v<L, V, V>)
      f = [](const void*, const V* v) -> V { return L{}(v[0], v[1]); }, arity = 2;
    else if constexpr (std::is_invocable_v<L, V, V, V>)
      f = [](const void*, const V* v) -> V { return L{}(v[0], v[1], v[2]); }, arity = 3;
    else if constexpr (std::is_invocable_v<L, const A&, V>)
      f = [](const void* a, const V* v) -> V { return L{}(attrs_of<A>(a), v[0]); }, arity = 1;
    else if constexpr (std::is_invocable_v<L, const A&, V, V>)
      f = [](const void* a, const V* v) -> V { return L{}(attrs_of<A>(a), v[0], v[1]); }, arity = 2;
    else
      static_assert(sizeof(L) == 0,
                    "a scalar rule takes one to three scalars, after the attributes if any");
  }
};

/// A kernel of the runtime.
struct RunRule {
  void (*f)(const LibraryCall&) = nullptr;
  bool given = false;
  constexpr RunRule() = default;
  constexpr RunRule(void (*kernel)(const LibraryCall&)) : f(kernel), given(true) {}
};

/// Refuses a definition at compile time, with a reason the compiler prints.
constexpr void must(bool holds, const char* reason) {
  if (!holds) throw reason;
}

template <class A>
constexpr OpDef start(Family family, std::string_view name, std::string_view doc) {
  must(!name.empty() && !doc.empty(), "an op has a name and a doc");
  OpDef op;
  op.family = family, op.name = name, op.doc = doc, op.attrs = &attr_kind<A>;
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
    return op;
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
  RunRule run = {};  // for complex operands of monoids that do not split into parts
  List<Sample, 8> samples;

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::reduction, name, doc);
    must(samples.size() > 0, "an op has samples");
    op.aliases = aliases, op.args = {"x"}, op.types = types, op.monoid = monoid;
    op.reduce_axes = [](const void* a, Axes& axes, bool& keepdims) {
      axes = static_cast<const A*>(a)->axis.value, keepdims = static_cast<const A*>(a)->keepdims;
    };
    op.operands = operands, op.prepare = prepare.f, op.run = run.f, op.samples = samples;
    return op;
  }
};

/// Reads its operand in another order: a view.
template <class A>
struct Movement {
  std::string_view name, doc;
  List<std::string_view, 6> aliases = {};
  PrepareRule<A> prepare = {};
  Rule<A, View, const Type&> view;
  List<Sample, 8> samples;

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::movement, name, doc);
    must(samples.size() > 0 && view.given, "a movement has a view and samples");
    op.aliases = aliases, op.args = {"x"}, op.prepare = prepare.f, op.view = view.f,
    op.samples = samples;
    return op;
  }
};

/// A name for other ops. When recorded it stays one node until a backend claims it or it is
/// expanded.
template <class A = NoAttrs>
struct Composite {
  std::string_view name, doc;
  List<std::string_view, 6> aliases = {};
  std::string_view symbol = {};
  List<ArgDef, 6> args;
  List<std::string_view, 4> results = {};
  bool recorded = false;
  PrepareRule<A> prepare = {};
  Rule<A, Tensors, const Tensors&> body;  // absent optional operands are null tensors
  List<Sample, 8> samples;

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::composite, name, doc);
    must(samples.size() > 0 && body.given, "a composite has a body and samples");
    op.aliases = aliases, op.symbol = symbol, op.args = args, op.results = results,
    op.recorded = recorded;
    op.prepare = prepare.f, op.body = body.f, op.samples = samples;
    return op;
  }
};

/// Anything else: inference, and a loop nest or a kernel of the runtime.
template <class A = NoAttrs>
struct Op {
  std::string_view name, doc;
  List<std::string_view, 6> aliases = {};
  std::string_view symbol = {};
  List<ArgDef, 6> args;
  List<std::string_view, 4> results = {};
  PrepareRule<A> prepare = {};
  Rule<A, TypeList, Types> infer;
  Rule<A, void, loop::Lowering&> lower = {};
  RunRule run = {};
  List<Sample, 8> samples;

  constexpr operator OpDef() const {
    OpDef op = start<A>(Family::general, name, doc);
    must(samples.size() > 0, "an op has samples");
    must(infer.given, "a general op says what types it gives");
    must(lower.given || run.given, "a general op has a loop nest or a kernel");
    op.aliases = aliases, op.symbol = symbol, op.args = args, op.results = results,
    op.prepare = prepare.f;
    op.infer = infer.f, op.lower = lower.f, op.run = run.f, op.samples = samples;
    return op;
  }
};

}  // namespace tn::ops
