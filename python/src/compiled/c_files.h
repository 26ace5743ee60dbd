#pragma once
// Executables as C files, and functions of compiled ones.
#include "core.h"

namespace tn::python {

void bind_c_files(nb::module_& m);

}  // namespace tn::python
