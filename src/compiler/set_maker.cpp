#include "compiler/set_maker.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/evaluate.h"
#include "compiler/fitting.h"
#include "compiler/fused_kernel.h"
#include "compiler/kernel_table.h"
#include "compiler/placing.h"
#include "compiler/step_names.h"
#include "compiler/stopwatch.h"
#include "compiler/worker_steps.h"
#include "ir/interned.h"
#include "passes/pipeline.h"
#include "plan/first_code.h"

namespace tn {

namespace {

/// Fails for a name that nothing to switch off has.
void check_off(const std::vector<std::string>& off) {
  constexpr std::string_view kFusions[] = {"fuse", "row-kernels", "epilogue", "bundle"};
  for (const std::string& name : off) check_pass_name(name, kFusions);
}

/// Of what can be asked for.
bool is_no_pass(std::string_view name) { return name == kOverlap || name == kInterpretFirst; }

void check_names(const CompileOptions& options) {
  check_off(options.off);
  for (const std::string& name : options.on)
    if (!is_no_pass(name)) check_asked_for(name);
}

/// Of a reduction of no elements: every result is what folding nothing gives.
loop::Kernel empty_fold(const Graph& graph, const GraphOp& op) {
  TypeRef type = graph.types[static_cast<size_t>(op.out)];
  DType from = graph.in_types(op)[0]->dtype, real = real_of(type->dtype);
  int64_t parts = is_complex(type->dtype) ? 2 : 1;
  Dim size = elements_of(*type) * parts;
  loop::Builder b{std::string(op.op->name)};
  PolyId at = b.axis(b.add_axis(size));
  int folded = b.add_axis(0, loop::AxisKind::red);
  int out = b.add_buffer("y0", real, size, true);
  loop::S some = b.constant(Scalar(1.0), info(real_of(from)).compute);
  loop::S none = b.reduce(op.op->monoid, some, 1u << folded);
  b.store(out, at, b.cast(none, real));
  return b.finish();
}

std::shared_ptr<const loop::Kernel> shared(loop::Kernel kernel) {
  return std::make_shared<const loop::Kernel>(std::move(kernel));
}

class Fused : public KernelSource {
 public:
  Fused(const Graph& graph, Fusion fusion, const CompileOptions& options)
      : fusion_(std::move(fusion)),
        target_(options.target),
        interprets_first_(first_code && std::ranges::count(options.on, kInterpretFirst)) {
    if (!fusion_.immediate) numbers_ = numbers_of(graph, options.runtime_scalars);
  }

  std::shared_ptr<SharedKernel> build(const KernelSet& set, KernelUse use, int number,
                                      std::span<const Home> homes) override {
    auto make = [&] {
      std::shared_ptr<SharedKernel> made = built(set, use, number, homes);
      if (made) made->access = access_of(*made->kernel);
      return made;
    };
    if (!fusion_.immediate) return make();
    const Graph& graph = set.graph;
    auto n = static_cast<size_t>(number);
    return table_.get(use == KernelUse::nest   ? table_.key_of(graph, graph.ops[n])
                      : use == KernelUse::copy ? table_.key_of(graph, Val{number}, homes)
                                               : table_.key_of(graph, fusion_.clusters[n], homes),
                      make);
  }

  void compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
               CompileCounts& counts) override {
    if (fusion_.immediate) return;  // they are interpreted
    Stopwatch code(&counts.code_ms, CompileStage::code);
    std::vector<KernelRequest> requests;
    std::vector<SharedKernel*> rest;
    for (SharedKernel* k : kernels) {
      KernelRequest request{k->kernel.get(), k->form, sizes};
      if (interprets_first_) k->code = first_code(request, target_);
      if (k->code) {
        ++counts.interpreted;
      } else {
        requests.push_back(request);
        rest.push_back(k);
      }
    }
    if (rest.empty()) return;
    KernelCounts found;
    auto compiled = generator_of(target_).compile(requests, target_, &found);
    counts.compiled += found.compiled;
    counts.from_memory += found.from_memory, counts.from_disk += found.from_disk;
    for (size_t i = 0; i < rest.size(); ++i) rest[i]->code = std::move(compiled[i]);
  }

 private:
  std::shared_ptr<SharedKernel> built(const KernelSet& set, KernelUse use, int number,
                                      std::span<const Home> homes) const {
    if (use == KernelUse::nest) return nest(set.graph, set.graph.ops[static_cast<size_t>(number)]);
    static const Cluster kNothing;
    const Cluster& cluster =
        use == KernelUse::copy ? kNothing : fusion_.clusters[static_cast<size_t>(number)];
    FusedKernel fused(set.graph, fusion_, cluster, fusion_.immediate ? homes : numbers_);
    std::optional<loop::Kernel> kernel = use == KernelUse::tile   ? fused.tile(target_)
                                         : use == KernelUse::copy ? fused.copy(number)
                                                                  : fused.whole();
    if (!kernel) return nullptr;
    KernelForm form = use == KernelUse::tile ? KernelForm::tile : KernelForm::whole;
    return std::make_shared<SharedKernel>(SharedKernel{
        shared(std::move(*kernel)), form, std::move(fused.values), std::move(fused.scalars)});
  }

  std::shared_ptr<SharedKernel> nest(const Graph& graph, const GraphOp& op) const {
    // With elements to fold it would be in a cluster.
    bool empty = has_loop_form(graph, op, target_);
    auto made = std::make_shared<SharedKernel>(
        SharedKernel{shared(empty ? empty_fold(graph, op) : nest_of(graph, op))});
    if (!empty)
      for (Val v : graph.in(op)) made->values.push_back(v);
    for (int i = 0; i < op.outs; ++i) made->values.push_back(op.out + i);
    return made;
  }

  Fusion fusion_;
  std::vector<Home> numbers_;  // by value
  Target target_;
  bool interprets_first_;
  KernelTable table_;  // of an immediate one
};

Graph run_passes_of(KernelSet& set, const Graph& graph) {
  PassContext context;
  context.constants = std::move(set.options.constants);
  context.evaluate = evaluate;
  context.runtime_scalars = set.options.runtime_scalars;
  context.decisions = &set.decisions;
  context.sizes = set.sizes;
  context.target = set.options.target;
  context.products = set.options.products;
  context.on = set.options.on;
  bool plain = std::ranges::all_of(set.options.on, is_no_pass);
  int rounds = set.options.effort == Effort::e2 ? 3 : plain ? 1 : 2;
  Graph optimized = run_passes(graph, context, pipeline(rounds), set.options.off);
  set.options.constants = std::move(context.constants);
  return optimized;
}

FusedOps fused_ops(const Graph& graph, const Cluster& cluster) {
  FusedOps ops{.members = cluster.members,
               .hero = cluster.hero,
               .sums = cluster.sums,
               .reads = cluster.reads};
  for (const auto& [v, at] : cluster.stores) ops.stores.push_back(v);
  for (int m : cluster.members) {
    const GraphOp& op = graph.ops[static_cast<size_t>(m)];
    if (op.op->is_elementwise() || !op.op->rules->lower) continue;
    for (Val v : graph.in(op)) ops.rows.push_back(v);
  }
  return ops;
}

void add_fusion(KernelSet& set, const std::vector<bool>& late) {
  Fusion fusion = fuse(set.graph, set.options, set.sizes, &set.decisions, late);
  set.producer = fusion.producer;
  set.order = fusion.order;
  for (const Cluster& c : fusion.clusters) set.clusters.push_back(fused_ops(set.graph, c));
  set.names = step_names(set);
  for (const GraphOp& op : set.graph.ops)
    set.library.push_back(is_call(set.graph, op, set.options));
  set.source = std::make_shared<Fused>(set.graph, std::move(fusion), set.options);
}

/// Kernels of symbolic sizes have elements to work on.
void require_elements(KernelSet& set) {
  for (TypeRef type : set.graph.types) {
    if (type->elements >= 0) continue;
    for (Dim d : type->shape) {
      if (at_least(d, 1) == Tri::yes) continue;
      auto same = [&](const SizeGuard& g) { return identical(g.a, d) && g.b.is(1); };
      if (!std::ranges::any_of(set.guards, same))
        set.guards.push_back({SizeGuard::Kind::at_least, d, 1, true, {}});
    }
  }
}

}  // namespace

std::unique_ptr<KernelSet> make_kernel_set(const Graph& graph, const CompileOptions& options,
                                           std::span<const Binding> sizes, CompileCounts& counts,
                                           std::vector<SizeGuard> guards) {
  check_names(options);
  auto set = std::make_unique<KernelSet>();
  set->options = options;
  if (options.effort == Effort::e0) {
    set->graph = expand_composites(graph);
    add_fusion(*set, {});
    return set;
  }
  LastingScope lasting;  // plans of all sizes share the set
  make_lasting(graph);
  set->sizes.assign(sizes.begin(), sizes.end());
  set->guards = std::move(guards);
  SizeHints hints(set->sizes);
  {
    Stopwatch passes(&counts.passes_ms, CompileStage::passes);
    set->graph = run_passes_of(*set, graph);
  }
  Stopwatch fusing(&counts.fusion_ms, CompileStage::fusion);
  add_fusion(*set, {});
  ++counts.graphs;
  set->guards.insert(set->guards.end(), hints.guards.begin(), hints.guards.end());
  require_elements(*set);
  for (const SizeGuard& g : set->guards)
    set->decisions.push_back({"sizes", true, format("assumed: {}", to_text(g)),
                              "other sizes get kernels of their own", g.loc});
  return set;
}

std::unique_ptr<KernelSet> make_rewritten_set(const KernelSet& set, const Rewritten& made,
                                              std::span<const Binding> sizes) {
  auto out = std::make_unique<KernelSet>();
  out->options = set.options;
  out->sizes.assign(sizes.begin(), sizes.end());
  out->guards = set.guards;
  out->graph = made.graph;
  SizeHints hints(out->sizes);
  add_fusion(*out, made.again);
  out->guards.insert(out->guards.end(), hints.guards.begin(), hints.guards.end());
  for (size_t i = 0; i < made.origin.size(); ++i) {
    if (auto known = set.packed.find(made.origin[i]); known != set.packed.end())
      out->packed.emplace(static_cast<int>(i), known->second);
    if (auto known = set.bodies.find(made.origin[i]); known != set.bodies.end())
      out->bodies.emplace(static_cast<int>(i), known->second);
  }
  return out;
}

const Compiler whole_compiler = {make_kernel_set, make_fitting_set, compile_placed, make_placed,
                                 improve_placement};

}  // namespace tn
