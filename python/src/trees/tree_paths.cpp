// Structures as text, the places of leaves in them, and trees that must match one.
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "trees/trees.h"

namespace tn::python {

using Node = Structure::Node;

namespace {

constexpr size_t kLongestText = 300;

std::string repr_of(nb::handle o) { return nb::repr(o).c_str(); }

std::string name_at(const nb::object& names, size_t i) {
  return nb::cast<std::string>(nb::str(names[i]));
}

nb::object names_in(const TreeType& type) {
  return type.kind == TreeKind::named_tuple ? nb::object(type.cls.attr("_fields")) : type.fields;
}

struct TreeText {
  const Node* node;
  std::string text = {};

  void write() {
    const Node& n = *node++;
    switch (n.type->kind) {
      case TreeKind::leaf:
        text += "*";
        return;
      case TreeKind::none:
        text += "None";
        return;
      case TreeKind::list:
        return write_all(n, "[", "]");
      case TreeKind::tuple:
        return write_all(n, "(", n.children == 1 ? ",)" : ")");
      case TreeKind::dict:
        return write_all(n, "{", "}");
      default:
        return write_all(n, class_name(*n.type) + "(", ")");
    }
  }
  void write_all(const Node& n, const std::string& open, const char* close) {
    text += open;
    bool named = n.type->kind == TreeKind::named_tuple || n.type->kind == TreeKind::dataclass;
    for (uint32_t i = 0; i < n.children; ++i) {
      if (i) text += ", ";
      if (n.type->kind == TreeKind::dict) text += repr_of(n.data[i]) + ": ";
      if (named) text += name_at(names_in(*n.type), i) + "=";
      write();
    }
    text += close;
  }
};

/// One step from a node to its child: `[0]`, `['w']`, `.x`. An object's own tree is no step.
std::string step_text(const Node& n, size_t i, bool inside_object) {
  switch (n.type->kind) {
    case TreeKind::dict: {
      nb::object key = n.data[i];
      return inside_object && PyUnicode_Check(key.ptr()) ? "." + nb::cast<std::string>(key)
                                                         : "[" + repr_of(key) + "]";
    }
    case TreeKind::named_tuple:
    case TreeKind::dataclass:
      return "." + name_at(names_in(*n.type), i);
    case TreeKind::object:
    case TreeKind::stateful:
      return "";
    default:
      return format("[{}]", i);
  }
}

bool is_list(TreeKind kind) { return kind == TreeKind::list || kind == TreeKind::tuple; }

bool alike(const TreeType& a, const TreeType& b) {
  if (a.kind != b.kind) return is_list(a.kind) && is_list(b.kind);
  return &a == &b || is_list(a.kind) || a.kind == TreeKind::dict || a.kind == TreeKind::leaf;
}

/// Follows a tree along a structure.
struct TreeMatcher {
  const Structure& structure;
  Structure::StandsForAll stands_for_all;
  std::string_view subject;
  PyObject* whole;
  Leaves leaves = {};
  const Node* node = structure.nodes().data();

  [[noreturn]] void differ() const {
    Leaves unused;
    size_t leaf = leaves.size();
    std::string where = leaf < structure.leaves() ? structure.path(leaf) : "";
    fail("{}{}{}: {} and {}", subject, where.empty() ? "" : " at ", where,
         Structure(whole, unused).text(), structure.text());
  }

  void match(PyObject* o) {
    const Node& n = *node++;
    if (stands_for_all && stands_for_all(o)) {
      leaves.insert(leaves.end(), n.leaves, nb::borrow(o));
      node = &n + n.nodes;
      return;
    }
    const TreeType& type = *tree_type(o);
    if (!alike(*n.type, type)) differ();
    match_children(n, type, o);
  }

  void match_children(const Node& n, const TreeType& type, PyObject* o) {
    switch (n.type->kind) {
      case TreeKind::leaf:
        leaves.push_back(nb::borrow(o));
        return;
      case TreeKind::none:
        return;
      case TreeKind::list:
      case TreeKind::tuple:
      case TreeKind::named_tuple:
        if (PySequence_Fast_GET_SIZE(o) != static_cast<Py_ssize_t>(n.children)) differ();
        for (uint32_t i = 0; i < n.children; ++i) match(PySequence_Fast_GET_ITEM(o, i));
        return;
      case TreeKind::dict:
        return match_dict(n, o);
      case TreeKind::dataclass:
        if (!n.data.equal(constants_of(type, o))) differ();
        for (nb::handle name : type.fields) match(nb::getattr(o, name).ptr());
        return;
      case TreeKind::object: {
        auto [tree, rest] = open_object(type, o);
        if (!n.data.equal(rest)) differ();
        return match(tree.ptr());
      }
      case TreeKind::stateful:  // no structure to match with has them
        return;
    }
  }

  void match_dict(const Node& n, PyObject* o) {
    if (PyDict_Size(o) != static_cast<Py_ssize_t>(n.children)) differ();
    for (uint32_t i = 0; i < n.children; ++i) {
      PyObject* value = PyDict_GetItemWithError(o, PyTuple_GET_ITEM(n.data.ptr(), i));
      if (!value && PyErr_Occurred()) throw nb::python_error();
      if (!value) differ();
      match(value);
    }
  }
};

}  // namespace

std::string Structure::text() const {
  TreeText writer{nodes_.data()};
  writer.write();
  std::string text = std::move(writer.text);
  if (text.size() > kLongestText) text.replace(kLongestText, text.size(), " ...");
  return text;
}

std::string Structure::path(size_t leaf, const std::vector<std::string>& first) const {
  size_t node = 0;
  for (size_t before = 0;; ++node)
    if (nodes_[node].type->kind == TreeKind::leaf && before++ == leaf) break;
  return path_of_node(node, first);
}

std::string Structure::path_of_node(size_t node, const std::vector<std::string>& first) const {
  std::string text;
  bool inside_object = false;
  for (size_t n = 0; n != node;) {
    size_t child = 0, at = n + 1;
    for (; node >= at + nodes_[at].nodes; at += nodes_[at].nodes) ++child;
    text +=
        n == 0 && child < first.size() ? first[child] : step_text(nodes_[n], child, inside_object);
    TreeKind kind = nodes_[n].type->kind;
    inside_object = kind == TreeKind::object || kind == TreeKind::stateful;
    n = at;
  }
  return text;
}

Leaves Structure::match(PyObject* tree, StandsForAll stands_for_all,
                        std::string_view subject) const {
  TreeMatcher matcher{*this, stands_for_all, subject, tree};
  matcher.match(tree);
  return std::move(matcher.leaves);
}

namespace {

nb::object flatten_tree(nb::handle tree) {
  Leaves leaves;
  Structure structure(tree.ptr(), leaves);
  nb::list list;
  for (nb::object& leaf : leaves) list.append(std::move(leaf));
  return nb::make_tuple(list, std::move(structure));
}

nb::object unflatten_tree(const Structure& structure, nb::handle given) {
  Leaves leaves;
  for (nb::handle leaf : given) leaves.push_back(nb::borrow(leaf));
  return structure.build(leaves);
}

nb::object map_tree(nb::object f, nb::handle tree, nb::args rest) {
  Leaves first;
  Structure structure(tree.ptr(), first);
  std::vector<Leaves> others;
  for (nb::handle other : rest)
    others.push_back(structure.match(other.ptr(), nullptr, "tree.map: structures differ"));
  std::vector<PyObject*> args(others.size() + 1);
  OwnPlaces own;
  for (size_t i = 0; i < first.size(); ++i) {
    args[0] = first[i].ptr();
    for (size_t k = 0; k < others.size(); ++k) args[k + 1] = others[k][i].ptr();
    first[i] = checked(PyObject_Vectorcall(f.ptr(), args.data(), args.size(), nullptr));
  }
  return structure.build(first);
}

}  // namespace

namespace {

const char* kind_name(TreeKind kind) {
  constexpr const char* kNames[] = {"leaf",        "none", "list",      "tuple",
                                    "named_tuple", "dict", "dataclass", "object"};
  return kNames[static_cast<size_t>(kind)];
}

/// The nodes in preorder: kind, class, number of children, what is not a tree, names of fields.
nb::list describe_nodes(const Structure& structure) {
  auto or_none = [](const nb::object& o) { return o.is_valid() ? o : nb::none(); };
  nb::list made;
  for (const Node& n : structure.nodes()) {
    bool named = n.type->kind == TreeKind::named_tuple || n.type->kind == TreeKind::dataclass;
    made.append(nb::make_tuple(kind_name(n.type->kind), or_none(n.type->cls), n.children,
                               or_none(n.data), named ? names_in(*n.type) : nb::none()));
  }
  return made;
}

}  // namespace

void bind_trees(nb::module_& m) {
  nb::class_<Structure>(m, "TreeStructure", "The structure of a tree: the tree without its leaves.")
      .def("__repr__", &Structure::text)
      .def("__hash__", &Structure::hash)
      .def("__eq__",
           [](const Structure& a, nb::handle b) {
             return nb::isinstance<Structure>(b) && a == nb::cast<const Structure&>(b);
           })
      .def_prop_ro("num_leaves", &Structure::leaves, "The number of leaves of such a tree.")
      .def("_nodes", describe_nodes)
      .def("paths", [](const Structure& s) {
        nb::list made;
        for (size_t i = 0; i < s.leaves(); ++i) made.append(s.path(i));
        return made;
      });
  m.def("_tree_flatten", flatten_tree, users_call, nb::arg("tree").none());
  m.def("_tree_unflatten", unflatten_tree, users_call);
  m.def("_tree_map", map_tree, users_call, nb::arg("f"), nb::arg("tree").none(), nb::arg("rest"));
  m.def("_tree_register", register_tree, users_call);
  m.def("_tree_register_dict", register_dict);
}

}  // namespace tn::python
