#include "compiler/kernel_set.h"

#include <algorithm>

namespace tn {

bool KernelSet::serves(std::span<const Binding> sizes) const {
  return std::ranges::all_of(guards, [&](const SizeGuard& g) { return holds(g, sizes); });
}

SharedKernel* KernelSet::kernel(KernelUse use, int number, std::span<const Binding> sizes) {
  auto found = kernels.find({use, number});
  if (found != kernels.end()) return found->second.get();
  if (!source) return nullptr;
  SizesAtHand at_hand({sizes.begin(), sizes.end()});
  std::shared_ptr<SharedKernel> made = source->build(*this, use, number);
  if (made) made->access = access_of(made->kernel);
  guards.insert(guards.end(), at_hand.guards.begin(), at_hand.guards.end());
  return (kernels[{use, number}] = std::move(made)).get();
}

void KernelSet::compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
                        CompileCounts& counts, CompileReport* report) {
  std::vector<SharedKernel*> missing;
  for (SharedKernel* k : kernels)
    if (!std::exchange(k->compiled, true)) missing.push_back(k);
  if (source && !missing.empty()) source->compile(missing, sizes, counts, report);
  for (const SharedKernel* k : missing) counts.interpreted += !k->code;
}

std::vector<std::shared_ptr<const Plan>> KernelSet::body_plans(int op,
                                                               std::span<const Binding> sizes,
                                                               CompileCounts& counts) {
  auto [at, added] = bodies.try_emplace(op);
  if (added)
    for (const GraphRef& body : bodies_of(graph.ops[static_cast<size_t>(op)]))
      at->second.push_back(
          std::make_shared<const CompiledGraph>(*body, CompileOptions{.effort = options.effort}));
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& body : at->second) {
    CompileCounts before = body->counts();
    plans.push_back(body->plan(sizes));
    CompileCounts after = body->counts();
    counts.compiled += after.compiled - before.compiled;
    counts.from_memory += after.from_memory - before.from_memory;
    counts.from_disk += after.from_disk - before.from_disk;
    counts.interpreted += after.interpreted - before.interpreted;
  }
  return plans;
}

}  // namespace tn
