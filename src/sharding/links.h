#pragma once
// Links: which digits of an op's operands and results are one loop, so that a mesh axis which
// divides one of them divides them all.
#include <memory>
#include <optional>

#include "ir/graph.h"
#include "ir/mesh_layout.h"
#include "loop/op.h"
#include "sharding/inner_graph.h"

namespace tn::sharding {

/// An op with the types of its slots: operands first, then results.
struct OpView {
  const OpDef& op;
  const void* attrs;
  std::vector<TypeRef> types;
  int ins;
  bool adds_to_zeros = false;  // the first operand is +0 everywhere

  int outs() const { return static_cast<int>(types.size()) - ins; }
  const Shape& shape(int slot) const { return types[static_cast<size_t>(slot)]->shape; }
  int rank(int slot) const { return shape(slot).rank(); }
  template <class A>
  const A& as() const {
    return *static_cast<const A*>(attrs);
  }
};

/// A dimension of a slot. A digit there at radix r is at position r·times of the loop.
struct Place {
  int slot, dim;
  int64_t times = 1;
};

/// Places that are divided together. Slots without a place take part whole. If it folds, results
/// have no place: each worker computes a term of the fold. `in_blocks`: by digits of radix 1 alone.
struct Loop {
  std::vector<Place> places;
  std::optional<loop::Monoid> fold = {};
  bool in_blocks = false;
};

/// The loops of an op that is no composite: by its family, or by the table of general ops. An op
/// without loops is computed whole.
std::vector<Loop> loops_of(const OpView& op);
std::vector<Loop> loops_of_general(const OpView& op);

/// What one mesh axis divides in an op.
struct Reach {
  std::vector<Digit> slots;  // of operands, then results
  std::optional<loop::Monoid> fold = {};
  std::vector<Digit> inside = {};  // of every value of the graphs inside the op
  friend bool operator==(const Reach&, const Reach&) = default;
};

/// The links of a graph, made when they are asked for.
class Links {
 public:
  explicit Links(const Graph& graph);
  ~Links();

  /// What a mesh axis with `parts` divides in the op when it divides `slot` at `from`; nothing when
  /// the op cannot be divided there.
  std::optional<Reach> follow(int op, int slot, Digit from, int64_t parts);
  /// The value in a slot of an op.
  Val value(int op, int slot) const;
  int slots(int op) const { return op_at(op).ins + op_at(op).outs; }
  /// What is inside an op; null where nothing is.
  const InnerGraph* inner(int op);

 private:
  struct Inside;
  struct Known {
    bool is_made = false;
    std::vector<Loop> loops;
    std::unique_ptr<Inside> inside;
  };
  const GraphOp& op_at(int op) const { return graph_.ops[static_cast<size_t>(op)]; }
  OpView view(int op) const;
  Known& known(int op);
  std::optional<Reach> follow_inside(int op, int slot, Digit from, int64_t parts);
  bool is_zero(Val v) const;

  const Graph& graph_;
  std::vector<Known> known_;
  std::vector<int> makers_;  // of every value, by op; -1 for inputs
};

/// The ops that touch every value.
std::vector<std::vector<int>> ops_at_values(const Graph& graph);

}  // namespace tn::sharding
