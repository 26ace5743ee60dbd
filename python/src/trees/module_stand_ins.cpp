#include "trees/module_stand_ins.h"

#include <algorithm>

namespace tn::python {

namespace {

struct StandIn {
  nb::object original, copy;
};

thread_local std::vector<StandIn> stand_ins;  // of all calls on this thread, the outer ones first

/// Modules with the same attributes are the same, as that of `nn.checkpoint(module)` is.
PyObject* identity(const nb::object& module) {
  return checked(PyObject_GenericGetDict(module.ptr(), nullptr)).ptr();
}

/// The copies of a module and their copies, the newest first.
nb::list stand_ins_of(nb::object module) {
  std::vector<PyObject*> known = {identity(module)};
  std::vector<nb::object> found;
  for (const StandIn& each : stand_ins) {
    if (std::ranges::find(known, identity(each.original)) == known.end()) continue;
    known.push_back(identity(each.copy));
    found.push_back(each.copy);
  }
  nb::list list;
  for (auto copy = found.rbegin(); copy != found.rend(); ++copy) list.append(*copy);
  return list;
}

}  // namespace

StandIns::StandIns(const Leaves& originals) : next_(originals.data()), outer_(stand_ins.size()) {}

/// Objects may run code when they die: they are no longer in the list then.
StandIns::~StandIns() {
  while (stand_ins.size() > outer_) {
    StandIn last = std::move(stand_ins.back());
    stand_ins.pop_back();
  }
}

void StandIns::add(nb::object original, nb::object copy) {
  if (PyObject_TypeCheck(copy.ptr(), module_type))  // the user's own class may make anything
    stand_ins.push_back({std::move(original), std::move(copy)});
}

void bind_stand_ins(nb::module_& m) { m.def("_stand_ins_of", stand_ins_of, nb::arg("module")); }

}  // namespace tn::python
