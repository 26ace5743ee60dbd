#include "observe/explain.h"

#include <algorithm>

#include "compiler/report.h"
#include "ir/rewrite.h"
#include "loop/kernel.h"
#include "observe/op_events.h"
#include "plan/backend.h"
#include "runtime/threads.h"

namespace tn {

namespace {

using StepKind = ExplainedStep::Kind;
using Role = ExplainedBuffer::Role;

/// `graph` has the inputs of the plan.
std::vector<ExplainedBuffer> buffers_of(const Plan& plan, const Graph& graph) {
  std::vector<ExplainedBuffer> out;
  for (int i = 0; i < plan.inputs; ++i) {
    auto at = static_cast<size_t>(i);
    out.push_back({graph.input_names[at], Role::argument, graph.types[at]->bytes()});
  }
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    auto bytes = static_cast<int64_t>(plan.constants[i].buffer->bytes);
    out.push_back({format("const{}", i), Role::constant, bytes - plan.constants[i].offset});
  }
  for (size_t i = 0; i < plan.bytes.size(); ++i)
    out.push_back({format("t{}", i), Role::temporary, plan.bytes[i]});
  for (const Plan::Output& output : plan.outputs)
    if (output.buffer >= plan.first_own())
      out[static_cast<size_t>(output.buffer)].role = Role::result;
  return out;
}

class Explainer {
 public:
  Explainer(const Compilation& made, Explanation& out) : made_(made), out_(out) {}

  void add_all() {
    auto first_step = out_.steps.empty() ? 0 : out_.steps.back().step + 1;
    Graph concrete = substitute(made_.set->graph, replacements(made_.sizes));
    for (ExplainedBuffer& buffer : buffers_of(*made_.plan, concrete))
      out_.buffers.push_back(std::move(buffer));
    std::span<const Step> steps = made_.plan->steps;
    for (size_t i = 0; i < steps.size(); ++i)
      for_each_part(steps.subspan(i, 1),
                    [&](const Step& step) { add(step, first_step + static_cast<int32_t>(i)); });
    add_code();
  }

 private:
  void add(const Step& step, int32_t number) {
    ExplainedStep made{.name = called_names(step.name), .step = number, .loc = step.loc};
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      bool written = std::ranges::count(step.writes, static_cast<int32_t>(i)) > 0;
      std::vector<int32_t>& list = written ? made.writes : made.reads;
      int32_t buffer = first_buffer_ + step.buffers[i];
      if (!std::ranges::count(list, buffer)) list.push_back(buffer);
    }
    std::erase_if(made.reads, [&](int32_t b) { return std::ranges::count(made.writes, b) > 0; });
    made.bytes_read = bytes_of(made.reads), made.bytes_written = bytes_of(made.writes);
    for (const Step::Op& op : step.ops)
      made.ops.push_back({std::string(called_name(*op.op)), format("{}", *op.type), op.loc});
    if (const KernelStep* kernel = step.kernel()) {
      made.loops = to_text(*kernel->kernel);
      if (!step.library()) made.kind = kernel->code ? StepKind::code : StepKind::interpreted;
      if (kernel->code) coded_.push_back({out_.steps.size(), &step});
    }
    out_.steps.push_back(std::move(made));
  }

  void add_code() {
    parallel_for(static_cast<int64_t>(coded_.size()), [&](int64_t k) {
      auto [number, step] = coded_[static_cast<size_t>(k)];
      const Target& target = made_.plan->target;
      out_.steps[number].assembly =
          generator_of(target).assembly(request_for(made_, *step), target);
    });
  }

  int64_t bytes_of(const std::vector<int32_t>& buffers) const {
    int64_t sum = 0;
    for (int32_t b : buffers) sum += out_.buffers[static_cast<size_t>(b)].bytes;
    return sum;
  }

  const Compilation& made_;
  Explanation& out_;
  int32_t first_buffer_ = static_cast<int32_t>(out_.buffers.size());
  std::vector<std::pair<size_t, const Step*>> coded_;  // explained steps that have machine code
};

/// Kernels of several ops are decisions too, though no option asked for them.
void add_fusions(Explanation& out) {
  for (const ExplainedStep& step : out.steps) {
    if (step.ops.size() < 2 || step.kind == StepKind::library) continue;
    std::vector<std::string_view> names;
    for (const ExplainedOp& op : step.ops) names.push_back(op.name);
    out.decisions.push_back({"fuse", true, format("{} in one kernel", join(names, ", ")),
                             "what is between them is never in memory", step.loc});
  }
}

}  // namespace

std::string_view to_text(StepKind kind) {
  constexpr std::string_view kNames[] = {"code", "interpreted", "library"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view to_text(Role role) {
  constexpr std::string_view kNames[] = {"argument", "constant", "temporary", "result"};
  return kNames[static_cast<size_t>(role)];
}

Explanation explain(const Compilation& made) {
  Explanation out{.graph = optimized_text(made),
                  .decisions = decisions_of(made),
                  .sharding = sharding_text(made),
                  .collectives = traffic_of(made),
                  .buffers = {},
                  .steps = {},
                  .memory = memory_report(*made.plan)};
  out.memory.step_name = called_names(out.memory.step_name);
  for (auto& live : out.memory.live) live.name = called_names(live.name);
  for (Decision& decision : out.decisions) decision.what = called_names(decision.what);
  for_each_whole(made, [&](const Compilation& part) { Explainer(part, out).add_all(); });
  add_fusions(out);
  return out;
}

}  // namespace tn
