#pragma once
// The arguments or results of a transformed function: a tree, and the tensors among its leaves.
#include <functional>

#include "trees/trees.h"

namespace tn::python {

/// Data of another library, which becomes a tensor. Text has a buffer too, but is none.
bool is_array(PyObject* object);

/// Which numbers among the leaves become float tensors. `stay_known`: those given at run time are
/// tensors as they are.
enum class Numbers : uint8_t { are_tensors, first, stay, stay_known };

struct TensorTree {
  using NameOf = std::function<std::string(size_t leaf)>;

  Leaves leaves;
  Leaves modules;  // weak references
  Structure structure;
  Tensors tensors;         // arrays of other libraries become tensors too
  std::vector<size_t> at;  // of each tensor among the leaves

  TensorTree(PyObject* tree, Numbers numbers, Structure::Look look = Structure::Look::trees);
  /// The tree with other tensors in place of its own.
  nb::object with(const Tensors& others) const;
  /// The same for the arguments of a function. `stand_ins` are those of `modules`.
  nb::object arguments(const Tensors& others, StandIns& stand_ins) const;
  /// The same with None for null tensors, and for leaves that are no tensors.
  nb::object derivatives(const Tensors& others) const;
  /// One tensor per tensor of this tree, from a tree like this one in which None anywhere stands
  /// for null tensors. The error for another structure starts with `subject`.
  Tensors matching(PyObject* tree, std::string_view subject) const;
  /// Fails if some leaf is no tensor.
  void check_whole(std::string_view transform, const NameOf& name) const;

 private:
  Leaves leaves_with(const Tensors& others) const;
};

}  // namespace tn::python
