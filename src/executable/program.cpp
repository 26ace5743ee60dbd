#include "executable/program.h"

#include <algorithm>

#include "compiler/kernel_set.h"
#include "ir/rewrite.h"

namespace tn {

/// With the values of the constants, which are the last inputs.
static CompileOptions with_constants(CompileOptions options,
                                     const std::vector<NamedConstant>& constants) {
  for (const NamedConstant& c : constants) options.constants.push_back(c.value);
  return options;
}

Program::Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
                 CompileOptions options)
    : Program(std::move(signature), std::move(graph), std::move(constants), std::move(options),
              {}) {
  for (const std::vector<Binding>& sizes : signature_.samples()) plan(sizes);
  sets_ = code_->sets();
  target = name_of(cpu_level());
}

Program::Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
                 CompileOptions options, std::vector<KernelSet> sets)
    : signature_(std::move(signature)),
      graph_(std::move(graph)),
      constants_(std::move(constants)),
      options_(with_constants(std::move(options), constants_)),
      // Its own, not one shared with functions that compute the same: what is saved depends on
      // nothing else.
      code_(std::make_shared<const CompiledGraph>(graph_, options_, sets)),
      sets_(std::move(sets)) {}

Program::~Program() = default;

std::string_view name_of(CpuLevel level) {
  constexpr std::string_view kNames[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<size_t>(level)];
}

CompileOptions Program::options() const {
  CompileOptions all = options_;
  restore_constants(graph_, sets_, all.constants);
  return all;
}

bool Program::Ready::serves(std::span<const ProgramValue> args,
                            std::span<const int64_t> values) const {
  return std::ranges::equal(types, args, {}, {}, &ProgramValue::type) &&
         std::ranges::equal(sizes, values);
}

std::shared_ptr<const Program::Ready> Program::ready(std::span<const ProgramValue> args,
                                                     std::span<const int64_t> sizes) const {
  {
    std::lock_guard lock(mutex_);
    if (ready_ && ready_->serves(args, sizes)) return ready_;
  }
  auto made = std::make_shared<Ready>();
  for (const ProgramValue& arg : args) made->types.push_back(arg.type);
  made->sizes.assign(sizes.begin(), sizes.end());
  std::vector<Binding> values = signature_.check(made->types, sizes);
  made->plan = plan(values);
  for (TypeRef type : signature_.outputs)
    made->results.push_back(substitute(type, replacements(values)));
  std::lock_guard lock(mutex_);
  return ready_ = std::move(made);
}

std::vector<ProgramValue> Program::run(std::span<const ProgramValue> args,
                                       std::span<const int64_t> sizes) const {
  std::shared_ptr<const Ready> ready = this->ready(args, sizes);
  std::vector<Bound> in, out(ready->plan->outputs.size());  // results, then effects
  in.reserve(args.size());
  for (const ProgramValue& arg : args) in.push_back(arg.value);
  tn::run(*ready->plan, in, nullptr, out);
  std::vector<ProgramValue> results;
  results.reserve(ready->results.size());
  for (size_t i = 0; i < ready->results.size(); ++i)
    results.push_back({ready->results[i], std::move(out[i])});
  return results;
}

}  // namespace tn
