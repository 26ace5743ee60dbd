#include "compiler/report.h"

#include "ir/opdef.h"
#include "ir/written.h"

namespace tn {

std::string optimized_text(const Compilation& made) { return to_text(made.set->graph); }

std::string loops_text(const Compilation& made) {
  std::string text;
  for_each_part(made.plan->steps, [&](const Step& step) {
    const CallStep* call = step.call();
    const KernelStep* kernel = step.kernel();
    if (scope_of(step.loc)) text += format("# {}\n", step.name);
    if (call) text += format("library {}\n\n", call->op->name);
    if (kernel) text += to_text(*kernel->kernel) + "\n";
  });
  return text;
}

KernelRequest request_for(const Compilation& made, const Step& step) {
  KernelForm form = step.library() ? KernelForm::tile : KernelForm::whole;
  return {step.kernel()->kernel.get(), form, made.sizes};
}

std::string code_text(const Compilation& made) {
  const Target& target = made.plan->target;
  std::string text;
  for_each_part(made.plan->steps, [&](const Step& step) {
    const KernelStep* kernel = step.kernel();
    if (kernel && kernel->code)
      text += format("# {}\n{}\n", kernel->kernel->name,
                     generator_of(target).assembly(request_for(made, step), target));
  });
  return text;
}

Decisions decisions_of(const Compilation& made) {
  const Target& target = made.plan->target;
  Decisions decisions = made.set->decisions;
  if (made.set->options.effort == Effort::e0) return decisions;
  for_each_part(made.plan->steps, [&](const Step& step) {
    const KernelStep* kernel = step.kernel();
    if (kernel && !kernel->code)
      decisions.push_back({"code", false, format("machine code of {}", kernel->kernel->name),
                           generator_of(target).why_interpreted(request_for(made, step), target)});
  });
  size_t joined = 0;
  for (const Step& step : made.plan->steps)
    if (auto* bundle = std::get_if<BundleStep>(&step.what)) joined += bundle->parts.size() - 1;
  if (joined > 0)
    decisions.push_back({"bundle", true, format("{} kernels run with others", joined),
                         "they do not depend on each other, so threads meet once"});
  return decisions;
}

}  // namespace tn
