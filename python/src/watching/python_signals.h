#pragma once
// Signals for Python.
#include "core.h"

namespace tn::python {

void bind_signals(nb::module_& m);

}  // namespace tn::python
