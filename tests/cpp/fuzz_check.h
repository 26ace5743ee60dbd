#pragma once
// Ways to compute a graph that must give the same bits, and the smallest graph for which one does
// not.
#include <functional>

#include "ir/graph.h"

namespace tn {

struct Way {
  std::string name;
  std::function<Tensors(const Graph& graph, const Tensors& in)> run;
};

/// The interpreter on the graph as it is: what the others are compared with.
Tensors run_interpreted(const Graph& graph, const Tensors& in);
/// Op by op, more threads, higher efforts, without fusion.
std::vector<Way> ways();

/// "output 0: element 3 of f32[8] is 1.5, not 1.25", or nothing. One NaN is like another.
std::string first_difference(const Tensors& expected, const Tensors& actual);

/// A graph and inputs on which `way` fails: how, and the text of a graph that is as small as
/// cutting off ops makes it. Nothing when all is well.
std::string failure_of(const Way& way, const Graph& graph, const Tensors& in);

}  // namespace tn
