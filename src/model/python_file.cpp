#include "model/python_file.h"

#include <algorithm>

#include "backend/source/python_source.h"
#include "base/error.h"
#include "eval/eval.h"
#include "functions/traced.h"
#include "ir/rewrite.h"
#include "ir/sizes.h"
#include "observe/stage_text.h"

namespace tn::model {
namespace {

/// A name that Python may have, none of `taken`.
std::string python_name(std::string_view name, std::vector<std::string>& taken) {
  std::string made(name);
  for (char& c : made)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (std::isdigit(static_cast<unsigned char>(made[0]))) made = "x" + made;
  while (std::ranges::count(taken, made)) made += "_";
  return taken.emplace_back(std::move(made));
}

/// What the functions of a model record, as graphs with names.
class Recorder {
 public:
  Recorder(const Functions& functions, const Values& fixed)
      : functions_(functions), model_(functions.model()), fixed_(fixed) {}

  Graph forward() {
    Graph graph = traced(given_types(), [&](const Tensors& args) {
      Tensors made = functions_.forward(given(args));
      made.resize(results());
      return made;
    });
    return graph;
  }

  Graph gradients() {
    std::vector<TypeRef> types = given_types();
    size_t count = types.size();
    for (size_t o = 0; o < functions_.outputs().size(); ++o)
      if (has_gradient(o)) types.push_back(output_type(o));
    return traced(std::move(types), [&](const Tensors& args) {
      Tensors cotangents;
      size_t next = count;
      for (size_t o = 0; o < functions_.outputs().size(); ++o)
        cotangents.push_back(has_gradient(o) ? args[next++] : Tensor());
      return functions_.gradients(given(args), cotangents);
    });
  }

  /// Names of what the functions return.
  /// The printer makes identifiers of them.
  std::vector<std::string> result_names(bool gradients) const {
    std::vector<std::string> names = functions_.outputs();
    if (model_.training)
      for (const std::string& name : functions_.states()) names.push_back("new_" + name);
    if (gradients)
      for (const Given& g : functions_.given())
        if (g.trainable) names.push_back("gradient_" + g.name);
    return names;
  }

  Values constants;

 private:
  TypeRef output_type(size_t o) const { return model_.types[model_.flat.outputs[o]]; }
  bool has_gradient(size_t o) const { return is_inexact(output_type(o)->dtype); }

  size_t results() const {
    return functions_.outputs().size() + (model_.training ? functions_.states().size() : 0);
  }

  std::vector<TypeRef> given_types() const {
    std::vector<TypeRef> types;
    for (const Given& g : functions_.given())
      if (!fixed_.contains(g.name)) types.push_back(g.type);
    return types;
  }

  Tensors given(const Tensors& args) const {
    Tensors all;
    size_t next = 0;
    for (const Given& g : functions_.given()) {
      auto fixed = fixed_.find(g.name);
      all.push_back(fixed == fixed_.end() ? args[next++] : fixed->second);
    }
    return all;
  }

  Graph traced(std::vector<TypeRef> types, const Function& f) {
    Traced traced = trace(f, types, model_.sizes);
    flush(traced.leaves);
    Graph graph = substitute(traced.graph, solve(traced.guards).replacements);
    graph.outputs.resize(traced.results);
    std::vector<std::string> names;
    for (const Given& g : functions_.given())
      if (!fixed_.contains(g.name)) python_name(g.name, names);
    for (size_t o = 0; names.size() < types.size(); ++o)
      if (has_gradient(o)) python_name("gradient_" + functions_.outputs()[o], names);
    for (const Tensor& leaf : traced.leaves) add_constant(leaf, names);
    graph.input_names = std::move(names);
    return graph_for_source(graph);
  }

  void add_constant(const Tensor& leaf, std::vector<std::string>& names) {
    std::string name = name_of_constant(leaf);
    auto known = std::ranges::find_if(constants, [&](const auto& c) {
      return slot_of(c.second).data == slot_of(leaf).data &&
             slot_of(c.second).offset == slot_of(leaf).offset;
    });
    if (known != constants.end())
      names.push_back(known->first);
    else
      constants.emplace(python_name(name, names), leaf);
  }

  std::string name_of_constant(const Tensor& leaf) const {
    auto is_it = [&](const Tensor& value) {
      return value.defined() && slot_of(value).data == slot_of(leaf).data &&
             slot_of(value).offset == slot_of(leaf).offset;
    };
    for (const auto& [name, value] : fixed_)
      if (is_it(value)) return name;
    for (const FlatWire& wire : model_.flat.wires)
      if (is_it(wire.value)) return wire.name;
    return format("constant_{}", constants.size());
  }

  const Functions& functions_;
  const Resolved& model_;
  const Values& fixed_;
};

/// The blocks that were added at a place: ops have it.
std::string blocks_at(const FlatModel& flat, Loc loc) {
  std::vector<std::string> paths;
  for (const FlatBlock& block : flat.blocks)
    if (block.loc.bits == loc.bits) paths.push_back(block.path);
  constexpr size_t kMost = 3;
  if (paths.size() > kMost) paths = {paths.front(), "…", paths.back()};
  return format("{}", join(paths, ", "));
}

}  // namespace

PythonFile python_file(const Functions& functions, std::string_view target, const Values& fixed,
                       const std::string& constants_file) {
  const FlatModel& flat = functions.model().flat;
  // Assumptions of the trace about open sizes are decided again when types are inferred again.
  SizeHints sizes(functions.model().sizes);
  Recorder recorder(functions, fixed);
  auto section = [&](Loc loc) { return blocks_at(flat, loc); };
  Graph forward = recorder.forward(), gradients;
  std::vector<source::Function> made{{.name = "forward",
                                      .graph = &forward,
                                      .doc = format("The outputs of {}.", flat.name),
                                      .results = recorder.result_names(false),
                                      .section = section}};
  if (functions.model().training) {
    gradients = recorder.gradients();
    made.push_back({.name = "gradients",
                    .graph = &gradients,
                    .doc = "The same, then the gradients of what is trainable.",
                    .results = recorder.result_names(true),
                    .section = section});
  }
  source::Constants beside;
  if (!recorder.constants.empty()) beside.file = constants_file;
  for (const auto& [name, value] : recorder.constants) beside.inputs.push_back(name);
  std::string text = source::python_source(made, target, beside);
  return {std::move(text), std::move(recorder.constants)};
}

}  // namespace tn::model
