#include "observe/stage_text.h"

#include <algorithm>

#include "backend/source/python_source.h"
#include "base/error.h"
#include "compiler/memory_report.h"
#include "compiler/plan_text.h"
#include "compiler/report.h"
#include "ir/element.h"
#include "observe/op_events.h"
#include "passes/passes.h"

namespace tn {

namespace {

std::string decisions_text(const Compilation& made) {
  std::string text;
  for (const Decision& d : decisions_of(made)) text += to_text(d) + '\n';
  return text;
}

std::string shown_sharding(const Compilation& made) {
  std::string text = sharding_text(made);
  return text.empty() ? "nothing lies on a mesh" : text;
}

/// Without the empty lines at the end.
std::string trimmed(std::string text) {
  text.resize(text.find_last_not_of('\n') + 1);
  return text;
}

/// Values that are short enough to be written in a source. Others are arguments.
source::Constants small_constants(const Graph& graph, const CompileOptions& options) {
  constexpr int64_t kMostElements = 64;
  source::Constants made;
  size_t first = static_cast<size_t>(graph.inputs()) - options.constants.size();
  for (size_t i = 0; i < options.constants.size(); ++i) {
    const Bound& value = options.constants[i];
    TypeRef type = graph.types[first + i];
    if (type->elements < 0 || type->elements > kMostElements) continue;
    auto& elements = made.values.emplace_back(graph.input_names[first + i]).elements;
    HostView host(value);
    for (int64_t k = 0; k < type->elements; ++k)
      elements.push_back(element_at(type->dtype, host.data() + k * size_of(type->dtype)));
  }
  return made;
}

struct Stage {
  std::string_view name;
  /// Null: the graph as given.
  std::string (*text)(const Compilation& made);
};

constexpr Stage kStages[] = {
    {"graph", nullptr},
    {"optimized", optimized_text},
    {"loops", loops_text},
    {"kernels", code_text},
    {"plan", [](const Compilation& made) { return called_names(to_text(*made.plan)); }},
    {"memory", [](const Compilation& made) { return to_text(memory_report(*made.plan)); }},
    {"decisions", decisions_text},
    {"sharding", shown_sharding},
};

}  // namespace

std::string to_text(const Decision& d) {
  std::string text = format("{}: {}{}", d.pass, d.made ? "" : "not ", d.what);
  if (!d.reason.empty()) text += format(": {}", d.reason);
  if (std::string place = to_text(d.loc); !place.empty()) text += format(" ({})", place);
  return text;
}

Graph graph_for_source(const Graph& graph) {
  PassContext context;
  return drop_dead_ops(merge_equal_ops(inline_calls(graph, context), context), context);
}

bool is_source_target(std::string_view name) {
  std::vector<std::string> known = source::source_targets();
  return std::ranges::find(known, name) != known.end();
}

std::string python_text(const Graph& graph, const CompileOptions& options,
                        std::string_view target) {
  Graph simple = graph_for_source(graph);
  source::Function f{simple.name, &simple};
  return trimmed(source::python_source({&f, 1}, target, small_constants(graph, options)));
}

std::string stage_text(const Graph& graph, std::string_view stage,
                       FunctionRef<Compilation()> compiled) {
  std::vector<std::string> known;
  for (const Stage& s : kStages) {
    known.emplace_back(s.name);
    if (s.name != stage) continue;
    if (!s.text) return trimmed(to_text(graph));
    return trimmed(s.text(compiled()));
  }
  for (std::string& target : source::source_targets()) known.push_back(std::move(target));
  fail("show: no stage \"{}\": there are {}", stage, join(known, ", "));
}

}  // namespace tn
