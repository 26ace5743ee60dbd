#include "compiler/compile.h"

#include <algorithm>

#include "compiler/evaluate.h"
#include "compiler/lower.h"
#include "compiler/lower_fused.h"
#include "compiler/plan_text.h"
#include "ir/rewrite.h"
#include "passes/pipeline.h"

namespace tn {
namespace {

/// Fails for a name that nothing to switch off has.
void check_off(const std::vector<std::string>& off) {
  constexpr std::string_view kFusions[] = {"fuse", "row-kernels", "epilogue", "bundle"};
  for (const std::string& name : off)
    if (!std::ranges::count(kFusions, name)) check_pass_name(name);
}

std::shared_ptr<const Plan> compile_fused(const Graph& graph, const CompileOptions& options,
                                          CompileReport* report) {
  check_off(options.off);
  PassContext context;
  context.constants = options.constants;
  context.evaluate = evaluate;
  context.runtime_scalars = options.runtime_scalars;
  context.decisions = report ? &report->decisions : nullptr;
  int rounds = options.effort == Effort::e1 ? 1 : 3;
  Graph optimized = run_passes(graph, context, pipeline(rounds), options.off);
  if (report) report->optimized = to_text(optimized);
  CompileOptions lowering = options;
  lowering.constants = std::move(context.constants);
  return FusedLowerer(optimized, lowering, report).lower();
}

std::shared_ptr<const Plan> compile_grouped(const Graph& graph, const CompileOptions& options,
                                            CompileReport* report) {
  Graph expanded = expand_composites(graph);
  if (report) report->optimized = to_text(expanded);
  return Lowerer(expanded, options, report).lower();
}

}  // namespace

std::shared_ptr<const Plan> compile(const Graph& graph, const CompileOptions& options,
                                    CompileReport* report) {
  auto make = options.effort == Effort::e0 ? compile_grouped : compile_fused;
  std::shared_ptr<const Plan> plan = make(graph, options, report);
  if (report) report->plan = to_text(*plan);
  return plan;
}

CompiledGraph::CompiledGraph(Graph graph, CompileOptions options)
    : graph_(std::move(graph)), options_(std::move(options)) {}

std::shared_ptr<const Plan> CompiledGraph::plan(std::span<const Binding> sizes) const {
  Values values;
  for (const Binding& b : sizes) values.push_back(b.value);
  std::lock_guard lock(mutex_);
  auto known = std::ranges::find(entries_, values, &Entry::sizes);
  if (known != entries_.end()) {
    std::rotate(known, known + 1, entries_.end());
    return entries_.back().plan;
  }
  std::vector<Replacement> replacements;
  for (const Binding& b : sizes) replacements.push_back({b.symbol, Dim(b.value)});
  std::shared_ptr<const Plan> made = compile(substitute(graph_, replacements), options_);
  if (entries_.size() == kMostPlans) entries_.erase(entries_.begin());
  entries_.push_back({std::move(values), made});
  ++planned_;
  return made;
}

int64_t CompiledGraph::planned() const {
  std::lock_guard lock(mutex_);
  return planned_;
}

}  // namespace tn
