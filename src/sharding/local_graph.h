#pragma once
// The graph of one worker under way: values in the layouts in which the workers hold them, and the
// collectives between layouts.
#include "ir/decision.h"
#include "ir/graph.h"
#include "ir/mesh_layout.h"
#include "loop/op.h"

namespace tn::sharding {

/// A value as workers hold it. Where it is partial, a worker holds the terms of its own parts: one
/// value for each combination of them, row-major over the partial axes of the mesh. Terms of sums
/// and products of narrow floats are f32, and rounded once when all are folded.
struct Form {
  Layout layout;
  loop::Monoid monoid = loop::Monoid::add;  // what folds the terms
  std::vector<Val> parts;
};

class LocalGraph {
 public:
  LocalGraph(const Mesh& mesh, Decisions* decisions) : mesh_(mesh), decisions_(decisions) {}

  Graph graph;
  Loc loc;                  // of the op for which ops are added
  std::string_view reader;  // its name, for reports
  int64_t use = 0;          // of the gathers that are added
  int transitions = 0;      // those that workers communicate in, on a mesh of any size

  TypeRef type(Val v) const { return graph.types[static_cast<size_t>(v)]; }
  const Shape& shape(Val v) const { return type(v)->shape; }
  /// Adds an op with types inferred and returns its first result.
  Val add(const OpDef& op, const Attrs* attrs, std::span<const Val> in);
  template <class A>
  Val add(const OpDef& op, const A& attrs, std::initializer_list<Val> in) {
    return add(op, intern(*op.attrs, &attrs), {in.begin(), in.size()});
  }
  /// The ops of a graph on these inputs; its first output.
  Val add_all(const Graph& from, std::span<const Val> in);
  Val reshape(Val x, const Shape& shape);
  /// Part `index` of `count` of a digit: the dimension counts as [radix, count, rest].
  Val take_part(Val x, Digit digit, int64_t count, int64_t index);

  Val as_type(Val v, DType dtype);

  /// `form` of a value of this global type in another layout. Partial axes of `target` stay.
  Form moved(const Form& form, TypeRef type, const Layout& target);
  /// Terms of all workers along an axis folded, one of each: whole, or divided at `to`.
  Form folded_by_all(Form made, int axis, const Shape& shape, Digit to);
  /// How many transitions that takes.
  int distance(const Form& form, const Layout& target) const;

 private:
  Form each(Form form, const OpDef& op, const Attrs* attrs);
  Form divided(Form form, const OpDef& op, int axis, Digit digit);
  Form gathered(Form form, int axis);
  Form exchanged(Form form, int axis, Digit to);
  /// The terms of one axis folded: all parts of a worker first, then those of the workers.
  Form resolved(const Form& form, int axis, const Shape& shape, Digit to);
  /// The folds of ranges of parts that all workers along an axis hold, in the order of the parts.
  std::vector<Val> roots_of_all(std::span<const Val> roots, int axis);
  Val folded(std::vector<Val> terms, loop::Monoid monoid);
  void report(const OpDef& op, int axis, Val v);

  const Mesh& mesh_;
  Decisions* decisions_;
};

}  // namespace tn::sharding
