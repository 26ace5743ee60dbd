#include "compiled/object_guards.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "base/error.h"
#include "ir/node.h"
#include "ir/number.h"
#include "ir/watch.h"

namespace tn::python {

namespace {

nb::module_ reads_module() { return nb::module_::import_("tenon.object_reads"); }

/// The object, or a weak reference to it where there are such.
std::pair<nb::object, bool> held_weakly(nb::handle object) {
  bool passing = PyMethod_Check(object.ptr());  // made whenever it is asked for
  if (passing || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object.ptr())))
    return {nb::borrow(object), false};
  return {checked(PyWeakref_NewRef(object.ptr(), nullptr)), true};
}

/// Null where it is dead.
PyObject* target(const nb::object& held, bool weak) {
  return weak ? referent(held.ptr()) : held.ptr();
}

/// Whether a class reads attributes as `object` does, apart from `__getattr__`.
bool reads_plainly(PyTypeObject* cls) {
  if (cls->tp_getattro == PyObject_GenericGetAttr) return true;
  nb::handle own = reinterpret_cast<PyObject*>(cls);
  nb::handle plain = reinterpret_cast<PyObject*>(&PyBaseObject_Type);
  return own.attr("__getattribute__").is(plain.attr("__getattribute__"));
}

/// What cannot be read is not there: the trace that follows fails where the program does.
void forget_error() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();
  PyErr_Clear();
}

/// An attribute, or null where there is none, or reading it fails. `__getattr__` is left out: what
/// that does has been noted itself.
nb::object attribute(PyObject* owner, const nb::object& name) {
  PyObject* found = reads_plainly(Py_TYPE(owner)) ? PyObject_GenericGetAttr(owner, name.ptr())
                                                  : PyObject_GetAttr(owner, name.ptr());
  if (!found) forget_error();
  return nb::steal(found);
}

/// What a list or tuple holds, whatever its class makes of it; or null.
nb::object part(PyObject* sequence, size_t at) {
  bool found = at < static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence));
  return nb::borrow(found ? PySequence_Fast_GET_ITEM(sequence, static_cast<Py_ssize_t>(at))
                          : nullptr);
}

/// The same for a key of a dict.
nb::object entry(PyObject* dict, nb::handle key) {
  PyObject* found = PyDict_GetItemWithError(dict, key.ptr());
  if (!found) forget_error();
  return nb::borrow(found);
}

/// What one step leads to, or null.
nb::object item(PyObject* container, nb::handle step) {
  if (PyDict_Check(container)) return entry(container, step);
  size_t at = 0;
  bool has_indices = PyList_Check(container) || PyTuple_Check(container);
  return has_indices && nb::try_cast(step, at) ? part(container, at) : nb::object();
}

/// The keys of a dict, and the elements of a set, whatever its class makes of them.
nb::object contents(PyObject* container) {
  PyTypeObject* own = PyODict_Check(container)  ? &PyODict_Type
                      : PyDict_Check(container) ? &PyDict_Type
                                                : &PySet_Type;
  nb::object all = checked(own->tp_iter(container));
  return checked(PySequence_Tuple(all.ptr()));
}

bool same_tensor(PyObject* a, PyObject* b) {
  Tensor *x = tensor_in(a), *y = tensor_in(b);
  return x && y && &slot_of(*x) == &slot_of(*y);
}

/// A number, or a tensor that no gradient is wanted of, as an argument of a trace; null: neither.
Tensor as_argument(PyObject* o) {
  if (PyFloat_CheckExact(o)) {
    double value = PyFloat_AS_DOUBLE(o);
    return as_number(from_bytes(&value, DType::f64, {}));
  }
  if (is_exact_integer(o)) {
    int64_t value = PyLong_AsLongLong(o);
    return as_number(from_bytes(&value, DType::i64, {}));
  }
  Tensor* t = tensor_in(o);
  bool plain = t && !t->node()->traced && !is_given_number(*t) && !is_variable(*t->node());
  return plain ? *t : Tensor();
}

/// The memory of an array whose elements are in order; none where it does not give it.
class Memory {
 public:
  explicit Memory(PyObject* array) : given_(PyObject_GetBuffer(array, &view_, PyBUF_SIMPLE) == 0) {
    if (!given_) PyErr_Clear();
  }
  ~Memory() {
    if (given_) PyBuffer_Release(&view_);
  }
  Memory(const Memory&) = delete;
  explicit operator bool() const { return given_; }
  std::string_view bytes() const {
    return {static_cast<const char*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_;
  bool given_;
};

bool same_layout(const nb::object& a, PyObject* b) {
  nb::handle now(b);
  return Py_TYPE(b) == Py_TYPE(a.ptr()) && a.attr("dtype").equal(now.attr("dtype")) &&
         a.attr("shape").equal(now.attr("shape"));
}

/// Whether a class made by a class statement has other bytes than its memory: a masked array.
bool has_own_bytes(PyTypeObject* cls) {
  PyTypeObject* base = cls;
  while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) base = base->tp_base;
  auto way = [](PyTypeObject* c) {
    return nb::handle(reinterpret_cast<PyObject*>(c)).attr("tobytes");
  };
  return cls != base && !way(cls).is(way(base));
}

bool same_elements(const nb::object& a, PyObject* b) {
  if (!has_own_bytes(Py_TYPE(b))) {
    Memory then(a.ptr()), now(b);
    if (then && now) return then.bytes() == now.bytes();
  }
  return a.attr("tobytes")().equal(nb::handle(b).attr("tobytes")());
}

}  // namespace

// Recording ----------------------------------------------------------------------------------

ObjectGuards::Record::Record(const CallArguments& args, const CallKey::Names& names,
                             nb::handle state, std::span<const OpenRead> open,
                             std::span<const Tensor> params)
    : open_(open) {
  auto may_have_attributes = [](PyObject* o) {
    return !PyUnicode_CheckExact(o) && !PyBool_Check(o) && o != Py_None;
  };
  nb::list roots;
  for (size_t k = 0; k < args.key.constants.size(); ++k) {
    const CallKey::Constant& constant = args.key.constants[k];
    if (!may_have_attributes(constant.value.ptr())) continue;
    std::string path = args.key.path(constant.leaf, names);
    roots.append(nb::make_tuple(path, k, constant.value, nb::none()));
  }
  for (size_t k = 0; k < args.key.data.size(); ++k) {
    auto [path, fields] = args.key.place_of_data(k, names);
    roots.append(
        nb::make_tuple(path, args.key.constants.size() + k, args.key.data[k], std::move(fields)));
  }
  nb::dict given;
  for (size_t i = 0; i < open.size(); ++i)
    given[open[i].path.c_str()] = nb::make_tuple(wrapped(Tensor(params[i])), open[i].object);
  nb::object named = state.is_valid() ? nb::borrow(state) : nb::none();
  reads_ =
      reads_module().attr("Reads")(args.function, roots, args.key.tree_classes(), named, given);
  reads_.attr("__enter__")();
}

void ObjectGuards::Record::stop() {
  if (!reads_.is_valid()) return;
  nb::object reads = std::move(reads_);
  reads.attr("__exit__")(nb::none(), nb::none(), nb::none());
}

ObjectGuards::Record::~Record() {
  nb::error_scope keep;
  try {
    stop();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("compile");
  }
}

ObjectGuards ObjectGuards::Record::guards(const std::string& f) {
  ObjectGuards made;
  if (!reads_.is_valid()) return made;
  nb::object reads = reads_;
  stop();
  for (nb::handle path : reads.attr("changed")()) {
    warn(format(
        "compile: {} modifies {}, which it also reads; the modification happens only at trace "
        "time: make the class a tn.nn.Module, or name what changes in inputs= and outputs=",
        f, nb::str(path).c_str()));
  }
  size_t number = 0;
  for (nb::handle owner : reads.attr("owners")) {
    Owner o{.before = nb::cast<int64_t>(owner[0])};
    if (o.before < 0) {
      o.constant = nb::cast<int64_t>(owner[1]);
      if (o.constant < 0) std::tie(o.object, o.weak) = held_weakly(owner[2]);
      o.steps = owner[3];
    } else {
      o.name = owner[1], o.steps = owner[2];
    }
    nb::object cls = owner[-1];
    if (!cls.is_none()) o.cls = std::move(cls);
    o.path = nb::str(reads.attr("names")[number++]).c_str();
    made.owners_.push_back(std::move(o));
  }
  for (auto [place, seen] : nb::borrow<nb::dict>(reads.attr("guards")))
    made.guards_.push_back({nb::cast<size_t>(place[0]), place[1], seen_of(seen, open_)});
  for (const OpenRead& read : open_) made.opened_.push_back(read.value);
  return made;
}

ObjectGuards::Seen ObjectGuards::seen_of(nb::handle record, std::span<const OpenRead> open) {
  std::string kind = nb::cast<std::string>(record[0]);
  Seen seen{kind == "any" ? Seen::Kind::any : Seen::Kind::absent};
  auto with_class = [&](nb::handle cls) { seen.cls = nb::borrow(cls); };
  auto with_parts = [&](nb::handle parts) {
    for (nb::handle part : parts) seen.parts.push_back(seen_of(part, open));
  };
  if (kind == "equal") {
    seen.kind = Seen::Kind::equal, seen.value = record[1];
  } else if (kind == "open") {
    seen.kind = Seen::Kind::open, seen.owner = nb::cast<size_t>(record[1]);
    seen.value = wrapped(Tensor(open[seen.owner].value));
  } else if (kind == "same") {
    seen.kind = Seen::Kind::same;
    std::tie(seen.value, seen.weak) = held_weakly(record[1]);
  } else if (kind == "tensor") {
    seen.kind = Seen::Kind::tensor;
    seen.value = wrapped(Tensor(*tensor_in(nb::object(record[1]).ptr())));  // the handle may change
  } else if (kind == "method") {
    seen.kind = Seen::Kind::method;
    std::tie(seen.value, seen.weak) = held_weakly(record[1]);
  } else if (kind == "sequence") {
    seen.kind = Seen::Kind::sequence, with_class(record[1]), with_parts(record[2]);
  } else if (kind == "dict") {
    seen.kind = Seen::Kind::dict, with_class(record[1]), with_parts(record[2]);
  } else if (kind == "set") {
    seen.kind = Seen::Kind::set, seen.value = record[2];
    with_class(record[1]), with_parts(record[3]);
  } else if (kind == "array") {
    seen.kind = Seen::Kind::array, seen.value = record[1], with_parts(record[2]);
  } else if (kind == "object") {
    seen.kind = Seen::Kind::object, seen.owner = nb::cast<size_t>(record[1]);
    with_class(record[2]);
  }
  return seen;
}

// Comparing ----------------------------------------------------------------------------------

bool ObjectGuards::is(const Seen& seen, PyObject* now, const Objects& objects) {
  using enum Seen::Kind;
  const size_t count = seen.parts.size();
  auto same_parts = [&](size_t from, auto part_of) {
    for (size_t i = from; i < count; ++i) {
      nb::object its = part_of(i);  // comparing may run code that changes what holds it
      if (!is(seen.parts[i], its.ptr(), objects)) return false;
    }
    return true;
  };
  if (!now || seen.kind == absent) return !now && seen.kind == absent;
  switch (seen.kind) {
    case absent:
      return false;
    case any:
      return true;
    case open: {
      Tensor given = as_argument(now);
      return given.defined() && type_of(given) == type_of(*tensor_in(seen.value.ptr())) &&
             is_number(given) == is_number(*tensor_in(seen.value.ptr()));
    }
    case equal:
      return same_object(seen.value.ptr(), now);
    case same:
      return target(seen.value, seen.weak) == now;
    case tensor:
      return same_tensor(seen.value.ptr(), now);
    case method:
      return PyMethod_Check(now) && PyMethod_GET_FUNCTION(now) == target(seen.value, seen.weak);
    case sequence:
      if (!seen.has_class_of(now)) return false;
      return static_cast<size_t>(PySequence_Fast_GET_SIZE(now)) == count &&
             same_parts(0, [&](size_t i) { return part(now, i); });
    case dict: {  // behind its keys
      if (!seen.has_class_of(now)) return false;
      nb::object keys = contents(now);
      return is(seen.parts[0], keys.ptr(), objects) &&
             same_parts(1, [&](size_t i) { return entry(now, part(keys.ptr(), i - 1)); });
    }
    case set: {  // with the number of each part
      if (!seen.has_class_of(now)) return false;
      nb::object elements = contents(now);
      if (nb::len(elements) != count) return false;
      for (nb::handle element : elements) {
        nb::object number = entry(seen.value.ptr(), element);
        if (!number.is_valid()) return false;
        if (!is(seen.parts[nb::cast<size_t>(number)], element.ptr(), objects)) return false;
      }
      return true;
    }
    case array: {
      if (!same_layout(seen.value, now)) return false;
      if (seen.parts.empty()) return same_elements(seen.value, now);
      nb::object held = nb::handle(now).attr("ravel")().attr("tolist")();
      return same_parts(0, [&](size_t i) { return part(held.ptr(), i); });
    }
    case object:
      if (!seen.has_class_of(now)) return false;
      return objects[seen.owner].ptr() == now ||
             (PyMethod_Check(now) && same_object(objects[seen.owner].ptr(), now));
  }
  return false;
}

/// The objects that this call would have the function read; false where one is not there.
bool ObjectGuards::find_objects(const CallKey& call, Objects& objects) const {
  objects.reserve(owners_.size());
  for (const Owner& o : owners_) {
    nb::object found;
    if (o.constant >= 0) {
      size_t k = static_cast<size_t>(o.constant), count = call.constants.size();
      found = k < count ? call.constants[k].value : call.data[k - count];
    } else if (o.before < 0) {
      found = nb::borrow(target(o.object, o.weak));
    } else {
      found = attribute(objects[static_cast<size_t>(o.before)].ptr(), o.name);
    }
    for (nb::handle step : o.steps)
      if (found.is_valid()) found = item(found.ptr(), step);
    if (!found.is_valid()) return false;
    if (o.cls.is_valid() && !o.cls.is(found.type())) return false;
    objects.push_back(std::move(found));
  }
  return true;
}

bool ObjectGuards::all_hold(const CallKey& call, Tensors& opened) const {
  opened = opened_;
  Objects objects;
  if (!find_objects(call, objects)) return false;
  for (const Guard& g : guards_) {
    nb::object now = attribute(objects[g.owner].ptr(), g.name);
    if (!is(g.seen, now.ptr(), objects)) return false;
    if (g.seen.kind == Seen::Kind::open) opened[g.seen.owner] = as_argument(now.ptr());
  }
  return true;
}

std::string ObjectGuards::path_of(const Guard& g) const {
  std::string name = nb::str(g.name).c_str();
  return owners_[g.owner].path + (name == "__dict__" ? "" : "." + name);
}

std::vector<OpenRead> ObjectGuards::varied(const CallKey& call,
                                           std::span<const std::string> constant) const {
  std::vector<OpenRead> found;
  Objects objects;
  if (guards_.empty() || !find_objects(call, objects)) return found;
  for (const Guard& g : guards_) {
    using enum Seen::Kind;
    nb::object now = attribute(objects[g.owner].ptr(), g.name);
    Tensor value = now.is_valid() ? as_argument(now.ptr()) : Tensor();
    std::string path = path_of(g);
    if (!value.defined() || std::ranges::count(constant, path)) continue;
    bool differs =
        g.seen.kind == equal || g.seen.kind == tensor
            ? Py_TYPE(now.ptr()) == Py_TYPE(g.seen.value.ptr()) && !is(g.seen, now.ptr(), objects)
            : g.seen.kind == open;
    if (differs) found.push_back({path, value, now});
  }
  return found;
}

std::optional<Difference> ObjectGuards::broken(const CallKey& call) const {
  Objects objects;
  bool all = find_objects(call, objects);
  for (const Guard& g : guards_) {
    if (g.owner >= objects.size()) continue;
    nb::object now = attribute(objects[g.owner].ptr(), g.name);
    if (all ? is(g.seen, now.ptr(), objects) : now.is_valid()) continue;
    auto text = [](const nb::object& o) { return o.is_valid() ? short_repr(o) : "nothing"; };
    bool plain = g.seen.kind == Seen::Kind::equal;
    return Difference{TraceReason::constant, path_of(g),
                      plain ? text(g.seen.value) : "what was read", text(now)};
  }
  return {};
}

void ObjectGuards::read_again(const CallKey& call) const {
  Objects objects;
  if (guards_.empty() || !find_objects(call, objects)) return;
  nb::list reads;
  for (const Guard& g : guards_)
    reads.append(nb::make_tuple(objects[g.owner], g.name, owners_[g.owner].path));
  reads_module().attr("read_again")(reads);
}

nb::list ObjectGuards::read_objects(const CallKey& call) const {
  Objects objects;
  find_objects(call, objects);
  nb::list found = call.tree_classes();
  for (const nb::object& o : objects) found.append(o);
  return found;
}

int ObjectGuards::visit_seen(const Seen& seen, visitproc visit, void* arg) {
  Py_VISIT(seen.value.ptr());
  Py_VISIT(seen.cls.ptr());
  for (const Seen& part : seen.parts)
    if (int stop = visit_seen(part, visit, arg)) return stop;
  return 0;
}

int ObjectGuards::traverse(visitproc visit, void* arg) const {
  for (const Owner& o : owners_) {
    Py_VISIT(o.object.ptr());
    Py_VISIT(o.name.ptr());
    Py_VISIT(o.steps.ptr());
    Py_VISIT(o.cls.ptr());
  }
  for (const Guard& g : guards_) {
    Py_VISIT(g.name.ptr());
    if (int stop = visit_seen(g.seen, visit, arg)) return stop;
  }
  return 0;
}

}  // namespace tn::python
