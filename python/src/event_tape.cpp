#include "event_tape.h"

#include <nanobind/stl/string.h>

#include <unordered_map>

#include "core.h"
#include "frontend/event_tape.h"

namespace tn::python {
namespace {

/// A name may end in the middle of a letter.
nb::object text_of(std::string_view name) {
  return nb::steal(
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
}

/// (kind, thread, began, seconds, value, compiled, name, place), times in seconds.
nb::list rows_of(const EventTape& tape) {
  std::unordered_map<uint64_t, nb::object> places{{0, nb::str("")}};
  nb::list rows;
  for (const Event& e : tape.events) {
    nb::object& place = places[e.place];
    if (!place.is_valid()) place = nb::cast(to_text(Loc{e.place}));
    rows.append(nb::make_tuple(
        text_of(name_of(e.kind)), e.thread, 1e-9 * static_cast<double>(e.began),
        1e-9 * static_cast<double>(e.nanoseconds), e.value, e.compiled, text_of(e.name()), place));
  }
  return rows;
}

}  // namespace

void bind_events(nb::module_& m) {
  nb::class_<EventTape>(m, "_EventTape")
      .def(nb::init<size_t>(), nb::arg("most"))
      .def(
          "stop",
          [](EventTape& tape) {
            {
              nb::gil_scoped_release unlock;
              tape.stop();
            }
            return rows_of(tape);
          },
          "Ends the recording and returns its rows.")
      .def_ro("missing", &EventTape::missing);
  m.def(
      "_event_time", [] { return 1e-9 * static_cast<double>(event_time()); },
      "Seconds since the library was loaded: the clock of events.");
  m.def(
      "_totals",
      [] {
        nb::dict all;
        all["ops"] = totals.ops.load();
        all["compiled_ops"] = totals.compiled_ops.load();
        all["runs"] = totals.runs.load();
        return all;
      },
      "What ran so far.");
}

}  // namespace tn::python
