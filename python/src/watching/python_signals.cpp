// Signals: names for parts of a program, and the file that says what becomes of them.
#include "watching/python_signals.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "eval/signals.h"

namespace tn::python {
namespace {

void report_notes() {
  for (const std::string& note : take_signal_notes()) warn(note, 2);
}

void load(const std::optional<std::string>& path) {
  {
    UserCall call;
    path ? signal::load(*path) : signal::unload();
  }
  report_notes();
}

nb::object compile_object(const signal::Compile& compile) {
  if (compile == signal::Compile{.wanted = compile.wanted}) return nb::bool_(compile.wanted);
  nb::dict fields;
  fields["mode"] = compile.mode;
  fields["threshold"] = compile.threshold;
  return fields;
}

nb::dict shard_object(const signal::Shard& shard) {
  nb::dict fields;
  if (shard.axis) fields["axis"] = *shard.axis;
  if (!shard.workers.empty()) fields["workers"] = shard.workers;
  if (shard.replicated) fields["replicated"] = true;
  return fields;
}

nb::dict config() {
  UserCall call;
  nb::dict all;
  for (const signal::Settings& settings : signal::config()) {
    nb::dict fields;
    if (settings.compile) fields["compile"] = compile_object(*settings.compile);
    if (settings.shard) fields["shard"] = shard_object(*settings.shard);
    if (!settings.backward.empty()) fields["backward"] = settings.backward;
    all[nb::str(settings.name.c_str(), settings.name.size())] = fields;
  }
  return all;
}

/// Returns how many regions this thread was in.
size_t enter(const std::string& name, const std::optional<std::string>& backward) {
  size_t outer = signal::entered().size();
  {
    UserCall call;
    signal::enter(name, backward.value_or(""));
  }
  report_notes();
  return outer;
}

/// Leaves regions until this thread is in `outer`.
void leave(size_t outer) {
  std::vector<std::string> names = signal::entered();
  for (size_t i = names.size(); i > outer; --i) signal::leave(names[i - 1]);
}

Tensor tensor(const Tensor& x, const std::string& name) {
  Tensor same = [&] {
    UserCall call;
    return signal::tensor(x, name);
  }();
  report_notes();
  return same;
}

}  // namespace

void bind_signals(nb::module_& m) {
  m.def("_signal_load", load, nb::arg("path").none());
  m.def("_signal_config", config);
  m.def("_signal_enter", enter, nb::arg("name"), nb::arg("backward").none() = nb::none());
  m.def("_signal_leave", leave, nb::arg("outer"));
  m.def("_signal_exit", [](const std::string& name) { signal::leave(name); }, users_call);
  m.def("_signal_entered", signal::entered);
  m.def("_signal_tensor", tensor, nb::arg("x"), nb::arg("name"));
}

}  // namespace tn::python
