#include "trees/trees.h"

#include <nanobind/stl/string.h>

#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "trees/module_stand_ins.h"

namespace tn::python {

// Classes ------------------------------------------------------------------------------------

namespace {

/// What is known of Python classes. Python's lock guards it. Entries of trees are never removed,
/// because structures point at them; classes of leaves may die.
struct TreeTypes {
  std::deque<TreeType> all;
  std::unordered_map<PyTypeObject*, const TreeType*> of_class, stateful;
  std::unordered_map<PyTypeObject*, nb::object> leaves;  // with weak references to the classes
  TreeType leaf, object_leaf, none{TreeKind::none}, list{TreeKind::list}, tuple{TreeKind::tuple},
      dict{TreeKind::dict};

  const TreeType* add(PyTypeObject* cls, TreeType type) {
    type.cls = nb::borrow(reinterpret_cast<PyObject*>(cls));
    type.is_module =
        type.kind == TreeKind::object && module_type && PyType_IsSubtype(cls, module_type);
    all.push_back(std::move(type));
    bool live = all.back().kind == TreeKind::stateful;
    return (live ? stateful : of_class)[cls] = &all.back();
  }
  const TreeType* add_leaf(PyTypeObject* cls);
};

TreeTypes& types() {
  static TreeTypes& instance = *new TreeTypes;  // outlives the interpreter's objects
  return instance;
}

PyObject* forget_leaf(PyObject*, PyObject* reference) {
  std::erase_if(types().leaves, [&](auto& known) { return known.second.ptr() == reference; });
  Py_RETURN_NONE;
}

const TreeType* TreeTypes::add_leaf(PyTypeObject* cls) {
  static PyMethodDef method = {"forget_leaf", forget_leaf, METH_O, nullptr};
  static PyObject* forget = PyCFunction_New(&method, nullptr);
  leaves[cls] = checked(PyWeakref_NewRef(reinterpret_cast<PyObject*>(cls), forget));
  return &object_leaf;
}

TreeType dataclass_type(nb::handle cls) {
  TreeType type{TreeKind::dataclass};
  nb::list fields, constants;
  for (nb::handle field : nb::module_::import_("dataclasses").attr("fields")(cls)) {
    bool is_static = PyObject_IsTrue(field.attr("metadata").attr("get")("static", false).ptr());
    (is_static ? constants : fields).append(field.attr("name"));
  }
  type.fields = nb::tuple(fields), type.constants = nb::tuple(constants);
  return type;
}

TreeType examine(PyTypeObject* cls) {
  nb::handle object = reinterpret_cast<PyObject*>(cls);
  if (nb::hasattr(object, "__tree_flatten__")) {
    TreeType type{TreeKind::object};
    type.flatten = object.attr("__tree_flatten__");
    type.unflatten = object.attr("__tree_unflatten__");
    return type;
  }
  if (PyType_FastSubclass(cls, Py_TPFLAGS_TUPLE_SUBCLASS))
    return {nb::hasattr(object, "_fields") ? TreeKind::named_tuple : TreeKind::tuple};
  if (PyType_FastSubclass(cls, Py_TPFLAGS_LIST_SUBCLASS)) return {TreeKind::list};
  if (PyType_FastSubclass(cls, Py_TPFLAGS_DICT_SUBCLASS)) return {TreeKind::dict};
  if (nb::hasattr(object, "__dataclass_fields__")) return dataclass_type(object);
  return {};
}

}  // namespace

const TreeType* tree_type(PyObject* o) {
  PyTypeObject* cls = Py_TYPE(o);
  TreeTypes& known = types();
  if (cls == tensor_type || cls == &PyFloat_Type || cls == &PyLong_Type) return &known.leaf;
  if (cls == &PyList_Type) return &known.list;
  if (cls == &PyDict_Type) return &known.dict;
  if (cls == &PyTuple_Type) return &known.tuple;
  if (o == Py_None) return &known.none;
  auto found = known.of_class.find(cls);
  if (found != known.of_class.end()) return found->second;
  if (known.leaves.contains(cls)) return &known.object_leaf;
  TreeType type = examine(cls);
  return type.kind == TreeKind::leaf ? known.add_leaf(cls) : known.add(cls, std::move(type));
}

const TreeType* live_type(PyObject* o) {
  const TreeType* type = tree_type(o);
  TreeTypes& known = types();
  bool may_hold = type->kind == TreeKind::object || type == &known.object_leaf;
  if (!may_hold || is_tensor(o)) return type;
  auto found = known.stateful.find(Py_TYPE(o));
  if (found != known.stateful.end()) return found->second;
  if (PyType_Check(o) || PyModule_Check(o) || !nb::hasattr(o, "state")) return type;
  return known.add(Py_TYPE(o), {TreeKind::stateful});
}

void register_tree(nb::handle cls, nb::object flatten, nb::object unflatten) {
  if (!PyType_Check(cls.ptr()))
    fail(Fault::type, "tree.register: not a class: {}", nb::repr(cls).c_str());
  TreeType type{TreeKind::object};
  type.flatten = std::move(flatten), type.unflatten = std::move(unflatten);
  types().add(reinterpret_cast<PyTypeObject*>(cls.ptr()), std::move(type));
}

void register_dict(nb::handle cls) {
  types().of_class[reinterpret_cast<PyTypeObject*>(cls.ptr())] = &types().dict;
}

std::string class_name(const TreeType& type) {
  return nb::cast<std::string>(type.cls.attr("__name__"));
}

std::pair<nb::object, nb::object> open_object(const TreeType& type, PyObject* o) {
  nb::object pair = type.flatten(nb::handle(o));
  if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
    fail(Fault::type, "tree: flatten of {} must return (tree, static), not {}", class_name(type),
         type_name(pair.ptr()));
  return {pair[0], pair[1]};
}

nb::object constants_of(const TreeType& type, nb::handle o) {
  nb::list values;
  for (nb::handle name : type.constants) values.append(o.attr(name));
  return nb::tuple(values);
}

// Reading ------------------------------------------------------------------------------------

namespace {

constexpr int kDeepest = 500;

struct TreeReader {
  std::vector<Structure::Node>& nodes;
  Leaves& leaves;
  Structure::Look look;
  Leaves* modules;

  /// The objects around the one being read.
  struct Around {
    PyObject* object;
    const Around* outer;
    int depth;
  };

  [[noreturn]] static void too_deep(const Around* around) {
    for (const Around* a = around; a; a = a->outer)
      for (const Around* b = a->outer; b; b = b->outer)
        if (a->object == b->object) fail("tree: a {} holds itself", type_name(a->object));
    fail("tree: nested deeper than {}", kDeepest);
  }

  /// Of lists, tuples and dicts of other classes. In dicts, items may be attributes as well.
  static void check_attributes(const TreeType& type, PyObject* o) {
    bool items = type.kind == TreeKind::list || type.kind == TreeKind::tuple ||
                 type.kind == TreeKind::dict || type.kind == TreeKind::named_tuple;
    PyTypeObject* cls = Py_TYPE(o);
    if (!items || !cls->tp_dictoffset || !PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE)) return;
    nb::dict attributes = nb::handle(o).attr("__dict__");
    for (auto [name, value] : attributes)
      if (type.kind != TreeKind::dict || !PyMapping_HasKey(o, name.ptr()))
        fail(Fault::type, Hint{"pass it as an argument of its own, or make the class a dataclass"},
             "compile: an argument is a {} with the attribute {}, which is no part of the tree",
             class_name(type), nb::str(name).c_str());
  }

  void read(PyObject* o, const Around* outer) {
    const TreeType* type = look == Structure::Look::live ? live_type(o) : tree_type(o);
    if (type->kind == TreeKind::leaf) {  // all of one type, so that structures are equal
      nodes.push_back({&types().leaf});
      leaves.push_back(nb::borrow(o));
      return;
    }
    if (look == Structure::Look::arguments && type->cls.is_valid()) check_attributes(*type, o);
    Around around{o, outer, outer ? outer->depth + 1 : 0};
    if (around.depth > kDeepest) too_deep(&around);
    size_t at = nodes.size(), before = leaves.size();
    nodes.push_back({type});
    if (modules && type->is_module) modules->push_back(checked(PyWeakref_NewRef(o, nullptr)));
    nb::object data;
    nodes[at].children = static_cast<uint32_t>(read_children(*type, o, data, &around));
    nodes[at].leaves = static_cast<uint32_t>(leaves.size() - before);
    nodes[at].nodes = static_cast<uint32_t>(nodes.size() - at);
    nodes[at].data = std::move(data);
  }

  size_t read_children(const TreeType& type, PyObject* o, nb::object& data, const Around* around) {
    switch (type.kind) {
      case TreeKind::leaf:
      case TreeKind::none:
        return 0;
      case TreeKind::list:
      case TreeKind::tuple:
      case TreeKind::named_tuple:
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
          read(nb::borrow(PySequence_Fast_GET_ITEM(o, i)).ptr(), around);
        return static_cast<size_t>(PySequence_Fast_GET_SIZE(o));
      case TreeKind::dict:
        return read_dict(o, data, around);
      case TreeKind::dataclass:
        for (nb::handle name : type.fields) read(nb::getattr(o, name).ptr(), around);
        data = constants_of(type, o);
        return nb::len(type.fields);
      case TreeKind::object: {
        auto [tree, rest] = open_object(type, o);
        data = std::move(rest);
        read(tree.ptr(), around);
        return 1;
      }
      case TreeKind::stateful:
        read(nb::getattr(o, "state").ptr(), around);
        return 1;
    }
    return 0;
  }

  /// Keys and values are taken first: reading a value may run code that changes the dict.
  size_t read_dict(PyObject* o, nb::object& keys, const Around* around) {
    Leaves values;
    if (PyDict_CheckExact(o)) {
      keys = checked(PyTuple_New(PyDict_GET_SIZE(o)));
      values.reserve(static_cast<size_t>(PyDict_GET_SIZE(o)));
      PyObject *key, *value;
      for (Py_ssize_t at = 0, i = 0; PyDict_Next(o, &at, &key, &value); ++i) {
        PyTuple_SET_ITEM(keys.ptr(), i, Py_NewRef(key));
        values.push_back(nb::borrow(value));
      }
    } else {
      keys = checked(PySequence_Tuple(checked(PyMapping_Keys(o)).ptr()));
      for (nb::handle key : nb::borrow<nb::tuple>(keys))
        values.push_back(checked(PyObject_GetItem(o, key.ptr())));
    }
    for (const nb::object& value : values) read(value.ptr(), around);
    return values.size();
  }
};

}  // namespace

Structure::Structure(PyObject* tree, Leaves& leaves, Look look, Leaves* modules) {
  nodes_.reserve(32);
  leaves.reserve(32);
  TreeReader{nodes_, leaves, look, modules}.read(tree, nullptr);
}

Leaves leaves_of(PyObject* tree, Structure::Look look) {
  Leaves leaves;
  Structure structure(tree, leaves, look);
  return leaves;
}

Tensors tensors_in(PyObject* tree, Structure::Look look) {
  Tensors found;
  for (const nb::object& leaf : leaves_of(tree, look))
    if (Tensor* t = tensor_in(leaf.ptr())) found.push_back(*t);
  return found;
}

// Building -----------------------------------------------------------------------------------

namespace {

struct TreeBuilder {
  const Structure::Node* node;
  const nb::object* leaf;
  StandIns* stand_ins = nullptr;

  nb::object build() {
    const Structure::Node& n = *node++;
    const TreeType& type = *n.type;
    switch (type.kind) {
      case TreeKind::leaf:
        return *leaf++;
      case TreeKind::none:
        return nb::none();
      case TreeKind::list: {
        nb::object list = build_list(n);
        return type.cls.is_valid() ? type.cls(list) : list;
      }
      case TreeKind::tuple: {
        nb::object tuple = build_tuple(n);
        return type.cls.is_valid() ? type.cls(tuple) : tuple;
      }
      case TreeKind::named_tuple:
        return type.cls.attr("_make")(build_tuple(n));
      case TreeKind::dict:
        return build_dict(n);
      case TreeKind::dataclass:
        return build_dataclass(n);
      case TreeKind::object: {
        nb::object original = stand_ins && type.is_module ? stand_ins->next() : nb::none();
        nb::object tree = build();
        nb::object made = type.unflatten(n.data, tree);
        if (!original.is_none()) stand_ins->add(std::move(original), made);
        return made;
      }
      case TreeKind::stateful:
        fail(Fault::type, Hint{"create it before the function is called"},
             "compile: a new {} in the outputs cannot be created again by later calls",
             class_name(type));
    }
    return {};
  }

  nb::object build_list(const Structure::Node& n) {
    nb::object list = checked(PyList_New(n.children));
    for (uint32_t i = 0; i < n.children; ++i)
      PyList_SET_ITEM(list.ptr(), i, build().release().ptr());
    return list;
  }
  nb::object build_tuple(const Structure::Node& n) {
    nb::object tuple = checked(PyTuple_New(n.children));
    for (uint32_t i = 0; i < n.children; ++i)
      PyTuple_SET_ITEM(tuple.ptr(), i, build().release().ptr());
    return tuple;
  }
  nb::object build_dict(const Structure::Node& n) {
    nb::object dict = checked(PyDict_New());
    for (uint32_t i = 0; i < n.children; ++i)
      if (PyDict_SetItem(dict.ptr(), PyTuple_GET_ITEM(n.data.ptr(), i), build().ptr()))
        throw nb::python_error();
    if (!n.type->cls.is_valid()) return dict;
    return n.type->cls(dict);
  }
  /// Past the constructor, which may check or compute: the fields are all there is.
  nb::object build_dataclass(const Structure::Node& n) {
    nb::object made = n.type->cls.attr("__new__")(n.type->cls);
    for (nb::handle name : n.type->fields) set(made, name, build());
    for (size_t i = 0; i < nb::len(n.data); ++i) set(made, n.type->constants[i], n.data[i]);
    return made;
  }
  static void set(nb::handle object, nb::handle name, nb::handle value) {
    if (PyObject_GenericSetAttr(object.ptr(), name.ptr(), value.ptr())) throw nb::python_error();
  }
};

}  // namespace

nb::object Structure::build(std::span<const nb::object> given, StandIns* stand_ins) const {
  if (given.size() != leaves())
    fail("tree: {} leaves for a structure of {}: {}", given.size(), leaves(), text());
  return TreeBuilder{nodes_.data(), given.data(), stand_ins}.build();
}

nb::object build_tree(const Structure::Node* root, std::span<const nb::object> leaves) {
  return TreeBuilder{root, leaves.data()}.build();
}

// Comparing ----------------------------------------------------------------------------------

bool Structure::operator==(const Structure& other) const {
  auto same = [](const Node& a, const Node& b) {
    return a.type == b.type && a.children == b.children && a.leaves == b.leaves &&
           (!a.data.is_valid() || a.data.equal(b.data));
  };
  return std::equal(nodes_.begin(), nodes_.end(), other.nodes_.begin(), other.nodes_.end(), same);
}

size_t Structure::hash() const {
  size_t h = nodes_.size();
  for (const Node& n : nodes_) {
    h = combine(h, reinterpret_cast<size_t>(n.type));
    h = combine(h, n.children);
    if (n.data.is_valid()) h = combine(h, static_cast<size_t>(nb::hash(n.data)));
  }
  return h;
}

}  // namespace tn::python
