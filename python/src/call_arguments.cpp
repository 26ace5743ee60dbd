#include "call_arguments.h"

#include <bit>

#include "base/error.h"
#include "ir/node.h"
#include "tensor_tree.h"

namespace tn::python {

namespace {

/// What a word stands for, where it is not the address of a tensor's type.
enum Tag : uint64_t { kReal = 1, kObject, kTree };

bool same_object(const nb::object& a, const nb::object& b) {
  if (a.ptr() == b.ptr()) return true;
  if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr())) return false;
  int same = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (same >= 0) return same;
  PyErr_Clear();
  fail(Fault::type, Hint{"pass tensors, or something that can be compared with =="},
       "compile: constant arguments cannot be compared: {}", Py_TYPE(a.ptr())->tp_name);
}

}  // namespace

bool Signature::operator==(const Signature& other) const {
  return words == other.words &&
         std::equal(rest.begin(), rest.end(), other.rest.begin(), other.rest.end(), same_object);
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
  } else if (PyFloat_CheckExact(o)) {
    word(kReal);
    return word(std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(o)));
  } else if (!PyLong_Check(o) && is_array(o)) {
    tensors.push_back(tensor_from(o, {}, Copy::always));
  } else {
    return add_object(leaves_[at]);
  }
  at_.push_back(at);
  word(reinterpret_cast<uint64_t>(type_of(tensors.back())));
}

nb::object CallArguments::call(PyObject* f, const Tensors& others) const {
  Leaves made = leaves_;
  for (size_t k = 0; k < at_.size(); ++k) made[at_[k]] = wrapped(Tensor(others[k]));
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
