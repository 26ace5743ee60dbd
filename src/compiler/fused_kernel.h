#pragma once
// FusedKernel: the loop nest of a cluster. Values are computed on demand, from what is stored down
// to what is read, each at the coordinates where it is needed.
#include "compiler/fusion.h"
#include "compiler/plan_builder.h"

namespace tn {

class FusedKernel {
 public:
  /// `numbers`: see numbers_of.
  FusedKernel(const Graph& graph, const Fusion& fusion, const Cluster& cluster,
              std::span<const Home> numbers);

  /// Over the cluster's flat axes, refined.
  loop::Kernel whole();
  /// Over batch, row and column of the hero's result; nothing when an index is not linear in them.
  std::optional<loop::Kernel> tile();
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
  Element fold(const GraphOp& op, const Coords& at);
  Element nest(const GraphOp& op, const Coords& at);
  Element load(Val v, const Coords& at);
  Element rounded(const Element& made, DType dtype);
  void store(Val v, const Coords& at);
  int parameter(Val v, bool written);
  bool is_member(int op) const;
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }

  const Graph& graph_;
  const Fusion& fusion_;
  const Cluster& cluster_;
  std::span<const Home> numbers_;
  loop::Builder b_;
  std::map<std::pair<Val, Coords>, Element> made_;
};

}  // namespace tn
