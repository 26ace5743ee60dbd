#include "compiled/call_arguments.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "ir/number.h"
#include "ir/watch.h"
#include "tensors/dims.h"
#include "trees/live_trees.h"
#include "trees/module_stand_ins.h"
#include "trees/tensor_tree.h"

namespace tn::python {

namespace {

/// What a word stands for, where it is no class of a tree. Given: a number, by a trace around.
enum Tag : uint64_t {
  kTensor = 1,
  kKeptTensor,
  kRefusedTensor,
  kGiven,
  kReal,
  kInteger,
  kConstant,
  kTree
};

[[noreturn]] void fail_changeable(std::string_view what, PyObject* o) {
  fail(Fault::type, Hint{"pass something that does not change, such as a tuple"},
       "compile: {} cannot be hashed: {}", what, type_name(o));
}

/// What has no hash, since it is compared by what it holds now.
bool is_changeable(PyObject* o) {
  return Py_TYPE(o)->tp_hash == PyObject_HashNotImplemented && !PySlice_Check(o);
}

/// Of what is changeable: whether its attributes are all, which are compared where they were read.
bool is_guarded(PyObject* o) {
  nb::object ask = nb::module_::import_("tenon.object_reads").attr("is_guarded");
  return nb::cast<bool>(ask(nb::handle(o)));
}

/// Field by field.
bool same_dataclass(PyObject* a, PyObject* b, nb::handle fields) {
  for (nb::handle name : fields)
    if (!same_object(nb::getattr(a, name).ptr(), nb::getattr(b, name).ptr())) return false;
  return true;
}

/// Both are equal as sets: each element has one that it may be the same as.
bool same_elements(nb::handle a, nb::handle b) {
  for (nb::handle x : a) {
    bool found = false;
    for (nb::handle y : b) found = found || same_object(x.ptr(), y.ptr());
    if (!found) return false;
  }
  return true;
}

}  // namespace

bool is_exact_integer(PyObject* o) {
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  constexpr long long kMost = 1LL << 53;
  return !overflow && value >= -kMost && value <= kMost;
}

PyObject* referent(PyObject* weak) {
#if PY_VERSION_HEX < 0x030D0000
  PyObject* found = PyWeakref_GetObject(weak);
  return found == Py_None ? nullptr : found;
#else
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(weak, &found) > 0) Py_DECREF(found);  // the caller gets no reference
  return found;
#endif
}

bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  auto same_bits = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  };
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  if (PyTuple_Check(a)) {
    Py_ssize_t count = PyTuple_GET_SIZE(a);
    if (count != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!same_object(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same == 0) return false;
  if (same > 0 && PyFrozenSet_Check(a)) return same_elements(a, b);
  if (same > 0) {
    nb::object fields = nb::getattr(a, "__dataclass_fields__", nb::none());
    return fields.is_none() || same_dataclass(a, b, fields);
  }
  PyErr_Clear();
  fail(Fault::type, Hint{"pass tensors, or something that can be compared with =="},
       "compile: constant arguments cannot be compared: {}", type_name(a));
}

bool CallKey::Constant::is(const Constant& now) const {
  if (weak) return referent(value.ptr()) == now.value.ptr();
  if (is_changeable(value.ptr())) return value.is(now.value);
  return same_object(value.ptr(), now.value.ptr());
}

bool CallKey::is_like(const CallKey& call) const {
  auto same = [](const nb::object& a, const nb::object& b) {
    return same_object(a.ptr(), b.ptr());
  };
  return words == call.words && std::ranges::equal(data, call.data, same) &&
         (!keywords.is_valid() || same(keywords, call.keywords)) &&
         std::ranges::equal(constants, call.constants, std::mem_fn(&Constant::is));
}

void CallKey::hold_weakly() {
  for (Constant& c : constants) {
    PyTypeObject* type = Py_TYPE(c.value.ptr());
    bool by_identity =
        type->tp_richcompare == PyBaseObject_Type.tp_richcompare || is_changeable(c.value.ptr());
    if (!by_identity || !PyType_SUPPORTS_WEAKREFS(type)) continue;
    c.value = checked(PyWeakref_NewRef(c.value.ptr(), nullptr)), c.weak = true;
  }
}

bool CallKey::is_dead() const {
  return std::ranges::any_of(constants,
                             [](const Constant& c) { return c.weak && !referent(c.value.ptr()); });
}

bool StaticArguments::has(size_t position) const {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

bool StaticArguments::has(PyObject* name) const {
  return std::any_of(names.begin(), names.end(), [&](const nb::object& n) {
    return n.ptr() == name || PyUnicode_Compare(n.ptr(), name) == 0;
  });
}

bool CallKey::takes_numbers_of(const CallKey& call) const {
  return std::ranges::equal(numbers, call.numbers, [](const Number& known, const Number& now) {
    return known.open || known.bits == now.bits;
  });
}

void CallKey::clear() {
  keywords.reset();
  words.clear(), types.clear(), at.clear(), kept.clear(), numbers.clear();
  constants.clear(), data.clear(), parts.clear();
}

void CallArguments::clear() {
  key.clear();
  tensors.clear(), leaves_.clear(), modules_.clear(), have_gradients_.clear(), opened.clear();
}

void CallArguments::read(nb::handle f, PyObject* const* args, size_t positional, PyObject* keywords,
                         const StaticArguments& constants) {
  bool has_constants = !constants.is_empty();
  function = f;
  key.positional = positional;
  key.keywords = nb::borrow(keywords);
  word(positional);
  word(keywords != nullptr);
  word(inherited);
  for (size_t i = 0; i < positional; ++i) add(args[i], has_constants && constants.has(i));
  Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    add(args[static_cast<Py_ssize_t>(positional) + i],
        has_constants && constants.has(PyTuple_GET_ITEM(keywords, i)));
  state_ = gradients_ = leaves_.size();
}

void CallArguments::add(PyObject* argument, bool constant) {
  bool leaf = tree_type(argument)->kind == TreeType::Kind::leaf;
  if (!leaf && !constant) return add_tree(argument, Structure::Look::arguments);
  key.parts.emplace_back();
  leaves_.push_back(nb::borrow(argument));
  if (!constant) return add_leaf(leaves_.size() - 1);
  if (is_tensor(argument))
    fail(Fault::type, Hint{"leave it out of static_argnums and static_argnames"},
         "compile: a static argument is a tensor: {}", *type_of(*tensor_in(argument)));
  bool has_hash = !PySlice_Check(argument) && !is_changeable(argument);
  if (has_hash && PyObject_Hash(argument) == -1) {
    PyErr_Clear();
    fail_changeable("a static argument", argument);
  }
  add_constant(leaves_.size() - 1, "a static argument");
}

void CallArguments::read_state(PyObject* state) {
  add_tree(state, Structure::Look::live);
  add_gradients();
}

void CallArguments::add_gradients() {
  gradients_ = leaves_.size();
  for (size_t k = 0, count = tensors.size(); k < count; ++k) {
    const Node& node = *tensors[k].node();
    if (is_argument(k) || !is_variable(node)) continue;
    Tensor gradient = gradient_at(node);
    word(gradient.defined());
    if (!gradient.defined()) continue;
    have_gradients_.push_back(k);
    leaves_.push_back(wrapped(std::move(gradient)));
    add_leaf(leaves_.size() - 1);
  }
  key.parts.push_back({.leaves = have_gradients_.size()});
}

size_t CallArguments::place_of_gradient(size_t k) const {
  auto found = std::ranges::lower_bound(have_gradients_, k);
  return key.at.size() - static_cast<size_t>(have_gradients_.end() - found);
}

Tensor CallArguments::gradient(size_t k) const {
  bool there = std::ranges::binary_search(have_gradients_, k);
  return there ? tensors[place_of_gradient(k)] : Tensor();
}

void CallArguments::add_tree(PyObject* tree, Structure::Look look) {
  CallKey::Part& part = key.parts.emplace_back();
  size_t before = leaves_.size();
  part.structure.emplace(tree, leaves_, look, &modules_);
  part.leaves = leaves_.size() - before;
  word(kTree);
  for (const Structure::Node& node : part.structure->nodes()) {
    word(reinterpret_cast<uint64_t>(node.type));
    word(node.children);
    if (node.data.is_valid()) key.data.push_back(node.data);
  }
  for (size_t i = before; i < leaves_.size(); ++i) add_leaf(i);
}

void CallArguments::add_constant(size_t at, std::string_view what) {
  PyObject* o = leaves_[at].ptr();
  if (is_changeable(o) && !is_guarded(o)) fail_changeable(what, o);
  word(kConstant);
  key.constants.push_back({at, leaves_[at]});
}

void CallArguments::add_leaf(size_t at) {
  PyObject* o = leaves_[at].ptr();
  if (Tensor* t = tensor_in(o)) {
    tensors.push_back(*t);
  } else if (PyFloat_CheckExact(o)) {
    word(kReal);
    return key.numbers.push_back({at, true, std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(o))});
  } else if (is_exact_integer(o)) {
    word(kInteger);
    return key.numbers.push_back({at, false, static_cast<uint64_t>(PyLong_AsLongLong(o))});
  } else if (nb::object number = without_dim(o); !number.is(o)) {
    tensors.push_back(*tensor_in(number.ptr()));
    leaves_[at] = std::move(number);
  } else if (!PyLong_Check(o) && is_array(o)) {
    tensors.push_back(tensor_from(o, {}, Copy::always));
  } else {
    return add_constant(at, "an argument that is constant");
  }
  const Tensor& read = tensors.back();
  uint8_t watched = watch_bits(*read.node());
  key.at.push_back(at);
  key.types.push_back(type_of(read));
  key.kept.push_back((watched & kKept) != 0);
  word(is_given_number(read) ? kGiven
       : watched & kKept     ? kKeptTensor
       : watched & kRefused  ? kRefusedTensor
                             : kTensor);
}

void CallArguments::append_numbers(const std::vector<size_t>& given, Tensors& to) const {
  for (size_t n : given) {
    const CallKey::Number& number = key.numbers[n];
    to.push_back(as_number(from_bytes(&number.bits, number.real ? DType::f64 : DType::i64, {})));
  }
}

Leaves CallArguments::substituted(const Tensors& others, const std::vector<size_t>& given) const {
  Leaves made = leaves_;
  for (size_t k = 0; k < key.at.size(); ++k) made[key.at[k]] = wrapped(Tensor(others[k]));
  for (size_t k = 0; k < given.size(); ++k)
    made[key.numbers[given[k]].leaf] = wrapped(Tensor(others[key.at.size() + k]));
  return made;
}

void CallArguments::assign_state(PyObject* state, std::span<const nb::object> leaves) const {
  assign_leaves(state, state_structure(), leaves.subspan(state_, gradients_ - state_),
                "compile: inputs");
}

nb::object CallArguments::call(std::span<const nb::object> leaves) const {
  size_t named = key.keywords.is_valid() ? nb::len(key.keywords) : 0;
  Leaves args;
  StandIns stand_ins(modules_);
  for (size_t i = 0; i < key.positional + named; ++i) {
    const CallKey::Part& part = key.parts[i];
    std::span<const nb::object> own = leaves.first(part.leaves);
    args.push_back(part.structure ? part.structure->build(own, &stand_ins) : own[0]);
    leaves = leaves.subspan(part.leaves);
  }
  std::vector<PyObject*> plain;
  for (const nb::object& a : args) plain.push_back(a.ptr());
  return checked(
      PyObject_Vectorcall(function.ptr(), plain.data(), key.positional, key.keywords.ptr()));
}

size_t CallArguments::part(size_t k) const {
  size_t part = 0;
  for (size_t end = key.parts[0].leaves; key.at[k] >= end; end += key.parts[part].leaves) ++part;
  return part;
}

}  // namespace tn::python
