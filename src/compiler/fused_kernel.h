#pragma once
// FusedKernel: the loop nest of a cluster. Values are computed on demand, from what is stored down
// to what is read, each at the coordinates where it is needed.
#include "compiler/fusion.h"
#include "compiler/loop_nest.h"
#include "compiler/plan_builder.h"

namespace tn {

/// The op's own loop nest.
loop::Kernel nest_of(const Graph& graph, const GraphOp& op);

class FusedKernel {
 public:
  /// `homes` of numbers (numbers_of), or of all values where the fusion is immediate.
  FusedKernel(const Graph& graph, const Fusion& fusion, const Cluster& cluster,
              std::span<const Home> homes);

  /// Over the cluster's flat axes, refined; of an immediate one over the loops that the strides of
  /// what it reads leave.
  loop::Kernel whole();
  /// Over batch, row and column of the hero's result; nothing when an index is not linear in them.
  std::optional<loop::Kernel> tile(const Target& target);
  /// Of a view or a number: its elements in row-major order.
  loop::Kernel copy(Val v);

  /// By buffer of the kernel: the value that lies in it, row-major from the start.
  std::vector<Val> values;
  std::vector<int32_t> scalars;  // of the step, in the kernel's order

 private:
  using Element = loop::Element;
  /// Everything but `there`, which is in memory already.
  void build(const PolyTable::AtomMap& axes, Val there);
  Element value(Val v, const Coords& at);
  Element compute(const GraphOp& op, const Coords& at);
  static Element applied(const GraphOp& op, std::span<const Element> in);
  Element fold(const GraphOp& op, const Coords& at);
  Element nest(const GraphOp& op, const Coords& at);
  Element load(Val v, const Coords& at);
  Element rounded(const Element& made, DType dtype);
  void store(Val v, const Coords& at);
  loop::Kernel finish();
  int parameter(Val v, bool written);
  bool is_member(int op) const;
  /// Whether it is a view to look through. A stored view is read from its own buffer.
  bool is_transparent(const GraphOp& op) const;
  void add_loops(const Shape& domain, const Axes& reduced, std::span<const Val> reads);
  /// Where operand `v` of `op` is needed for its result at `at`; and what a reduction folds.
  Coords operand_at(Val v, const GraphOp& op, const Coords& at);
  Coords folded_at(const GraphOp& op, const Coords& at);
  const Home& home(Val v) const { return homes_[static_cast<size_t>(v)]; }
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }

  const Graph& graph_;
  const Fusion& fusion_;
  const Cluster& cluster_;
  std::span<const Home> homes_;
  loop::Builder b_;
  std::optional<LoopNest> nest_;    // of an immediate one: then there are no coordinates
  loop::AxisSet folded_ = 1u << 1;  // axes
  std::map<std::pair<Val, Coords>, Element> made_;
};

}  // namespace tn
