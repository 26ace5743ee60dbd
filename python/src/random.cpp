// The random state of the calling thread; the draws themselves are ops.
#include "tenon/random.h"

#include "core.h"

namespace tn::python {

void bind_random(nb::module_& m) {
  m.def("_random_seed", [](uint64_t number) { random::seed(number); });
  m.def("_random_state", [] { return wrapped(random::state()); });
  m.def("_set_random_state", [](nb::handle key) {
    UserCall call;
    random::set_state(read_tensor(key.ptr(), "random.state"));
  });
  m.def("_next_key", [] {
    UserCall call;
    return wrapped(random::next_key());
  });
}

}  // namespace tn::python
