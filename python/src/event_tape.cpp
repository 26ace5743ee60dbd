#include "event_tape.h"

#include <unordered_map>

#include "core.h"
#include "frontend/event_tape.h"

namespace tn::python {
namespace {

/// (kind, thread, began, seconds, value, compiled, name, place), times in seconds.
nb::list rows_of(const EventTape& tape) {
  std::unordered_map<uint64_t, nb::object> places{{0, nb::str("")}};
  nb::list rows;
  for (const Event& e : tape.events) {
    nb::object& place = places[e.place];
    if (!place.is_valid()) place = nb::cast(to_text(Loc{e.place}));
    std::string_view kind = name_of(e.kind), name = e.name();
    rows.append(nb::make_tuple(nb::str(kind.data(), kind.size()), e.thread,
                               1e-9 * static_cast<double>(e.began),
                               1e-9 * static_cast<double>(e.nanoseconds), e.value, e.compiled,
                               nb::str(name.data(), name.size()), place));
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
