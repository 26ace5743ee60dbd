#include "executable/program.h"

#include <algorithm>

#include "compiler/compiler.h"
#include "compiler/kernel_set.h"
#include "compiler/placing.h"
#include "compiler/report.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "runtime/device.h"

namespace tn {

/// With the values of the constants, which are the last inputs.
static CompileOptions with_constants(CompileOptions options,
                                     const std::vector<NamedConstant>& constants) {
  for (const NamedConstant& c : constants) options.constants.push_back(c.value);
  return options;
}

/// Whether kernels that know the sizes at `opt` are faster by 5 % or more. Measured: where rows are
/// folded that have some length, and where elements are brought in another order. Nothing is
/// measured here: files are the same whenever and wherever they are made.
static bool gains_at_opt(const KernelSet& set, std::span<const Binding> opt) {
  const Graph& graph = set.graph;
  constexpr int64_t kShortest = 16, kLongest = 512;
  auto gains = [&](const GraphOp& op) {
    if (op.ins == 0) return false;
    const Shape& in = graph.types[static_cast<size_t>(graph.in(op)[0])]->shape;
    const Shape& out = graph.types[static_cast<size_t>(op.out)]->shape;
    if (in.empty() || out.empty()) return false;
    bool open = !in.back().is_const();
    if (op.op == &ops::permute_dims)
      return !identical(in.back(), out.back()) && (open || !out.back().is_const());
    if (!op.op->reduce_axes || !open) return false;
    Axes axes;
    bool keepdims = false;
    op.op->reduce_axes(op.attr_data(), axes, keepdims);
    int64_t row = evaluate(in.back(), opt);
    return axes.has(in.rank() - 1) && kShortest <= row && row <= kLongest;
  };
  return std::ranges::any_of(graph.ops, gains);
}

Program::Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
                 CompileOptions options)
    : Program(std::move(signature), std::move(graph), std::move(constants), std::move(options),
              std::vector<KernelSet>()) {
  for (const std::vector<Binding>& sizes : signature_.samples()) plan(sizes);
  sets_ = code_->sets();
  auto gains = [&](const KernelSet& set) { return gains_at_opt(set, signature_.opt); };
  if (std::ranges::any_of(sets_, gains)) {
    at_opt_ = at_opt({});
    at_opt_->plan();
    std::ranges::move(at_opt_->sets(), std::back_inserter(sets_));
  }
  target = name_of(options_.target);
}

Program::Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
                 CompileOptions options, std::vector<KernelSet> sets)
    : signature_(std::move(signature)),
      graph_(std::move(graph)),
      constants_(std::move(constants)),
      options_(with_constants(std::move(options), constants_)),
      sets_(std::move(sets)) {
  make_lasting(graph_);
  for (const NamedConstant& c : constants_) make_lasting(c.type);
  std::vector<KernelSet> open = sets_;
  if (!open.empty() && open.back().sizes.size() < signature_.opt.size()) {
    at_opt_ = at_opt({std::move(open.back())});
    open.pop_back();
  }
  // Its own, not one shared with functions that compute the same: what is saved depends on nothing
  // else.
  code_ = std::make_shared<const CompiledGraph>(graph_, options_, std::move(open));
}

Program::Program(Signature signature, Graph graph, std::vector<NamedConstant> constants,
                 CompileOptions options, ProgramMesh mesh)
    : signature_(std::move(signature)),
      graph_(std::move(graph)),
      constants_(std::move(constants)),
      options_(std::move(options)),
      mesh_(std::make_unique<const ProgramMesh>(std::move(mesh))) {
  make_lasting(graph_);
  for (const NamedConstant& c : constants_) make_lasting(c.type);
  options_.constants = mesh_->constants;
  code_ = std::make_shared<const CompiledGraph>(placed_on(graph_, mesh_->device), options_);
  target = name_of(options_.target);
}

Program::~Program() = default;

std::shared_ptr<const CompiledGraph> Program::at_opt(std::vector<KernelSet> sets) const {
  CompileOptions options = options_;
  options.sizes.clear();
  Graph fixed = substitute(graph_, replacements(signature_.opt));
  return std::make_shared<const CompiledGraph>(std::move(fixed), std::move(options),
                                               std::move(sets));
}

Compilation Program::compilation(std::span<const Binding> sizes) const {
  bool is_opt = std::ranges::equal(sizes, signature_.opt, {}, &Binding::value, &Binding::value);
  return at_opt_ && is_opt ? at_opt_->compilation() : code_->compilation(sizes);
}

std::shared_ptr<const CompiledGraph> Program::code_on(Device device) const {
  Target target = runtime_of(device).target(device);
  Shared& shared = *shared_;
  {
    std::lock_guard lock(shared.mutex);
    for (const auto& [known, made] : shared.elsewhere)
      if (known == device) return made;
  }
  std::shared_ptr<const CompiledGraph> code;
  if (of_file) code = of_file(target);
  if (!code && !compiler) {
    std::string_view wanted = name_of(target);
    fail(Hint{"save it with code for this GPU, save(path, targets=[...]), or for all, ptx_80"},
         "load: {}: there is no code for {} ({}) in the file: it has {}", signature_.function,
         to_text(device), wanted.empty() ? "older than sm_70" : wanted,
         held.empty() ? "none" : format("{}", join(held, ", ")));
  }
  // Its own form with that kind of target: ops that it lacks are parts of the host.
  if (!code) code = std::make_shared<const CompiledGraph>(placed_on(graph_, device), options());
  std::lock_guard lock(shared.mutex);
  shared.elsewhere.emplace_back(device, code);
  return code;
}

std::shared_ptr<const Plan> Program::plan(std::span<const Binding> sizes, Device device) const {
  if (device.is_host() || mesh_) return plan(sizes);
  bool is_own = runtime_of(device).target(device).kind == options_.target.kind;
  return is_own ? plan(sizes) : code_on(device)->plan(sizes);
}

const std::vector<KernelSet>& Program::sets_for(const Target& target) const {
  Shared& shared = *shared_;
  std::lock_guard lock(shared.mutex);
  if (!shared.other_sets.empty()) return shared.other_sets;
  if (const OpDef* op = op_of_host(graph_, target))
    unsupported(Hint{"leave the GPU out of the targets: there the file is compiled from its graph, "
                     "by the whole library"},
                "{}(): files hold no code for {} of a function with {}: the host computes it",
                signature_.function, name_of(target), op->name);
  CompileOptions its = options();
  its.target = target;
  its.effort = std::max(its.effort, Effort::e1);  // nothing interprets kernels there
  its.checks_indices = false;
  CompiledGraph made(graph_, std::move(its));
  for (const std::vector<Binding>& sizes : signature_.samples()) made.plan(sizes);
  return shared.other_sets = made.sets();
}

CompileCounts Program::counts() const {
  CompileCounts all = code_->counts();
  if (!at_opt_) return all;
  CompileCounts more = at_opt_->counts();
  all.plans += more.plans, all.graphs += more.graphs, all.compiled += more.compiled;
  all.from_memory += more.from_memory, all.from_disk += more.from_disk;
  all.interpreted += more.interpreted;
  return all;
}

static void count(std::span<const KernelSet> sets, Program::Kernels& kernels) {
  for (const KernelSet& set : sets) {
    for (const auto& [use, kernel] : set.kernels)
      if (kernel) ++(kernel->code ? kernels.native : kernels.interpreted);
    for (const auto& [op, bodies] : set.bodies)
      for (const auto& body : bodies) count(body->sets(), kernels);
  }
}

Program::Kernels Program::kernels() const {
  Kernels all;
  count(sets_, all);
  if (mesh_)
    for_each_whole(compilation(signature_.opt),
                   [&](const Compilation& part) { count({part.set.get(), 1}, all); });
  return all;
}

void Program::verify_weights() const {
  if (is_verified_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(shared_->mutex);
  if (is_verified_) return;
  verify_();
  is_verified_.store(true, std::memory_order_release);
  verify_ = nullptr;  // which a child of fork that sees it half done does not look at
}

void Program::verify_with(std::function<void()> verify) const {
  verify_ = std::move(verify);
  is_verified_ = false;
}

CompileOptions Program::options() const {
  verify_weights();
  CompileOptions all = options_;
  restore_constants(graph_, sets_, all.constants);
  return all;
}

bool Program::Ready::serves(std::span<const ProgramValue> args,
                            std::span<const int64_t> values) const {
  return std::ranges::equal(types, args, {}, {}, &ProgramValue::type) &&
         std::ranges::equal(sizes, values) && (!by_default || device == current_device());
}

/// Where all arguments are, apart from single values of the host. All of the host go to a mesh.
std::optional<Device> Program::device_for(std::span<const TypeRef> types) const {
  TypeRef first = nullptr;
  for (TypeRef type : types) {
    if (type->device.is_host() && (type->rank() == 0 || mesh_)) continue;
    if (!first) first = type;
    if (type->device != first->device)
      fail(Hint{"move one of them with .to(device)"}, "{}(): arguments are on {} and {}: {} and {}",
           signature_.function, to_text(first->device), to_text(type->device), *first, *type);
  }
  if (mesh_ && first && first->device != mesh_->device)
    fail(Hint{"move it to the host, .to(\"cpu\"), or divide it among the workers of that mesh"},
         "{}(): the executable is for the mesh {}, which is {}, and an argument is on {}: {}",
         signature_.function, mesh_->text, to_text(mesh_->device), to_text(first->device), *first);
  if (mesh_) return mesh_->device;
  if (!first) return {};
  return first->device;
}

std::shared_ptr<const Program::Ready> Program::ready(std::span<const ProgramValue> args,
                                                     std::span<const int64_t> sizes) const {
  Shared& shared = *shared_;
  {
    std::lock_guard lock(shared.mutex);
    if (shared.ready && shared.ready->serves(args, sizes)) return shared.ready;
  }
  InternScope scope;
  auto made = std::make_shared<Ready>();
  std::vector<TypeRef> types;  // those of the signature are on no device
  for (const ProgramValue& arg : args) {
    made->types.push_back(arg.type), scope.held.add(arg.type);
    types.push_back(on_device(arg.type, {}));
  }
  made->sizes.assign(sizes.begin(), sizes.end());
  std::vector<Binding> values = signature_.check(types, sizes);
  std::optional<Device> given = device_for(made->types);
  made->by_default = !given;
  Device device = made->device = given ? *given : current_device();
  std::shared_ptr<const Plan> plan = this->plan(values, device);
  Device driver = plan->parts ? Device() : device;  // parts know where they run
  made->plan = mesh_ ? std::make_shared<PlacedPlan>(PlacedPlan{driver, std::move(plan), {}})
                     : on_device(driver, std::move(plan), shared.copies);
  for (TypeRef type : signature_.outputs)
    made->results.push_back(on_device(substitute(type, replacements(values)), device));
  std::shared_ptr<const Ready> owner = std::move(scope.held).owned_by(std::move(made));
  std::lock_guard lock(shared.mutex);
  return shared.ready = std::move(owner);
}

std::vector<ProgramValue> Program::run(std::span<const ProgramValue> args,
                                       std::span<const int64_t> sizes) const {
  verify_weights();
  std::shared_ptr<const Ready> ready = this->ready(args, sizes);
  std::vector<Bound> in, out(ready->plan->plan->outputs.size());  // results, then effects
  in.reserve(args.size());
  for (const ProgramValue& arg : args)
    in.push_back(copy_to(ready->device, arg.value, static_cast<size_t>(arg.type->bytes())));
  tn::run(ready->plan, in, nullptr, out);
  std::vector<ProgramValue> results;
  results.reserve(ready->results.size());
  for (size_t i = 0; i < ready->results.size(); ++i) {
    hand_out(ready->results[i]);  // another call may let go of `ready`
    results.push_back({ready->results[i], std::move(out[i])});
  }
  return results;
}

}  // namespace tn
