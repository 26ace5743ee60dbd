// Groups of workers and their collectives.
#include <nanobind/stl/string.h>

#include "core.h"
#include "tenon/distributed.h"
#include "workers/launch_environment.h"

namespace tn::python {
namespace {

using distributed::Group;

using Collective = Tensor (*)(const Tensor& x, const Group& group, distributed::Place place);

/// Records a collective of a tensor; other values are converted by the caller.
template <Collective F>
nb::object collective(nb::handle x, const Group& group) {
  UserCall call;
  return wrapped(F(self_tensor(x.ptr()), group, {}));
}

nb::object broadcast(nb::handle x, int root, const Group& group) {
  UserCall call;
  return wrapped(distributed::broadcast(self_tensor(x.ptr()), root, group));
}

nb::object send(nb::handle x, int to, const Group& group) {
  UserCall call;
  return wrapped(distributed::send(self_tensor(x.ptr()), to, group));
}

nb::object recv_like(nb::handle x, int from, const Group& group) {
  UserCall call;
  return wrapped(distributed::recv_like(self_tensor(x.ptr()), from, group));
}

/// Whether this process was started as a worker. What it starts from now on knows that it is none.
bool is_worker() {
  try {
    return workers::find_launch().by != workers::LaunchEnvironment::By::nobody;
  } catch (const Error&) {
    return false;  // the first use of workers reports it
  }
}

void barrier(const Group& group) {
  UserCall call;
  nb::gil_scoped_release free;
  group.barrier();
}

}  // namespace

void bind_distributed(nb::module_& m) {
  nb::class_<Group>(m, "_WorkerGroup", "Workers that exchange tensors.")
      .def("rank", &Group::rank, "The number of this worker, from 0.")
      .def("size", &Group::size, "The number of workers.")
      .def(
          "split",
          [](const Group& group, int color, int key) {
            UserCall call;
            nb::gil_scoped_release free;
            return group.split(color, key);
          },
          nb::arg("color"), nb::arg("key") = 0,
          "Workers that give the same `color` form a group, in the order of `key`.")
      .def("__repr__", [](const Group& g) {
        return format("<workers '{}': rank {} of {}>", g.name(), g.rank(), g.size());
      });
  m.def("_is_worker", is_worker);
  m.def("_init_workers", [] {
    UserCall call;
    return distributed::init();
  });
  m.def(
      "_mesh_axis",
      [](const std::string& name) {
        UserCall call;
        return distributed::axis(name);
      },
      nb::arg("name"));
  m.def(
      "_axis_index",
      [](const std::string& name) {
        UserCall call;
        return wrapped(distributed::axis_index(name));
      },
      nb::arg("name"));
  m.def("_barrier", barrier, nb::arg("group"));
  m.def("_all_sum", collective<distributed::all_sum>, nb::arg("x"), nb::arg("group"));
  m.def("_all_max", collective<distributed::all_max>, nb::arg("x"), nb::arg("group"));
  m.def("_all_min", collective<distributed::all_min>, nb::arg("x"), nb::arg("group"));
  m.def("_all_gather", collective<distributed::all_gather>, nb::arg("x"), nb::arg("group"));
  m.def("_sum_scatter", collective<distributed::sum_scatter>, nb::arg("x"), nb::arg("group"));
  m.def("_all_to_all", collective<distributed::all_to_all>, nb::arg("x"), nb::arg("group"));
  m.def("_sum_gradients", collective<distributed::sum_gradients>, nb::arg("x"), nb::arg("group"));
  m.def("_sum_replicated", collective<distributed::sum_replicated>, nb::arg("x"), nb::arg("group"));
  m.def("_send", send, nb::arg("x"), nb::arg("to"), nb::arg("group"));
  m.def("_recv_like", recv_like, nb::arg("x"), nb::arg("source"), nb::arg("group"));
  m.def("_broadcast", broadcast, nb::arg("x"), nb::arg("root"), nb::arg("group"));
}

}  // namespace tn::python
