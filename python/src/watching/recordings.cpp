#include "watching/recordings.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core.h"
#include "observe/event_log.h"
#include "observe/event_recorder.h"
#include "tenon/profile.h"

namespace tn::python {
namespace {

double seconds(uint64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

/// Texts that many events have are made once.
class Texts {
 public:
  /// A name may end in the middle of a letter.
  nb::object name(std::string_view text) {
    nb::object& made = names_[std::string(text)];
    if (!made.is_valid())
      made = nb::steal(
          PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    return made;
  }
  nb::object place(uint64_t bits) {
    nb::object& made = places_[bits];
    if (!made.is_valid()) made = nb::cast(to_text(Loc{bits}));
    return made;
  }

 private:
  std::unordered_map<std::string, nb::object> names_;
  std::unordered_map<uint64_t, nb::object> places_;
};

/// (kind, thread, began, seconds, value, compiled, name, place, worker, waited, peers), times in
/// seconds.
nb::list rows_of(std::span<const Event> events, uint64_t origin) {
  Texts texts;
  nb::list rows;
  for (const Event& e : events)
    rows.append(nb::make_tuple(
        texts.name(name_of(e.kind)), e.thread, seconds(std::max(e.began, origin) - origin),
        seconds(e.nanoseconds), e.value, e.compiled, texts.name(e.name()), texts.place(e.place),
        e.worker, seconds(e.waited), nb::make_tuple(e.peers.first, e.peers.step, e.peers.count)));
  return rows;
}

nb::list worker_list() {
  nb::list list;
  for (const WorkerStats& own : worker_stats()) {
    nb::dict one;
    one["worker"] = own.worker, one["runs"] = own.runs;
    one["collectives"] = own.collectives, one["bytes"] = own.bytes;
    one["running"] = own.running, one["communicating"] = own.communicating;
    one["waiting"] = own.waiting;
    list.append(one);
  }
  return list;
}

nb::list step_times(const nb::callable& f) {
  uint64_t began = event_time();
  StepRecorder recorder;
  f();
  recorder.stop();
  return rows_of(recorder.steps, began);
}

}  // namespace

void bind_events(nb::module_& m) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<EventRecorder>(m, "_EventRecorder")
      .def(nb::init<size_t>(), nb::arg("most"))
      .def("stop", &EventRecorder::stop, Unlocked(), "Ends the recording.")
      .def_prop_ro("seconds",
                   [](const EventRecorder& recorder) { return seconds(recorder.nanoseconds); })
      .def_ro("missing", &EventRecorder::missing)
      .def("__len__", [](const EventRecorder& recorder) { return recorder.events.size(); })
      .def(
          "rows",
          [](const EventRecorder& recorder, size_t first, size_t count) {
            std::span<const Event> all = recorder.events;
            all = all.subspan(std::min(first, all.size()));
            return rows_of(all.first(std::min(count, all.size())), recorder.began);
          },
          nb::arg("first"), nb::arg("count"), "Some of the events, when it is stopped.");
  nb::class_<EventLog>(m, "_EventLog")
      .def(nb::init<int, size_t>(), nb::arg("file"), nb::arg("most"))
      .def("stop", &EventLog::stop, Unlocked(), "Ends the trace and closes the file.")
      .def_prop_ro("written", &EventLog::written)
      .def_prop_ro("missing", &EventLog::missing)
      .def_prop_ro("error", [](const EventLog& log) -> std::string {
        return log.error() ? std::strerror(log.error()) : "";
      });
  m.def("_worker_totals", worker_list,
        "Return what the workers of this process did since the first call, which starts counting.");
  m.def("_step_times", step_times, nb::arg("f"),
        "The steps of plans that run on this thread while `f()` does, as rows.");
  m.def(
      "_totals",
      [] {
        nb::dict all;
        all["ops"] = totals.ops.load();
        all["compiled_ops"] = totals.compiled_ops.load();
        all["runs"] = totals.runs.load();
        return all;
      },
      "Return what has run so far.");
}

}  // namespace tn::python
