#pragma once
// Graphs as one readable Python file that needs NumPy, PyTorch or JAX and nothing else.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "tenon/callback.h"

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
  Callback<std::string(Loc)> section = {};
};

/// Inputs that functions do not take: they know them.
struct Constants {
  std::string file = {};                 // "model.safetensors", beside the Python file
  std::vector<std::string> inputs = {};  // those that are read from there, by their names
  struct Values {
    std::string input;
    std::vector<Scalar> elements;
  };
  std::vector<Values> values = {};  // small ones, written in the function
};

/// "numpy", "torch", "jax".
std::vector<std::string> source_targets();

/// The file. An op without a form is an error that names it and the target.
std::string python_source(std::span<const Function> functions, std::string_view target,
                          const Constants& constants = {});

}  // namespace tn::source
