#pragma once
// The command `tenon` inside Python.
#include <nanobind/nanobind.h>

namespace tn::python {

void bind_command_line(nanobind::module_& m);

}  // namespace tn::python
