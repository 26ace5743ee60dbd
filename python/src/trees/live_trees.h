#pragma once
// Trees that are mutated in place: lists, dicts, dataclasses, objects with a `state`
// (modules, optimizers) and classes whose trees can be assigned to by index, such as random.state.
#include "trees/trees.h"

namespace tn::python {

/// Puts leaves into `tree`, which becomes one of this structure: containers stay the objects they
/// are, tuples are replaced in what holds them. A null leaf leaves what is there, and keys of dicts
/// that the structure has not stay unless they are among those `removed`. `what` names the tree in
/// errors: "compile: inputs".
void assign_leaves(PyObject* tree, const Structure& structure, std::span<const nb::object> leaves,
                   std::string_view what, std::span<const nb::object> removed = {});

/// By node of `after`: a list of the keys that a dict had in this place of `before` and has not any
/// more, or null.
std::vector<nb::object> removed_keys(const Structure& before, const Structure& after);

/// By leaf: whether its container is mutated in place. A tuple is replaced instead, and the program
/// may still hold the old one with its leaves.
std::vector<bool> held_by_containers(const Structure& structure);

/// What the containers of trees hold, put back at the end.
class Contents {
 public:
  Contents() = default;
  Contents(const Contents&) = delete;
  ~Contents();
  void remember(PyObject* tree);

 private:
  struct Container {
    const TreeType* type;
    nb::object object, copy;
  };
  std::vector<Container> all_;
};

}  // namespace tn::python
