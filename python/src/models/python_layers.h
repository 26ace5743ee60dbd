#pragma once
// Layers in Python.
#include <nanobind/nanobind.h>

namespace tn::python {

void bind_layers(nanobind::module_& m);

}  // namespace tn::python
