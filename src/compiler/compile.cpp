#include "compiler/compile.h"

#include "compiler/evaluate.h"
#include "compiler/lower.h"
#include "compiler/lower_fused.h"
#include "compiler/plan_text.h"
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

}  // namespace tn
