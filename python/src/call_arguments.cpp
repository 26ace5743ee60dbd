#include "call_arguments.h"

#include <bit>

#include "base/error.h"
#include "ir/number.h"
#include "tensor_tree.h"

namespace tn::python {

namespace {

/// What a word stands for, where it is not the address of a tensor's type.
enum Tag : uint64_t { kReal = 1, kInteger, kObject, kTree };
/// Added to the address of the type of a number given by a trace around this call.
constexpr uint64_t kGiven = 1;

/// Whether a float holds it: then it becomes the same whether it is known or given at run time.
bool is_exact_integer(PyObject* o) {
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  constexpr long long kMost = 1LL << 53;
  return !overflow && value >= -kMost && value <= kMost;
}

/// Equal with equal classes, also inside tuples: 1, True and 1.0 differ, and so do 0.0 and -0.0.
bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  if (PyTuple_CheckExact(a)) {
    Py_ssize_t count = PyTuple_GET_SIZE(a);
    if (count != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!same_object(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same >= 0) return same;
  PyErr_Clear();
  fail(Fault::type, Hint{"pass tensors, or something that can be compared with =="},
       "compile: constant arguments cannot be compared: {}", Py_TYPE(a)->tp_name);
}

}  // namespace

bool Signature::same_rest(const Signature& other) const {
  return std::equal(rest.begin(), rest.end(), other.rest.begin(), other.rest.end(),
                    [](auto& a, auto& b) { return same_object(a.ptr(), b.ptr()); });
}

bool StaticArguments::has(size_t position) const {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

bool StaticArguments::has(PyObject* name) const {
  return std::any_of(names.begin(), names.end(), [&](const nb::object& n) {
    return n.ptr() == name || PyUnicode_Compare(n.ptr(), name) == 0;
  });
}

CallArguments::CallArguments(PyObject* const* args, size_t positional, PyObject* keywords,
                             const StaticArguments& constants)
    : positional_(positional), keywords_(nb::borrow(keywords)) {
  size_t named = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  signature.words.reserve(8);
  parts_.reserve(positional + named);
  leaves_.reserve(positional + named);
  tensors.reserve(positional + named);
  word(positional);
  if (named) signature.rest.push_back(keywords_);
  for (size_t i = 0; i < positional; ++i) add(args[i], constants.has(i));
  for (size_t i = 0; i < named; ++i)
    add(args[positional + i],
        constants.has(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i))));
}

void CallArguments::add(PyObject* argument, bool constant) {
  Part& part = parts_.emplace_back();
  if (constant) {
    leaves_.push_back(nb::borrow(argument));
    if (is_tensor(argument))
      fail(Fault::type, Hint{"leave it out of static_argnums and static_argnames"},
           "compile: a static argument is a tensor: {}", *type_of(*tensor_in(argument)));
    return add_object(leaves_.back());
  }
  size_t before = leaves_.size();
  if (tree_type(argument)->kind == TreeType::Kind::leaf) {
    leaves_.push_back(nb::borrow(argument));
  } else {
    part.structure.emplace(argument, leaves_);
    part.leaves = leaves_.size() - before;
    word(kTree);
    for (const Structure::Node& node : part.structure->nodes()) {
      word(reinterpret_cast<uint64_t>(node.type));
      word(node.children);
      if (node.data.is_valid()) signature.rest.push_back(node.data);
    }
  }
  for (size_t i = before; i < leaves_.size(); ++i) add_leaf(i);
}

void CallArguments::add_object(nb::object object) {
  word(kObject);
  signature.rest.push_back(std::move(object));
}

void CallArguments::add_leaf(size_t at) {
  PyObject* o = leaves_[at].ptr();
  if (Tensor* t = tensor_in(o)) {
    tensors.push_back(*t);
  } else if (PyFloat_CheckExact(o) || is_exact_integer(o)) {
    bool real = PyFloat_CheckExact(o);
    word(real ? kReal : kInteger);
    numbers.push_back({at, signature.words.size()});
    return word(real ? std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(o))
                     : static_cast<uint64_t>(PyLong_AsLongLong(o)));
  } else if (!PyLong_Check(o) && is_array(o)) {
    tensors.push_back(tensor_from(o, {}, Copy::always));
  } else {
    return add_object(leaves_[at]);
  }
  at_.push_back(at);
  const Tensor& t = tensors.back();
  word(reinterpret_cast<uint64_t>(type_of(t)) + (is_given_number(t) ? kGiven : 0));
}

Tensors CallArguments::with_numbers(const std::vector<size_t>& given) const {
  Tensors all = tensors;
  for (size_t n : given) {
    uint64_t bits = signature.words[numbers[n].word];
    DType type = signature.words[numbers[n].word - 1] == kReal ? DType::f64 : DType::i64;
    all.push_back(as_number(from_bytes(&bits, type, {})));
  }
  return all;
}

nb::object CallArguments::call(PyObject* f, const Tensors& others,
                               const std::vector<size_t>& given) const {
  Leaves made = leaves_;
  for (size_t k = 0; k < at_.size(); ++k) made[at_[k]] = wrapped(Tensor(others[k]));
  for (size_t k = 0; k < given.size(); ++k)
    made[numbers[given[k]].leaf] = wrapped(Tensor(others[at_.size() + k]));
  Leaves args;
  std::span<const nb::object> left = made;
  for (const Part& part : parts_) {
    std::span<const nb::object> own = left.first(part.leaves);
    args.push_back(part.structure ? part.structure->build(own) : own[0]);
    left = left.subspan(part.leaves);
  }
  std::vector<PyObject*> plain;
  for (const nb::object& a : args) plain.push_back(a.ptr());
  PyObject* result = PyObject_Vectorcall(f, plain.data(), positional_, keywords_.ptr());
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

}  // namespace tn::python
