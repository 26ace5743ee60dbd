#include "fuzz_c.h"

#include <bit>

#include "c_library.h"
#include "loop/interpreter_program.h"
#include "run_graph.h"

namespace tn {
namespace {

struct CStep {
  std::shared_ptr<const CLibrary> library;
  KernelEntry* entry;
  std::vector<DType> arguments;
};

void run_c(const void* data, const StepCall& call) {
  const CStep& step = *static_cast<const CStep*>(data);
  std::vector<uint64_t> arguments;
  for (size_t i = 0; i < step.arguments.size(); ++i)
    arguments.push_back(
        std::bit_cast<uint64_t>(loop::machine::element_bits(call.scalars[i], step.arguments[i])));
  step.entry(call.buffers, arguments.data());
}

std::vector<DType> argument_types(const loop::Kernel& kernel) {
  std::vector<DType> types(static_cast<size_t>(kernel.arguments));
  for (const loop::Value& v : kernel.values)
    if (v.op == loop::Op::argument) types[static_cast<size_t>(v.a)] = v.type;
  return types;
}

/// It keeps the original, which holds the types and attributes that steps refer to.
std::shared_ptr<Plan> copy_of(std::shared_ptr<const Plan> plan) {
  struct Copy {
    std::shared_ptr<const Plan> original;
    Plan plan;
  };
  auto copy = std::make_shared<Copy>(Copy{plan, *plan});
  return {copy, &copy->plan};
}

}  // namespace

std::vector<std::shared_ptr<const Plan>> plans_in_c(std::span<const Graph> graphs,
                                                    const CompileOptions& options,
                                                    const std::string& compiler) {
  CompileOptions alone = options;
  alone.off.push_back("bundle");  // a kernel a step
  std::vector<std::shared_ptr<Plan>> plans;
  std::vector<loop::Kernel> kernels;
  for (const Graph& graph : graphs) {
    plans.push_back(copy_of(compile(graph, alone)));
    for (const Step& step : plans.back()->steps)
      if (auto* call = std::get_if<KernelStep>(&step.what)) kernels.push_back(*call->kernel);
  }
  auto library = std::make_shared<const CLibrary>(compiler, kernels_c(kernels),
                                                  "-O1 -Wno-tautological-compare");
  size_t number = 0;
  for (auto& plan : plans)
    for (Step& step : plan->steps) {
      auto* call = std::get_if<KernelStep>(&step.what);
      if (!call) continue;
      auto* entry = library->find<KernelEntry>(format("entry_{}", number++));
      step.what = HostStep{run_c, std::make_shared<const CStep>(
                                      CStep{library, entry, argument_types(*call->kernel)})};
    }
  return {plans.begin(), plans.end()};
}

Way in_c(const CompileOptions& options, const std::string& compiler) {
  auto run = [=](const Graph& graph, const Tensors& in) {
    return run_plan(*plans_in_c({&graph, 1}, options, compiler)[0], graph, in);
  };
  return {"C by " + compiler, run};
}

}  // namespace tn
