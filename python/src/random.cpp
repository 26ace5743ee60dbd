// The random state of the calling thread; the draws themselves are ops.
#include "tenon/random.h"

#include "core.h"
#include "ops/draws.h"

namespace tn::python {

void bind_random(nb::module_& m) {
  m.def("_random_seed", [](uint64_t number) { random::seed(number); });
  m.def("_random_state", [] { return wrapped(random::state()); });
  m.def("_set_random_state", [](nb::handle key) {
    UserCall call;
    random::set_state(read_tensor(key.ptr(), "random.state"));
  });
  ops::warn_of_frozen_key = [] {
    const char* text =
        "random: drawn without a key while compiling, so every call gives the same numbers; pass "
        "the function a key (key=tn.random.key(...))";
    if (PyErr_WarnEx(PyExc_UserWarning, text, 2) < 0) throw nb::python_error();
  };
  m.def("_next_key", [] {
    UserCall call;
    return wrapped(random::next_key());
  });
}

}  // namespace tn::python
