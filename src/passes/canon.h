#pragma once
// The graph that `canon` makes, and the rules it makes it by.
#include <optional>

#include "ir/rewrite.h"
#include "passes/pass.h"

namespace tn {

/// An op with one result that is about to be added.
struct Candidate {
  const OpDef* op;
  const Attrs* attrs;
  std::vector<Val> in;
  TypeRef type;
  Loc loc;

  template <class A>
  const A& as() const {
    const void* data = attrs->data;
    return *static_cast<const A*>(data);
  }
};

/// A graph in canonical form, under way: every op is added through the rules, so the operands that
/// a rule looks at are canonical already.
class Canon {
 public:
  explicit Canon(const Graph& graph);
  Graph run();

  Val add(const Candidate& op);
  /// `op` with its type inferred, at the place of the op whose rule is running.
  Val add(const OpDef& op, const Attrs* attrs, std::vector<Val> in);
  template <class A>
  Val add(const OpDef& op, const A& attrs, std::vector<Val> in) {
    return add(op, intern(*op.attrs, &attrs), std::move(in));
  }
  Val add_number(const Scalar& value, DType type);
  Val reshape(Val x, const Shape& shape);
  Val permute(Val x, const Perm& perm);
  /// `x` repeated to `shape`, with unit axes in front where it has fewer.
  Val repeat(Val x, const Shape& shape);

  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }
  const Shape& shape(Val v) const { return type(v)->shape; }
  /// The op that makes `v`, as a copy: adding ops moves them. Its `op` is null for an input.
  GraphOp maker(Val v) const;
  /// The first operand of the op that makes `v`, if that is `op`; kNoVal otherwise.
  Val operand_of(Val v, const OpDef& op) const;
  std::span<const Val> in(const GraphOp& op) const { return graph_.in(op); }
  /// The value without axes that `v` repeats, if it is one.
  Val repeated_scalar(Val v) const;
  /// The number that every element of `v` is, if it is known.
  std::optional<Scalar> number(Val v) const;
  /// Whether more than one op or output of the original graph reads `v`.
  bool is_shared(Val v) const { return uses_[static_cast<size_t>(v)] > 1; }

 private:
  Val append(const Candidate& op);
  void copy_op(const GraphOp& op);
  void keep(Val old, Val made);

  const Graph& from_;
  Graph graph_;
  GraphCopy copy_{from_, graph_};
  std::vector<int32_t> makers_, uses_, old_uses_;  // by value
  Loc loc_;
};

/// What the op is instead; kNoVal where the rule does not apply.
using CanonRule = Val (*)(Canon& canon, const Candidate& op);

// The rules by what they are about, in the order they are tried.
std::span<const CanonRule> view_rules();
std::span<const CanonRule> elementwise_rules();
std::span<const CanonRule> reduction_rules();
std::span<const CanonRule> dot_rules();
/// The rule for a permute of a dot, and that for a sum of parts.
Val swap_dot(Canon& canon, const Candidate& op);
Val join_parts(Canon& canon, const Candidate& op);

/// Whether the shapes differ in axes of extent 1 only.
bool same_but_units(const Shape& a, const Shape& b);
bool is_ascending(const Axes& axes);

}  // namespace tn
