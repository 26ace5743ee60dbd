// The random state of the calling thread; the draws themselves are ops.
#include "core.h"
#include "ir/place.h"
#include "ops/draws.h"
#include "tenon/random.h"

namespace tn::python {

namespace {

/// Once for a line of the user's.
void warn_of_frozen_key() {
  const char* text =
      "random: drawn without a key while compiling, so every call gives the same numbers; capture "
      "the state with compile(f, inputs=tn.random.state, outputs=tn.random.state), or pass a key; "
      "a model that is not trained any more draws nothing after model.eval()";
  static nb::dict& warned = *new nb::dict;  // by file; outlives the interpreter
  Place place = resolve(current_loc);
  nb::str file(place.file.c_str());
  if (!warned.contains(file)) warned[file] = nb::dict();
  if (PyErr_WarnExplicit(PyExc_UserWarning, text, file.c_str(), place.line, nullptr,
                         nb::object(warned[file]).ptr()) < 0)
    throw nb::python_error();
}

}  // namespace

void bind_random(nb::module_& m) {
  m.def("_random_seed", [](uint64_t number) { random::seed(number); });
  m.def("_random_state", [] { return wrapped(random::state()); });
  m.def(
      "_set_random_state",
      [](nb::handle key) { random::set_state(read_tensor(key.ptr(), "random.state")); },
      users_call);
  ops::on_frozen_key = warn_of_frozen_key;
  m.def("_next_key", [] { return wrapped(random::next_key()); }, users_call);
}

}  // namespace tn::python
