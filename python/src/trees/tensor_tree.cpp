#include "trees/tensor_tree.h"

#include <nanobind/stl/string.h>

#include <complex>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "tensors/dims.h"

namespace tn::python {

namespace {

bool is_given(PyObject* o) {
  Tensor* t = tensor_in(o);
  return t && is_given_number(*t);
}

bool is_plain_number(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyComplex_CheckExact(o) || is_given(o);
}

/// A number in the place of a floating tensor. `real` is what it becomes unless it is complex.
Tensor float_tensor(PyObject* o, DType real) {
  if (is_given(o)) return number_as(*tensor_in(o), real);
  Py_complex z = PyComplex_AsCComplex(o);
  if (PyErr_Occurred()) throw nb::python_error();
  if (!PyComplex_CheckExact(o)) return make_scalar(z.real, real, false);
  DType type = kind_of(real) == Kind::complex ? real : DType::c64;
  return make_scalar(std::complex<double>(z.real, z.imag), type, false);
}

bool is_none(PyObject* o) { return o == Py_None; }

}  // namespace

bool is_array(PyObject* o) {
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o)) return false;
  return PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__dlpack__");
}

TensorTree::TensorTree(PyObject* tree, Numbers numbers, Structure::Look look)
    : structure(tree, leaves, look, &modules) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i] = without_dim(leaves[i].ptr());
    PyObject* o = leaves[i].ptr();
    bool number = is_plain_number(o);
    if (number && (numbers == Numbers::are_tensors || (numbers == Numbers::first && !i)))
      tensors.push_back(float_tensor(o, DType::f32));
    else if (Tensor* t = tensor_in(o); t && (!number || numbers == Numbers::stay_known))
      tensors.push_back(*t);
    else if (!number && is_array(o))
      tensors.push_back(tensor_from(o, {}, Copy::always));
    else
      continue;
    at.push_back(i);
  }
}

Leaves TensorTree::leaves_with(const Tensors& others) const {
  Leaves made = leaves;
  for (size_t k = 0; k < at.size(); ++k) made[at[k]] = wrapped(Tensor(others[k]));
  return made;
}

nb::object TensorTree::with(const Tensors& others) const {
  return structure.build(leaves_with(others));
}

nb::object TensorTree::arguments(const Tensors& others, StandIns& stand_ins) const {
  return structure.build(leaves_with(others), &stand_ins);
}

nb::object TensorTree::derivatives(const Tensors& others) const {
  Leaves made(leaves.size(), nb::none());
  for (size_t k = 0; k < at.size(); ++k)
    if (others[k].defined()) made[at[k]] = wrapped(Tensor(others[k]));
  return structure.build(made);
}

Tensors TensorTree::matching(PyObject* tree, std::string_view subject) const {
  Leaves given = structure.match(tree, is_none, subject);
  Tensors made;
  for (size_t k = 0; k < at.size(); ++k) {
    PyObject* o = given[at[k]].ptr();
    if (o == Py_None)
      made.emplace_back();
    else
      made.push_back(is_plain_number(o) ? float_tensor(o, tensors[k].dtype())
                                        : read_tensor(o, subject.substr(0, subject.find(':'))));
  }
  return made;
}

void TensorTree::check_whole(std::string_view transform, const NameOf& name) const {
  for (size_t i = 0, k = 0; i < leaves.size(); ++i) {
    if (k < at.size() && at[k] == i)
      ++k;
    else
      fail(Fault::type, "{}: {} is a {}, not a tensor", transform, name(i),
           type_name(leaves[i].ptr()));
  }
}

}  // namespace tn::python
