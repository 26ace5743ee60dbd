#include "compiler/kernel_set.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/evaluate.h"
#include "compiler/fused_kernel.h"
#include "compiler/stopwatch.h"
#include "ir/body.h"
#include "passes/pipeline.h"

namespace tn {

KernelSet::KernelSet(const Graph& graph, const CompileOptions& options,
                     std::span<const Binding> sizes, CompileReport* report, CompileCounts& counts,
                     std::vector<SizeGuard> guards)
    : options_(options), counts_(counts), guards_(std::move(guards)) {
  SizesAtHand at_hand({sizes.begin(), sizes.end()});
  Decisions* decisions = report ? &report->decisions : nullptr;
  {
    Stopwatch passes(counts_.passes_ms);
    PassContext context;
    context.constants = std::move(options_.constants);
    context.evaluate = evaluate;
    context.runtime_scalars = options_.runtime_scalars;
    context.decisions = decisions;
    context.sizes = sizes;
    int rounds = options_.effort == Effort::e1 ? 1 : 3;
    graph_ = run_passes(graph, context, pipeline(rounds), options_.off);
    options_.constants = std::move(context.constants);
  }
  if (report) report->optimized = to_text(graph_);
  Stopwatch fusion(counts_.fusion_ms);
  fusion_ = fuse(graph_, options_.off, sizes, decisions);
  numbers_ = numbers_of(graph_, options_.runtime_scalars);
  ++counts_.graphs;
  take(std::move(at_hand.guards));
  require_elements();
  for (const SizeGuard& g : guards_)
    if (decisions)
      decisions->push_back({"sizes", true, format("taken for granted: {}", to_text(g)),
                            "other sizes get kernels of their own", g.loc});
}

void KernelSet::take(std::vector<SizeGuard> guards) {
  guards_.insert(guards_.end(), guards.begin(), guards.end());
}

/// Kernels of symbolic sizes have elements to work on.
void KernelSet::require_elements() {
  for (TypeRef type : graph_.types) {
    if (type->elements >= 0) continue;
    for (Dim d : type->shape) {
      if (at_least(d, 1) == Tri::yes) continue;
      auto same = [&](const SizeGuard& g) { return g.a == d && g.b == Dim(1); };
      if (!std::ranges::any_of(guards_, same))
        guards_.push_back({SizeGuard::Kind::at_least, d, 1, true, {}});
    }
  }
}

bool KernelSet::serves(std::span<const Binding> sizes) const {
  return std::ranges::all_of(guards_, [&](const SizeGuard& g) { return holds(g, sizes); });
}

std::unique_ptr<SharedKernel> KernelSet::made(Use use, int number) const {
  if (use == Use::nest) {
    const GraphOp& op = graph_.ops[static_cast<size_t>(number)];
    auto nest = std::make_unique<SharedKernel>(SharedKernel{nest_of(graph_, op)});
    for (Val v : graph_.in(op)) nest->values.push_back(v);
    for (int i = 0; i < op.outs; ++i) nest->values.push_back(op.out + i);
    return nest;
  }
  static const Cluster kNothing;
  const Cluster& cluster =
      use == Use::copy ? kNothing : fusion_.clusters[static_cast<size_t>(number)];
  FusedKernel fused(graph_, fusion_, cluster, numbers_);
  std::optional<loop::Kernel> kernel = use == Use::tile   ? fused.tile()
                                       : use == Use::copy ? fused.copy(number)
                                                          : fused.whole();
  if (!kernel) return nullptr;
  cpu::Form form = use == Use::tile ? cpu::Form::tile : cpu::Form::whole;
  return std::make_unique<SharedKernel>(
      SharedKernel{std::move(*kernel), form, std::move(fused.values), std::move(fused.scalars)});
}

SharedKernel* KernelSet::kernel(Use use, int number, std::span<const Binding> sizes) {
  auto [at, added] = kernels_.try_emplace({use, number});
  if (added) {
    SizesAtHand at_hand({sizes.begin(), sizes.end()});
    at->second = made(use, number);
    if (at->second) at->second->access = access_of(at->second->kernel);
    take(std::move(at_hand.guards));
  }
  return at->second.get();
}

void KernelSet::compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
                        CompileReport* report) {
  std::vector<SharedKernel*> missing;
  std::vector<cpu::KernelRequest> requests;
  for (SharedKernel* k : kernels) {
    if (std::exchange(k->compiled, true)) continue;
    missing.push_back(k);
    requests.push_back({&k->kernel, k->form, sizes});
  }
  if (missing.empty()) return;
  Stopwatch code(counts_.code_ms);
  cpu::KernelCounts found;
  auto compiled = cpu::compile_kernels(requests, {}, &found);
  counts_.compiled += found.compiled;
  counts_.from_memory += found.from_memory, counts_.from_disk += found.from_disk;
  for (size_t i = 0; i < missing.size(); ++i) {
    const std::string& name = missing[i]->kernel.name;
    missing[i]->code = std::move(compiled[i]);
    if (!missing[i]->code) ++counts_.interpreted;
    if (!report) continue;
    if (missing[i]->code)
      report->kernels += format("# {}\n{}\n", name, cpu::assembly_text(requests[i]));
    else
      report->decisions.push_back(
          {"code", false, format("machine code of {}", name), cpu::why_interpreted(requests[i])});
  }
}

std::vector<std::shared_ptr<const Plan>> KernelSet::body_plans(int number,
                                                               std::span<const Binding> sizes) {
  auto [at, added] = bodies_.try_emplace(number);
  if (added)
    for (const GraphRef& body : bodies_of(graph_.ops[static_cast<size_t>(number)]))
      at->second.push_back(
          std::make_unique<const CompiledGraph>(*body, CompileOptions{.effort = options_.effort}));
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& body : at->second) {
    CompileCounts before = body->counts();
    plans.push_back(body->plan(sizes));
    CompileCounts after = body->counts();
    counts_.compiled += after.compiled - before.compiled;
    counts_.from_memory += after.from_memory - before.from_memory;
    counts_.from_disk += after.from_disk - before.from_disk;
    counts_.interpreted += after.interpreted - before.interpreted;
  }
  return plans;
}

}  // namespace tn
