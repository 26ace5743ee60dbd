#include "compiler/report.h"

#include "compiler/device_part.h"
#include "ir/opdef.h"
#include "ir/written.h"

namespace tn {

void for_each_whole(const Compilation& made, FunctionRef<void(const Compilation&)> f) {
  if (const PlannedLater* later = planned_later(*made.plan)) return f(later->compilation());
  if (!made.parts) return f(made);
  for (const Compilation& part : *made.parts) for_each_whole(part, f);
}

namespace {

/// `text` of every part, below the name of its device.
std::string of_parts(const Compilation& made, FunctionRef<std::string(const Compilation&)> text) {
  if (const PlannedLater* later = planned_later(*made.plan)) return text(later->compilation());
  if (!made.parts) return text(made);
  std::string all;
  for (size_t i = 0; i < made.parts->size(); ++i)
    all += format("# on {}\n{}", to_text(made.plan->parts->list[i].plan->device),
                  of_parts((*made.parts)[i], text));
  return all;
}

}  // namespace

std::string optimized_text(const Compilation& made) {
  return of_parts(made, [](const Compilation& part) { return to_text(part.set->graph); });
}

std::string loops_text(const Compilation& made) {
  return of_parts(made, [](const Compilation& part) {
    std::string text;
    for_each_part(part.plan->steps, [&](const Step& step) {
      const CallStep* call = step.call();
      const KernelStep* kernel = step.kernel();
      if (scope_of(step.loc)) text += format("# {}\n", step.name);
      if (call) text += format("library {}\n\n", call->op->name);
      if (kernel) text += to_text(*kernel->kernel) + "\n";
    });
    return text;
  });
}

KernelRequest request_for(const Compilation& made, const Step& step) {
  KernelForm form = step.library() ? KernelForm::tile : KernelForm::whole;
  return {step.kernel()->kernel.get(), form, made.sizes};
}

std::string code_text(const Compilation& made) {
  return of_parts(made, [](const Compilation& part) {
    const Target& target = part.plan->target;
    std::string text;
    for_each_part(part.plan->steps, [&](const Step& step) {
      const KernelStep* kernel = step.kernel();
      if (kernel && kernel->code)
        text += format("# {}\n{}\n", kernel->kernel->name,
                       generator_of(target).assembly(request_for(part, step), target));
    });
    return text;
  });
}

std::string sharding_text(const Compilation& made) {
  if (const PlannedLater* later = planned_later(*made.plan)) return later->text();
  std::string text;
  if (made.parts)
    for (const Compilation& part : *made.parts) text += sharding_text(part);
  return text;
}

std::vector<sharding::Traffic> traffic_of(const Compilation& made) {
  if (const PlannedLater* later = planned_later(*made.plan)) return later->traffic();
  std::vector<sharding::Traffic> all;
  if (made.parts)
    for (const Compilation& part : *made.parts)
      std::ranges::move(traffic_of(part), std::back_inserter(all));
  return all;
}

Decisions decisions_of(const Compilation& made) {
  Decisions all;
  for (const Compilation& part : made.parts ? *made.parts : std::vector<Compilation>())
    if (const PlannedLater* later = planned_later(*part.plan))
      std::ranges::move(later->decisions(), std::back_inserter(all));
  for_each_whole(made, [&](const Compilation& part) {
    const Target& target = part.plan->target;
    all.insert(all.end(), part.set->decisions.begin(), part.set->decisions.end());
    if (part.set->options.effort == Effort::e0) return;
    for_each_part(part.plan->steps, [&](const Step& step) {
      const KernelStep* kernel = step.kernel();
      if (kernel && !kernel->code)
        all.push_back({"code", false, format("machine code of {}", kernel->kernel->name),
                       generator_of(target).why_interpreted(request_for(part, step), target)});
    });
    size_t joined = 0;
    for (const Step& step : part.plan->steps)
      if (auto* bundle = std::get_if<BundleStep>(&step.what)) joined += bundle->parts.size() - 1;
    if (joined > 0)
      all.push_back({"bundle", true, format("{} kernels run with others", joined),
                     "they do not depend on each other, so threads meet once"});
  });
  return all;
}

}  // namespace tn
