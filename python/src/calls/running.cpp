// Running, memory and threads.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <climits>

#include "base/error.h"
#include "core.h"
#include "eval/eval.h"
#include "ir/graph.h"
#include "ir/interned.h"
#include "plan/backend.h"
#include "runtime/memory_use.h"
#include "runtime/threads.h"
#include "tenon/matmul_precision.h"
#include "trees/trees.h"

namespace tn::python {
namespace {

/// At least `least`; what is above all numbers is the highest one.
size_t whole_number(nb::handle given, size_t least, std::string_view what) {
  if (!PyIndex_Check(given.ptr()) || PyBool_Check(given.ptr()))
    fail(Fault::type, "{}: an integer is needed, not {}", what, nb::repr(given).c_str());
  nb::object number = checked(PyNumber_Index(given.ptr()));
  if (PyObject_RichCompareBool(number.ptr(), nb::int_(least).ptr(), Py_LT) == 1)
    fail("{}: at least {} is needed: {}", what, least, nb::repr(number).c_str());
  size_t value = PyLong_AsSize_t(number.ptr());
  if (!PyErr_Occurred()) return value;
  PyErr_Clear();
  return SIZE_MAX;
}

/// The tensors in trees of arguments. What else trees hold (flags, names, functions) is left alone.
Tensors tensors_of(const nb::args& args) {
  for (nb::handle arg : args)
    if (live_type(arg.ptr())->kind == TreeType::Kind::leaf && !is_tensor(arg.ptr()) &&
        !PyNumber_Check(arg.ptr()))
      fail(Fault::type, "eval: not a tensor, nor a tree of tensors: {}", type_name(arg.ptr()));
  return tensors_in(args.ptr(), Structure::Look::live);  // in C++ also through modules
}

std::string graph_text(const nb::args& args) {
  UserCall call;
  Tensors out = tensors_of(args);
  return to_text(capture({}, out).graph);
}

/// That of an argument; the host's by default.
Device device_or_host(nb::handle device) {
  return device.is_none() ? Device() : read_device(device.ptr());
}

void bind_memory(nb::module_& m) {
  auto of = [&](const char* name, size_t MemoryUse::* field, const char* doc) {
    m.def(
        name, [field](nb::handle device) { return memory_use(device_or_host(device)).*field; },
        users_call, nb::arg("device") = nb::none(), doc);
  };
  of("active_memory", &MemoryUse::active, "Bytes of all live tensors of the host, or of a device.");
  of("peak_memory", &MemoryUse::peak, "The highest active memory since the last reset.");
  of("cache_memory", &MemoryUse::cache, "Bytes of freed blocks kept for reuse.");
  of("memory_limit", &MemoryUse::limit, "Requests that would need more fail.");
  m.def(
      "reset_peak_memory", [](nb::handle device) { tn::reset_peak_memory(device_or_host(device)); },
      users_call, nb::arg("device") = nb::none());
  m.def(
      "clear_cache", [](nb::handle device) { tn::clear_cache(device_or_host(device)); }, users_call,
      nb::arg("device") = nb::none(), "Gives the kept blocks back to the system or the device.");
  m.def(
      "set_memory_limit",
      [](nb::handle bytes, nb::handle device) {
        size_t limit = whole_number(bytes, 0, "set_memory_limit");
        return tn::set_memory_limit(limit, device_or_host(device));
      },
      users_call, nb::arg("bytes"), nb::arg("device") = nb::none(),
      "Sets the limit and returns the former one; 0 restores the default.");
}

void bind_products(nb::module_& m) {
  m.def(
      "set_matmul_precision",
      [](nb::handle precision) {
        std::string name = nb::isinstance<nb::str>(precision) ? nb::cast<std::string>(precision)
                                                              : nb::repr(precision).c_str();
        return std::string(tn::set_matmul_precision(name));
      },
      users_call, nb::arg("precision"),
      "Set how GPUs compute products of float32, in the whole process; return the former "
      "setting.\n\n"
      "\"highest\", the default, is float32. \"high\" may round operands to TF32 (10 bits of "
      "mantissa), which is several times as fast. \"exact\" has the bits of the CPU, for every "
      "element type: own kernels add in its order. CPUs compute all the same, whatever is set. "
      "A product is computed as the setting is when its value is asked for; a compiled function "
      "has a trace for each setting.");
  m.def(
      "matmul_precision", [] { return std::string(tn::matmul_precision()); },
      "The setting of set_matmul_precision.");
}

}  // namespace

void bind_runtime(nb::module_& m) {
  m.def(
      "eval", [](nb::args args) { evaluate(tensors_of(args)); }, users_call,
      "Computes tensors, also those in trees, in one run.");
  m.def(
      "async_eval",
      [](nb::args args) {
        Tensors tensors = tensors_of(args);
        nb::gil_scoped_release unlock;
        tn::async_eval(tensors);
      },
      users_call, "Starts computing tensors and returns; asking for a value waits for it.");
  m.def("synchronize", &tn::synchronize, nb::call_guard<nb::gil_scoped_release>(),
        "Waits for everything started by async_eval.");
  m.def("graph_text", graph_text, "The pending ops behind tensors, as text that parses.");
  m.def(
      "_interned", [] { return std::tuple(count_types(), count_attrs(), count_bodies()); },
      "Return how many types, attributes and graphs of traced functions are alive.");
  m.def("_set_lasting_count", &set_lasting_count,
        "Return how many of each live as long as the process; for tests, which want others.");
  m.def(
      "_kernels_compiled", [] { return generator_of(host_target()).cache_stats().compiled; },
      "Kernels made machine code since the start of the process.");
  m.def("num_threads", &tn::num_threads, "Threads that take part in a computation.");
  m.def(
      "set_num_threads",
      [](nb::handle given) {
        size_t count = whole_number(given, 1, "set_num_threads");
        tn::set_num_threads(static_cast<int>(std::min<size_t>(count, INT_MAX)));
      },
      users_call, nb::arg("count"));
  bind_products(m);
  bind_memory(m);
  m.def(
      "set_cache_limit",
      [](nb::handle bytes) {
        return tn::set_cache_limit(whole_number(bytes, 0, "set_cache_limit"));
      },
      users_call, nb::arg("bytes"),
      "Sets how much is kept for reuse and returns the former limit.");
}

}  // namespace tn::python
