#include "trees/live_trees.h"

#include "base/error.h"

namespace tn::python {

using Node = Structure::Node;

namespace {

void set_item(nb::handle container, nb::handle key, nb::handle value) {
  if (PyObject_SetItem(container.ptr(), key.ptr(), value.ptr())) throw nb::python_error();
}

/// A class whose trees are lists or dicts and which takes items by the same indices.
bool takes_items(const TreeType& type) { return nb::hasattr(type.cls, "__setitem__"); }

bool is_frozen(const TreeType& type) {
  return PyObject_IsTrue(type.cls.attr("__dataclass_params__").attr("frozen").ptr());
}

// Assigning ----------------------------------------------------------------------------------

struct LeafWriter {
  const Node *first, *node;
  const nb::object* leaf;
  std::span<const nb::object> removed;

  /// What belongs in the place of `live`, which is null where there is nothing. Where it is a
  /// container of the right kind, it is changed and stays.
  nb::object put(nb::handle live) {
    const Node& n = *node;
    if (n.type->kind == TreeKind::leaf) {
      ++node;
      nb::object value = *leaf++;
      return value.is_valid() ? value : nb::borrow(live);
    }
    if (!live.is_valid() || live_type(live.ptr()) != n.type) return build();
    ++node;
    switch (n.type->kind) {
      case TreeKind::list:
        put_list(n, live, live);
        break;
      case TreeKind::dict:
        put_dict(n, live, live);
        break;
      case TreeKind::tuple:
      case TreeKind::named_tuple:
        return put_tuple(n, live);
      case TreeKind::dataclass:
        return put_dataclass(n, live);
      case TreeKind::stateful: {
        nb::object state = live.attr("state");
        if (!put(state).is(state)) set_state(live);
        break;
      }
      case TreeKind::object:
        return put_object(n, live);
      case TreeKind::leaf:
      case TreeKind::none:
        break;
    }
    return nb::borrow(live);
  }

 private:
  nb::object build() {
    std::vector<nb::object> own(leaf, leaf + node->leaves);
    for (nb::object& o : own)
      if (!o.is_valid()) o = nb::none();
    nb::object made = build_tree(node, own);
    leaf += node->leaves;
    node += node->nodes;
    return made;
  }
  [[noreturn]] static void set_state(nb::handle owner) {
    fail(Fault::type, Hint{"let `state` be a list or a dict"},
         "compile: the state of a {} cannot be replaced", type_name(owner.ptr()));
  }

  /// `items` has what `target` holds, which may be the same.
  void put_list(const Node& n, nb::handle items, nb::handle target) {
    size_t count = nb::len(items);
    for (size_t i = 0; i < n.children; ++i) {
      nb::object old = i < count ? nb::object(items[i]) : nb::object();
      nb::object now = put(old);
      if (i >= count)
        target.attr("append")(now);
      else if (!now.is(old))
        set_item(target, nb::int_(i), now);
    }
    if (count > n.children)
      target.attr("__delitem__")(nb::slice(nb::int_(n.children), nb::none(), nb::none()));
  }
  void put_dict(const Node& n, nb::handle items, nb::handle target) {
    for (nb::handle key : nb::borrow<nb::tuple>(n.data)) {
      nb::object old = nb::borrow(PyDict_GetItemWithError(items.ptr(), key.ptr()));
      if (!old.is_valid() && PyErr_Occurred()) throw nb::python_error();
      nb::object now = put(old);
      if (!old.is_valid() || !now.is(old)) set_item(target, key, now);
    }
    nb::object gone = removed.empty() ? nb::object() : removed[static_cast<size_t>(&n - first)];
    if (!gone.is_valid()) return;
    for (nb::handle key : nb::borrow<nb::list>(gone)) {
      int there = PyDict_Contains(items.ptr(), key.ptr());
      if (there < 0 || (there && PyObject_DelItem(target.ptr(), key.ptr())))
        throw nb::python_error();
    }
  }
  nb::object put_tuple(const Node& n, nb::handle live) {
    if (nb::len(live) != n.children) return --node, build();
    nb::list items;
    bool same = true;
    for (size_t i = 0; i < n.children; ++i) {
      nb::object old = live[i];
      items.append(put(old));
      same = same && items[i].is(old);
    }
    if (same) return nb::borrow(live);
    if (n.type->kind == TreeKind::named_tuple) return n.type->cls.attr("_make")(items);
    nb::tuple made(items);
    return n.type->cls.is_valid() ? n.type->cls(made) : made;
  }
  nb::object put_dataclass(const Node& n, nb::handle live) {
    if (is_frozen(*n.type)) return --node, build();
    for (nb::handle name : n.type->fields) {
      nb::object old = nb::getattr(live, name), now = put(old);
      if (!now.is(old)) nb::setattr(live, name, now);
    }
    return nb::borrow(live);
  }
  nb::object put_object(const Node& n, nb::handle live) {
    auto [tree, rest] = open_object(*n.type, live.ptr());
    TreeKind inner = node->type->kind;
    bool same_kind = tree_type(tree.ptr()) == node->type;
    if (!takes_items(*n.type) || !same_kind || (inner != TreeKind::list && inner != TreeKind::dict))
      return --node, build();
    const Node& items = *node++;
    inner == TreeKind::list ? put_list(items, tree, live) : put_dict(items, tree, live);
    return nb::borrow(live);
  }
};

}  // namespace

void assign_leaves(PyObject* tree, const Structure& structure, std::span<const nb::object> leaves,
                   std::string_view what, std::span<const nb::object> removed) {
  const Node* first = structure.nodes().data();
  LeafWriter writer{first, first, leaves.data(), removed};
  if (!writer.put(tree).is(tree))
    fail(Fault::type, Hint{"put it into a list or a dict"}, "{}: a {} cannot be changed", what,
         type_name(tree));
}

namespace {

struct RemovedKeys {
  const Node* first;
  std::vector<nb::object> keys;  // by node

  void compare(const Node* before, const Node* after) {
    if (before->type->kind != after->type->kind) return;
    bool dict = after->type->kind == TreeKind::dict;
    const Node* a = before + 1;
    for (uint32_t i = 0; i < before->children; a += a->nodes, ++i) {
      nb::object key = dict ? nb::object(before->data[i]) : nb::object();
      uint32_t k = dict ? place_of(key, *after) : i;
      if (k < after->children) {
        compare(a, child(after, k));
      } else if (dict) {
        nb::object& list = keys[static_cast<size_t>(after - first)];
        if (!list.is_valid()) list = nb::list();
        nb::borrow<nb::list>(list).append(key);
      }
    }
  }

 private:
  static uint32_t place_of(const nb::object& key, const Node& dict) {
    int there = PySequence_Contains(dict.data.ptr(), key.ptr());
    if (there == 0) return dict.children;
    Py_ssize_t at = there < 0 ? -1 : PySequence_Index(dict.data.ptr(), key.ptr());
    if (at < 0) throw nb::python_error();
    return static_cast<uint32_t>(at);
  }
  static const Node* child(const Node* n, uint32_t k) {
    const Node* at = n + 1;
    for (; k > 0; --k) at += at->nodes;
    return at;
  }
};

}  // namespace

std::vector<nb::object> removed_keys(const Structure& before, const Structure& after) {
  const Node* first = after.nodes().data();
  RemovedKeys found{first, std::vector<nb::object>(after.nodes().size())};
  found.compare(before.nodes().data(), first);
  return std::move(found.keys);
}

namespace {

struct HolderReader {
  const Node* node;
  std::vector<bool> leaves = {};

  /// `held`: by a container. The tree of an object is made when it is asked for, and is none.
  void read(bool held, bool inside_object) {
    const Node& n = *node++;
    if (n.type->kind == TreeKind::leaf) return leaves.push_back(held);
    bool container = n.type->kind == TreeKind::list || n.type->kind == TreeKind::dict ||
                     (n.type->kind == TreeKind::dataclass && !is_frozen(*n.type));
    for (uint32_t i = 0; i < n.children; ++i)
      read(container && !inside_object, n.type->kind == TreeKind::object);
  }
};

}  // namespace

std::vector<bool> held_by_containers(const Structure& structure) {
  HolderReader reader{structure.nodes().data()};
  reader.read(false, false);
  return std::move(reader.leaves);
}

// Remembering --------------------------------------------------------------------------------

void Contents::remember(PyObject* o) {
  const TreeType* type = live_type(o);
  switch (type->kind) {
    case TreeKind::leaf:
    case TreeKind::none:
      return;
    case TreeKind::stateful:
      return remember(nb::getattr(o, "state").ptr());
    case TreeKind::object: {
      auto [tree, rest] = open_object(*type, o);
      if (takes_items(*type)) all_.push_back({type, nb::borrow(o), tree});
      return;
    }
    case TreeKind::dataclass: {
      nb::list values;
      for (nb::handle name : type->fields) values.append(nb::getattr(o, name));
      if (!is_frozen(*type)) all_.push_back({type, nb::borrow(o), values});
      for (nb::handle value : values) remember(value.ptr());
      return;
    }
    case TreeKind::dict: {
      nb::dict copy;
      copy.update(nb::borrow<nb::dict>(o));
      all_.push_back({type, nb::borrow(o), copy});
      for (nb::handle value : copy.values()) remember(value.ptr());
      return;
    }
    case TreeKind::list:
    case TreeKind::tuple:
    case TreeKind::named_tuple: {
      nb::list copy(nb::borrow(o));
      if (type->kind == TreeKind::list) all_.push_back({type, nb::borrow(o), copy});
      for (nb::handle value : copy) remember(value.ptr());
    }
  }
}

/// Runs while an error is under way: what a container does about its items must not hide it.
Contents::~Contents() {
  nb::error_scope keep;
  for (const Container& c : all_) {
    try {
      if (c.type->kind == TreeKind::list) {
        PyList_SetSlice(c.object.ptr(), 0, PyList_GET_SIZE(c.object.ptr()), c.copy.ptr());
      } else if (c.type->kind == TreeKind::dict) {
        PyDict_Clear(c.object.ptr());
        PyDict_Update(c.object.ptr(), c.copy.ptr());
      } else if (c.type->kind == TreeKind::dataclass) {
        for (size_t i = 0; i < nb::len(c.copy); ++i)
          nb::setattr(c.object, c.type->fields[i], c.copy[i]);
      } else if (PyDict_Check(c.copy.ptr())) {
        for (auto [key, value] : nb::borrow<nb::dict>(c.copy)) set_item(c.object, key, value);
      } else {
        for (size_t i = 0; i < nb::len(c.copy); ++i) set_item(c.object, nb::int_(i), c.copy[i]);
      }
    } catch (...) {
      PyErr_Clear();
    }
  }
}

}  // namespace tn::python
