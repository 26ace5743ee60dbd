#pragma once
// Graphs as one readable Python file that needs NumPy, PyTorch or JAX and nothing else.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tn::source {

/// A graph as a function: it takes the graph's inputs by their names and returns its outputs, as a
/// tuple unless there is one.
struct Function {
  std::string name;
  const Graph* graph;
  std::string doc = {};
  std::vector<std::string> results = {};  // names of the outputs; without, ops name them
  /// What a place belongs to ("encoder.layers.0"): a comment where it changes. Without, the user's
  /// functions.
  std::function<std::string(Loc)> section = {};
};

/// Values in a safetensors file beside the Python file.
struct Constants {
  std::string file = {};                 // "model.safetensors"
  std::vector<std::string> inputs = {};  // inputs that functions read from there by these names
};

/// "numpy", "torch", "jax".
std::vector<std::string> source_targets();

/// The file. An op without a form is an error that names it and the target.
std::string python_source(std::span<const Function> functions, std::string_view target,
                          const Constants& constants = {});

}  // namespace tn::source
