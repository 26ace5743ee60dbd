#include "fuzz_c.h"

#include <bit>

#include "backend/cpu/kernel_code.h"
#include "c_library.h"
#include "run_graph.h"

namespace tn {
namespace {

std::vector<DType> argument_types(const loop::Kernel& kernel) {
  std::vector<DType> types(static_cast<size_t>(kernel.arguments));
  for (const loop::Value& v : kernel.values)
    if (v.op == loop::Op::argument) types[static_cast<size_t>(v.a)] = v.type;
  return types;
}

/// A C function as the code of a kernel. Its address is a size, which only the code reads.
std::shared_ptr<const BoundKernel> code_of(KernelEntry* entry, const loop::Kernel& kernel,
                                           std::shared_ptr<const CLibrary> library) {
  NativeKernel native;
  native.body = [](const KernelFrame* frame, int64_t, int64_t) {
    std::bit_cast<KernelEntry*>(frame->sizes[0])(frame->buffers, frame->arguments);
  };
  native.argument_types = argument_types(kernel);
  native.sizes = {std::bit_cast<int64_t>(entry)};
  native.code = std::move(library);
  return std::make_shared<const cpu::CpuKernel>(std::move(native));
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
      call->code = code_of(entry, *call->kernel, library);
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
