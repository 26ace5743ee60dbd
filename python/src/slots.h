#pragma once
// What slots of types need, beside `guarded`.
#include <Python.h>

namespace tn::python {

inline PyObject* not_implemented() { Py_RETURN_NOTIMPLEMENTED; }

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace tn::python
