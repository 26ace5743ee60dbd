#pragma once
// Graphs on random values, run in the ways that must agree, and results as bytes.
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tenon/transforms.h"

namespace tn {

/// What a function of f32 tensors with these shapes records.
Graph traced(const Function& f, const std::vector<Shape>& shapes);

/// Values in [lo, hi], whole numbers for integer types.
Tensor random_tensor(TypeRef type, uint64_t seed, double lo = -2, double hi = 2);
/// One tensor for each input of the graph.
Tensors random_inputs(const Graph& graph, uint64_t seed);

/// The elements of a result, for comparisons of bits.
std::string bytes_of(const Tensor& x);
std::vector<std::string> bytes_of(const Tensors& list);

struct Plan;
/// The outputs of the graph, computed by a plan that was compiled from it.
Tensors run_plan(const Plan& plan, const Graph& graph, const Tensors& in);
/// The outputs of the graph, compiled as it is.
std::vector<std::string> run_compiled(const Graph& graph, const Tensors& in);
/// The outputs of the graph, recorded again and evaluated at once.
std::vector<std::string> run_replayed(const Graph& graph, const Tensors& in);
/// The outputs of the graph, recorded again and evaluated op by op.
Tensors values_eagerly(const Graph& graph, const Tensors& in);
std::vector<std::string> run_eagerly(const Graph& graph, const Tensors& in);

/// Calls the ops of a function's text one by one as a user does: attributes need not be canonical,
/// ops need not be recorded ones. Returns the results of the last op.
Tensors call_text(std::string_view text);

}  // namespace tn
