#pragma once
// Trees of Python objects: lists, tuples, dicts, dataclasses and registered classes around leaves.
#include "core.h"

namespace tn::python {

using Leaves = std::vector<nb::object>;
class StandIns;

/// How the objects of one Python class are taken apart and put together.
struct TreeType {
  enum class Kind : uint8_t {
    leaf,
    none,
    list,
    tuple,
    named_tuple,
    dict,
    dataclass,
    object,
    stateful  // where containers are looked into to change them: the tree is in `state`
  };
  Kind kind = Kind::leaf;
  nb::object cls = {};
  nb::object flatten = {}, unflatten = {};  // object: x -> (tree, static), (static, tree) -> x
  nb::object fields = {}, constants = {};  // dataclass: names of those with trees, of those without
  bool is_module = false;                  // object
};
using TreeKind = TreeType::Kind;

/// What a tree is apart from its leaves. Nodes come in preorder; the entries of a dict in the order
/// of the dict, so that trees of one structure have matching lists of leaves.
class Structure {
 public:
  struct Node {
    const TreeType* type;
    uint32_t children = 0;           // directly below
    uint32_t leaves = 1, nodes = 1;  // in this subtree, itself included
    nb::object data = {};            // dict: its keys; dataclass and object: what is not a tree
  };
  /// Chooses objects that stand for a whole subtree: None for zeros, a number for an axis.
  using StandsForAll = bool (*)(PyObject*);

  /// What is looked into. `live`: also what holds trees in `state`; see live_trees.h. `arguments`:
  /// trees that a function gets made anew, so that nothing else may be in them.
  enum class Look : uint8_t { trees, live, arguments };

  /// Takes `tree` apart and appends its leaves, and weak references to its modules.
  Structure(PyObject* tree, Leaves& leaves, Look look = Look::trees, Leaves* modules = nullptr);

  const std::vector<Node>& nodes() const { return nodes_; }
  size_t leaves() const { return nodes_[0].leaves; }
  /// `stand_ins`: of an argument, whose modules stand for those that were given.
  nb::object build(std::span<const nb::object> leaves, StandIns* stand_ins = nullptr) const;
  /// The leaves of a tree like this one; keys of dicts in any order, lists and tuples alike. The
  /// error for another structure starts with `subject`: "vjp: cotangents and results differ".
  Leaves match(PyObject* tree, StandsForAll stands_for_all, std::string_view subject) const;
  /// Where a leaf is: `['w'][0]`; `first` in place of the first index: `params['w']`.
  std::string path(size_t leaf, const std::vector<std::string>& first = {}) const;
  std::string path_of_node(size_t node, const std::vector<std::string>& first = {}) const;
  /// `{'w': [*, *], 'b': None}`
  std::string text() const;

  bool operator==(const Structure& other) const;
  size_t hash() const;

 private:
  std::vector<Node> nodes_;
};

/// The leaves of a tree, where its structure is not wanted.
Leaves leaves_of(PyObject* tree, Structure::Look look = Structure::Look::trees);
/// The tensors among them.
Tensors tensors_in(PyObject* tree, Structure::Look look = Structure::Look::trees);

/// The tree of a node and what is below it.
nb::object build_tree(const Structure::Node* root, std::span<const nb::object> leaves);

const TreeType* tree_type(PyObject* object);
/// The same for trees that are looked into to change them.
const TreeType* live_type(PyObject* object);
/// Objects of `cls` are trees: `flatten(x)` gives (tree, static), `unflatten(static, tree)` is x.
void register_tree(nb::handle cls, nb::object flatten, nb::object unflatten);
/// Objects of the class, a subclass of dict, are trees as if they were plain dicts.
void register_dict(nb::handle cls);
std::string class_name(const TreeType& type);
/// The tree inside an object of a registered class, and what else it is made of.
std::pair<nb::object, nb::object> open_object(const TreeType& type, PyObject* object);
/// The values of a dataclass's fields that hold no trees.
nb::object constants_of(const TreeType& type, nb::handle object);

}  // namespace tn::python
