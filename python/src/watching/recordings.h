#pragma once
// Recordings of what happens in the library, for Python to write and draw.
#include <nanobind/nanobind.h>

namespace tn::python {

void bind_events(nanobind::module_& m);

}  // namespace tn::python
