#pragma once
// Sizes in Python: integers, and inside a traced function numbers that stand for sizes of any
// value.
#include "core.h"

namespace tn::python {

void bind_dims(nb::module_& m);

/// An int, or a Dim for a symbolic one.
nb::object size_object(Offset size);
/// The symbolic size that `object` is; false when it is something else.
bool read_symbolic(PyObject* object, Offset& out);
/// A Dim as a number that is known when the function runs; other objects as they are.
nb::object without_dim(PyObject* object);
/// A size or an integer. Throws, in the name of `what`, when it is neither.
Offset read_size(PyObject* object, std::string_view what, std::string_view op = {});

}  // namespace tn::python
