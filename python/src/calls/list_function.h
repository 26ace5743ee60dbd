#pragma once
// Python functions on lists of tensors as functions of the C++ API.
#include <nanobind/nanobind.h>

#include "tenon/flat.h"

namespace tn::python {

/// Keeps a Python object for C++ code that may let go of it on any thread.
std::shared_ptr<PyObject> keep(nanobind::object object);
/// Calls `f` with a list of tensors; what it returns must be a list of tensors (None: a zero).
Function python_function(nanobind::object f, std::string_view what);
/// An axis of vmap.
int read_axis(nanobind::handle axis);
/// Null tensors are None.
nanobind::list tensor_list(const Tensors& tensors);
Tensors read_tensors(nanobind::handle list, std::string_view what);

}  // namespace tn::python
