// What the compiler made of a function, for Python to render.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "core.h"
#include "ir/written.h"
#include "observe/explain.h"
#include "watching/recordings.h"

namespace tn::python {

void bind_explain(nb::module_& m) {
  nb::class_<Decision>(m, "_Decision")
      .def_ro("kind", &Decision::pass)
      .def_ro("made", &Decision::made)
      .def_ro("what", &Decision::what)
      .def_ro("reason", &Decision::reason)
      .def_prop_ro("place", [](const Decision& d) { return to_text(d.loc); });
  nb::class_<ExplainedOp>(m, "_ExplainedOp")
      .def_ro("name", &ExplainedOp::name)
      .def_ro("type", &ExplainedOp::type)
      .def_prop_ro("place", [](const ExplainedOp& op) { return to_text(op.loc); });
  using Step = ExplainedStep;
  nb::class_<Step>(m, "_ExplainedStep")
      .def_ro("name", &Step::name)
      .def_prop_ro("kind", [](const Step& s) { return to_text(s.kind); })
      .def_ro("step", &Step::step)
      .def_ro("ops", &Step::ops)
      .def_ro("reads", &Step::reads)
      .def_ro("writes", &Step::writes)
      .def_ro("bytes_read", &Step::bytes_read)
      .def_ro("bytes_written", &Step::bytes_written)
      .def_prop_ro("place", [](const Step& s) { return to_text(s.loc); })
      .def_prop_ro("module", [](const Step& s) { return written_at(s.loc).path; })
      .def_ro("loops", &Step::loops)
      .def_ro("assembly", &Step::assembly);
  using Buffer = ExplainedBuffer;
  nb::class_<Buffer>(m, "_ExplainedBuffer")
      .def_ro("name", &Buffer::name)
      .def_prop_ro("role", [](const Buffer& b) { return to_text(b.role); })
      .def_ro("bytes", &Buffer::bytes);
  nb::class_<ExplainedSize>(m, "_ExplainedSize")
      .def_ro("symbol", &ExplainedSize::symbol)
      .def_ro("path", &ExplainedSize::path)
      .def_ro("value", &ExplainedSize::value);
  using Counts = CompileCounts;
  nb::class_<Counts>(m, "_CompileCounts")
      .def_ro("plans", &Counts::plans)
      .def_ro("graphs", &Counts::graphs)
      .def_ro("compiled", &Counts::compiled)
      .def_ro("from_memory", &Counts::from_memory)
      .def_ro("from_disk", &Counts::from_disk)
      .def_ro("interpreted", &Counts::interpreted)
      .def_ro("passes_ms", &Counts::passes_ms)
      .def_ro("fusion_ms", &Counts::fusion_ms)
      .def_ro("lowering_ms", &Counts::lowering_ms)
      .def_ro("code_ms", &Counts::code_ms)
      .def_ro("memory_ms", &Counts::memory_ms);
  using Traffic = sharding::Traffic;
  nb::class_<Traffic>(m, "_Traffic")
      .def_ro("name", &Traffic::name)
      .def_ro("axis", &Traffic::mesh_axis)
      .def_ro("workers", &Traffic::workers)
      .def_ro("type", &Traffic::type)
      .def_ro("bytes", &Traffic::bytes)
      .def_ro("sent", &Traffic::sent)
      .def_ro("times", &Traffic::times)
      .def_ro("where", &Traffic::where)
      .def_prop_ro("place", [](const Traffic& t) { return to_text(t.loc); });
  nb::class_<Explanation>(m, "_Explanation")
      .def_rw("function", &Explanation::function)
      .def_ro("traces", &Explanation::traces)
      .def_ro("sizes", &Explanation::sizes)
      .def_ro("guards", &Explanation::guards)
      .def_ro("graph", &Explanation::graph)
      .def_ro("decisions", &Explanation::decisions)
      .def_ro("sharding", &Explanation::sharding)
      .def_ro("collectives", &Explanation::collectives)
      .def_ro("buffers", &Explanation::buffers)
      .def_ro("steps", &Explanation::steps)
      .def_ro("memory", &Explanation::memory)
      .def_ro("counts", &Explanation::counts)
      .def("__str__", [](const Explanation& e) { return to_text(e); });
  bind_events(m);
}

}  // namespace tn::python
