#pragma once
// Bodies: the graphs that ops have as attributes (call, cond, scan). Interned, and kept as long as
// something holds them (ir/interned.h), together with the graphs that follow from them.
#include <map>

#include "base/function_ref.h"
#include "ir/graph.h"
#include "ir/interned.h"

namespace tn {

using Mask = std::vector<bool>;

/// A graph that follows from another.
struct Derived {
  GraphRef graph;
  Mask outputs;    // which outputs of the other its further (or only) outputs belong to
  Tensors leaves;  // what rules of custom functions close over: its last inputs

  /// Its outputs, recorded again.
  Tensors on(Tensors in) const;
};

struct Body {
  Graph graph;
  uint64_t hash;  // over structure: ops, attributes, types, numbers; not over names and places
  Held held;      // what the graph refers to

  struct KeptDerived {
    Derived made;
    Hold<Body> hold;
  };
  using DerivedTable = std::map<std::vector<uint64_t>, KeptDerived>;
  mutable DerivedTable derived = {};  // by key; with no graph where that is this one
};

inline const Graph& GraphRef::operator*() const { return body->graph; }

/// The one body of this structure. Its inputs are named x0, x1, …
GraphRef intern(Graph graph);

/// The graphs among attributes, in order.
std::vector<GraphRef> bodies_of(const Attrs* attrs);
inline std::vector<GraphRef> bodies_of(const GraphOp& op) { return bodies_of(op.attrs); }
/// The attributes with `f` of each graph in its place.
const Attrs* with_bodies(const Attrs* attrs, FunctionRef<GraphRef(GraphRef)> f);

/// Parameters of the types of the graph's inputs.
Tensors params_for(const Graph& graph);
/// Which tensors are not null.
Mask mask_of(const Tensors& list);
/// Those in `mask`, in order.
Tensors chosen(const Tensors& list, const Mask& mask);
/// The other way: null where `mask` does not hold.
Tensors spread(const Tensors& dense, const Mask& mask);

/// The result of `make`, cached with `from` by `key`: words that identify what is derived, and how.
/// It is not cached if it has leaves, which must not be kept, or if it used rules of custom
/// functions, which may give other results later.
Derived derived(GraphRef from, const std::vector<uint64_t>& key, FunctionRef<Derived()> make);
/// How often this thread looked up the rules of a custom function.
inline thread_local uint64_t rules_asked_for = 0;
/// Adds a mask to a key.
void add_mask(std::vector<uint64_t>& key, const Mask& mask);

// Implemented by transforms/, for the rules of ops that have graphs. Null tensors are zeros.

/// Graphs from parameters to what was recorded since them, or since `start`, and the tensors from
/// outside that this took: each graph takes all of them behind the parameters.
struct Closed {
  std::vector<GraphRef> graphs;
  Tensors leaves;
};
Closed graphs_between(const Tensors& params, std::initializer_list<Tensors> outputs,
                      uint64_t start = UINT64_MAX);

/// From inputs, then tangents of those in `given`, to outputs, then tangents of those that have
/// any.
Derived jvp_graph(GraphRef graph, const Mask& given);
/// From inputs, then cotangents of the outputs in `given`, to cotangents of those inputs in
/// `wanted` that have any: `outputs` is a mask of inputs here.
Derived vjp_graph(GraphRef graph, const Mask& wanted, const Mask& given);
/// The graph without ops that are run for their effects only. Effects belong to the op that is
/// differentiated; recomputing its values does not repeat them.
GraphRef without_effects(GraphRef graph);
/// On a batch: inputs in `batched` have it as axis 0, and so do the outputs in `outputs`.
Derived batch_graph(GraphRef graph, const Mask& batched, Dim size);

}  // namespace tn
