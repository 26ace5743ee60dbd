// Modes: what ops do besides computing while something is in force.
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "core.h"
#include "ir/precision.h"
#include "ir/trace.h"
#include "tenon/amp.h"
#include "tenon/debug.h"

namespace tn::python {
namespace {

nb::object narrow_object() {
  std::optional<DType> type = amp::autocast_type();
  return type ? dtype_object(*type) : nb::none();
}

/// Sets the narrow type of this thread, or none, and returns the former one.
nb::object set_autocast(nb::handle dtype) {
  UserCall call;
  nb::object before = narrow_object();
  DType type = dtype.is_none() ? DType::f32 : read_dtype(dtype.ptr());
  if (!dtype.is_none()) amp::Autocast checked(type);
  narrow_type = type;
  return before;
}

/// "low", "full" or "any".
const char* precision_of(const std::string& name) {
  UserCall call;
  const OpDef* op = find_op(name);
  if (!op) fail("amp: no op is called {}", name);
  constexpr const char* kNames[] = {"any", "low", "full"};
  return kNames[static_cast<int>(op->precision)];
}

/// 0: nothing, 1: NaNs, 2: infinities too. Returns what was looked for before.
int set_debug_nans(int sought) {
  return static_cast<int>(debug_nans(static_cast<BadValues>(sought)));
}

}  // namespace

void bind_modes(nb::module_& m) {
  m.def("_autocast", narrow_object);
  m.def("_set_autocast", set_autocast, nb::arg("dtype").none());
  m.def("_set_debug_nans", set_debug_nans, nb::arg("sought"));
  m.def("_is_tracing", [] { return Trace::tracing() != nullptr; });
  m.def("_precision_of", precision_of, nb::arg("op"));
}

}  // namespace tn::python
