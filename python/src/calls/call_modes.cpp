// Modes: what ops do besides computing while something is in force.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "compiled/module_scope.h"
#include "core.h"
#include "eval/eval.h"
#include "ir/pending.h"
#include "ir/precision.h"
#include "ir/trace.h"
#include "tenon/amp.h"
#include "tenon/debug.h"
#include "tenon/hot_paths.h"
#include "tenon/printing.h"

namespace tn::python {
namespace {

nb::object narrow_object() {
  std::optional<DType> type = amp::autocast_type();
  return type ? dtype_object(*type) : nb::none();
}

/// Sets the narrow type of this thread, or none, and returns the former one.
nb::object set_autocast(nb::handle dtype) {
  nb::object before = narrow_object();
  DType type = dtype.is_none() ? DType::f32 : read_dtype(dtype.ptr());
  if (!dtype.is_none()) amp::Autocast checked(type);
  narrow_type = type;
  return before;
}

/// "low", "full" or "any".
const char* precision_of(const std::string& name) {
  const OpDef* op = find_op(name);
  if (!op) fail("amp: no op is called {}", name);
  constexpr const char* kNames[] = {"any", "low", "full"};
  return kNames[static_cast<int>(op->precision)];
}

/// 0: nothing, 1: NaNs, 2: infinities too. Returns what was looked for before.
int set_debug_nans(int sought) {
  return static_cast<int>(debug_nans(static_cast<BadValues>(sought)));
}

/// When: 0 never, 1 what is hot, 2 always. Returns the former policy.
std::pair<int, int64_t> set_hot_path_policy(int when, int64_t threshold) {
  UserCall call;
  HotPathPolicy before = [&] {
    nb::gil_scoped_release unlock;
    return tn::set_hot_path_policy({static_cast<HotPathPolicy::When>(when), threshold});
  }();
  return {static_cast<int>(before.when), before.threshold};
}

std::pair<int, int64_t> hot_path_policy() {
  HotPathPolicy now = tn::hot_path_policy();
  return {static_cast<int>(now.when), now.threshold};
}

using Printing =
    std::tuple<std::optional<int>, int64_t, int64_t, int64_t, bool, std::optional<bool>>;

template <class T>
std::optional<T> optional_of(const Maybe<T>& m) {
  return m ? std::optional<T>(*m) : std::nullopt;
}
template <class T>
Maybe<T> maybe_of(const std::optional<T>& o) {
  return o ? Maybe<T>(*o) : Maybe<T>();
}

/// precision, threshold, edgeitems, linewidth, suppress, sci_mode.
Printing printing() {
  PrintOptions now = print_options();
  return {optional_of(now.precision), now.threshold, now.edgeitems, now.linewidth, now.suppress,
          optional_of(now.sci_mode)};
}

void set_printing(std::optional<int> precision, int64_t threshold, int64_t edgeitems,
                  int64_t linewidth, bool suppress, std::optional<bool> sci_mode) {
  set_print_options(
      {maybe_of(precision), threshold, edgeitems, linewidth, suppress, maybe_of(sci_mode)});
}

}  // namespace

static void bind_hot_paths(nb::module_& m) {
  m.def("_hot_path_policy", hot_path_policy);
  m.def("_set_hot_path_policy", set_hot_path_policy, nb::arg("when"), nb::arg("threshold"));
  m.def("_hot_paths", &tn::hot_paths, nb::call_guard<nb::gil_scoped_release>());
  using Info = HotPathInfo;
  nb::class_<Info>(m, "HotPath", "A sequence of ops that is computed, and what became of it.")
      .def_prop_ro(
          "hash", [](const Info& i) { return short_hash(i.hash); }, "12 digits.")
      .def_ro("sequence", &Info::sequence, "The names of its ops: \"matmul -> relu -> sum\".")
      .def_ro("count", &Info::count, "The number of runs.")
      .def_prop_ro("status", [](const Info& i) { return std::string(name_of(i.status)); })
      .def_ro("interpreted_ms", &Info::interpreted_ms, "The least of the measured runs.")
      .def_ro("compiled_ms", &Info::compiled_ms, "The least of the measured runs.")
      .def_ro("compile_ms", &Info::compile_ms, "The time of its compilation in milliseconds.")
      .def_prop_ro("speedup", &Info::speedup, "The measured speedup; 0: not known yet.")
      .def_ro("reason", &Info::reason, "Why it is not compiled.")
      .def_ro("region", &Info::region, "The signal that says when it is compiled, or \"\".")
      .def("__str__", [](const Info& i) { return to_text(i); })
      .def("__repr__", [](const Info& i) {
        return format("<HotPath {} {}: {}, {} runs>", short_hash(i.hash), i.sequence,
                      name_of(i.status), i.count);
      });
}

void bind_modes(nb::module_& m) {
  m.def("_autocast", narrow_object);
  m.def("_set_autocast", set_autocast, users_call, nb::arg("dtype").none());
  m.def("_is_traced", [](const Tensor& x) { return x.node()->traced; }, nb::arg("x"));
  m.def("_is_taped", [](const Tensor& x) { return x.node()->taped != 0; }, nb::arg("x"));
  m.def(
      "_is_same_value", [](const Tensor& x, const Tensor& y) { return &slot_of(x) == &slot_of(y); },
      nb::arg("x"), nb::arg("y"));
  m.def("_set_debug_nans", set_debug_nans, nb::arg("sought"));
  m.def("_set_debug_indices", &tn::debug_indices, nb::arg("checked"));
  m.def("_is_tracing", [] { return Trace::tracing() != nullptr; });
  m.def("_printing", printing);
  m.def("_set_printing", set_printing, nb::arg("precision").none(), nb::arg("threshold"),
        nb::arg("edgeitems"), nb::arg("linewidth"), nb::arg("suppress"),
        nb::arg("sci_mode").none());
  m.def("_enter_module", enter_module, nb::arg("path"));
  m.def("_leave_module", leave_module, nb::arg("outer"));
  m.def("_precision_of", precision_of, users_call, nb::arg("op"));
  m.def("_clear_plans", &tn::clear_plans, nb::call_guard<nb::gil_scoped_release>());
  m.def("_set_longest_pending", &tn::set_longest_pending, nb::arg("ops"));
  bind_hot_paths(m);
}

}  // namespace tn::python
