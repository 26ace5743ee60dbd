#pragma once
// The rules of an op: lambdas without captures, erased to function pointers of OpDef and OpRules.
#include "ir/emit.h"
#include "ir/opdef.h"
#include "loop/lowering.h"

namespace tn::ops {

/// How rules are given tensors.
using T = const Tensor&;

/// Operand `i`, or a null tensor when it is left out.
inline Tensor optional(const Tensors& in, size_t i) { return i < in.size() ? in[i] : Tensor(); }

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

/// The derivative of an elementwise op in one operand, applied to a tangent or cotangent `t`:
/// (t), (t, operands…) or (t, operands…, result), with or without the attributes in front.
template <class A>
struct PartialRule {
  OpRules::Partial f = nullptr;
  constexpr PartialRule() = default;
  constexpr PartialRule(std::nullptr_t) {}  // zero
  template <class L>
  constexpr PartialRule(L) {
    static_assert(std::is_empty_v<L>, "a rule is a lambda without captures, or rule<function>");
    f = [](const void* a, T t, const Tensors& in, T out) -> Tensor {
      if constexpr (std::is_invocable_v<L, T>)
        return L{}(t);
      else if constexpr (std::is_invocable_v<L, T, T>)
        return L{}(t, in[0]);
      else if constexpr (std::is_invocable_v<L, T, T, T>)
        return L{}(t, in[0], in.size() > 1 ? in[1] : out);
      else if constexpr (std::is_invocable_v<L, T, T, T, T>)
        return L{}(t, in[0], in[1], in.size() > 2 ? in[2] : out);
      else if constexpr (std::is_invocable_v<L, T, T, T, T, T>)
        return L{}(t, in[0], in[1], in[2], out);
      else if constexpr (std::is_invocable_v<L, const A&, T>)
        return L{}(attrs_of<A>(a), t);
      else if constexpr (std::is_invocable_v<L, const A&, T, T>)
        return L{}(attrs_of<A>(a), t, in[0]);
      else if constexpr (std::is_invocable_v<L, const A&, T, T, T>)
        return L{}(attrs_of<A>(a), t, in[0], in.size() > 1 ? in[1] : out);
      else
        static_assert(sizeof(L) == 0, "a partial takes (t, operands…, result), t at least");
    };
  }
};

template <class A>
constexpr List<OpRules::Partial, 4> partials_of(const List<PartialRule<A>, 4>& rules) {
  List<OpRules::Partial, 4> out;
  out.count = rules.count;
  for (int i = 0; i < rules.count; ++i) out.items[i] = rules.items[i].f;
  return out;
}

/// The cotangent of operand k of a linear op.
template <class A>
using AdjointRule = Rule<A, Tensor, const Tensor&, const Tensors&, int>;
/// The same for a movement, from (ct, x): it brings elements back to where they came from.
template <class A>
struct MovementAdjoint {
  Tensor (*f)(const void*, const Tensor&, const Tensors&, int) = nullptr;
  constexpr MovementAdjoint() = default;
  template <class L>
  constexpr MovementAdjoint(L) {
    f = [](const void* a, const Tensor& ct, const Tensors& in, int) -> Tensor {
      return L{}(attrs_of<A>(a), ct, in[0]);
    };
  }
};
/// Tangents of results from tangents of operands, or cotangents the other way.
template <class A>
using DerivativeRule = Rule<A, Tensors, const Primal&, const Tensors&>;
template <class A>
using BatchRule = Rule<A, Tensors, const BatchCall&>;

/// Refuses a definition at compile time, with a reason the compiler prints.
constexpr void must(bool holds, const char* reason) {
  if (!holds) throw reason;
}

}  // namespace tn::ops
