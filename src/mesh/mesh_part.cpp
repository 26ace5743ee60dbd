#include "mesh/mesh_part.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/kernel_set.h"
#include "compiler/memory_report.h"
#include "compiler/worker_steps.h"
#include "sharding/shard.h"
#include "sharding/variation.h"

namespace tn::mesh {
namespace {

constexpr size_t kMostPlans = 16;

using sharding::Constraint;
using sharding::Priority;

/// How an input is divided, by whose layout each axis is of.
void add_constraints(const Mesh& mesh, Val v, const Division& division,
                     std::vector<Constraint>& to) {
  for (Priority priority : {Priority::data, Priority::parameter, Priority::stored}) {
    Layout own(mesh);
    for (int t = 0; t < mesh.count(); ++t) {
      Priority its = division.layout.is_stored(t)   ? Priority::stored
                     : division.parameters >> t & 1 ? Priority::parameter
                                                    : Priority::data;
      if (its == priority) own[t] = division.layout[t];
    }
    if (!own.is_whole()) to.push_back({v, own, priority});
  }
}

/// Reports control flow in which workers may not meet. An error says so if they do not.
void add_uneven_paths(const Mesh& mesh, const Graph& local, const std::vector<Layout>& inputs,
                      Decisions& to) {
  std::vector<uint32_t> divided;
  for (const Layout& layout : inputs) divided.push_back(sharding::divided_axes(mesh, layout));
  for (const sharding::UnevenPath& path : sharding::uneven_paths(local, mesh, divided))
    to.push_back({"shard", false, format("{} sure to meet", path.op),
                  format("its predicate may differ by worker along '{}', and its collectives there "
                         "depend on it",
                         mesh[path.axis].name),
                  path.loc});
}

}  // namespace

MeshPart::MeshPart(MeshWorld& world, const Graph& graph, const CompileOptions& options)
    : world_(world), graph_(expand_composites(graph)), options_(options) {
  held_.add(graph_);
  expected_.resize(static_cast<size_t>(graph_.inputs()), world.whole());
  readers_.resize(expected_.size());
  if (!world.is_threads()) origins_.emplace(graph_, world.mesh(), options);
  for (const GraphOp& op : graph_.ops)
    for (Val v : graph_.in(op))
      if (v < graph_.inputs()) readers_[static_cast<size_t>(v)] = op.loc;
  for (size_t i = 0, n = options.constants.size(); i < n; ++i) {
    const Bound& value = options.constants[i];
    if (!value.is_absent() && !value.buffer->device.is_host())
      expected_[expected_.size() - n + i] = value_in(*value.buffer).division;
  }
  options_.constants.clear(), options_.sizes.clear();
  // Transports of processes have no sums that start and wait as separate steps.
  if (world.is_threads()) options_.on.emplace_back(kOverlap);
  if (!options_.donated.empty()) options_.donated.resize(static_cast<size_t>(graph_.inputs()));
}

std::shared_ptr<const WorkerPlan> MeshPart::plan_to_run(std::span<const Division* const> in) const {
  int64_t limit = options_.memory_limit;  // all processes refuse the same runs
  std::shared_ptr<const WorkerPlan> plan = plan_for(in, world_.here() > 0 || limit > 0);
  if (limit && plan->needed > limit) {
    std::string place = world_.mesh().is_part() ? format(" of {}", world_.name()) : "";
    fail(Fault::memory,
         Hint{"divide more: tn.shard of the batch, tn.stored of parameters, more workers; or use "
              "smaller batches, or raise memory_limit",
              "divide more: tn::shard of the batch, tn::stored of parameters, more workers; or use "
              "smaller batches, or raise memory_limit"},
         "compile: {}",
         over_limit_text(memory_report(*plan->made.plan), limit, options_.effort,
                         " of a worker" + place));
  }
  return plan;
}

std::shared_ptr<const WorkerPlan> MeshPart::plan_for(std::span<const Division* const> in,
                                                     bool whole) const {
  std::lock_guard lock(mutex_);
  auto known = std::ranges::find_if(plans_, [&](auto& p) { return std::ranges::equal(p->in, in); });
  if (known != plans_.end()) {
    std::rotate(known, known + 1, plans_.end());
    if (whole && !plans_.back()->made.plan) plans_.back() = make(in, whole);
    return plans_.back();
  }
  std::shared_ptr<const WorkerPlan> made = make(in, whole);
  if (plans_.size() == kMostPlans) plans_.erase(plans_.begin());
  return plans_.emplace_back(std::move(made));
}

std::shared_ptr<const WorkerPlan> MeshPart::last() const {
  std::vector<const Division*> in = expected_;
  {
    std::lock_guard lock(mutex_);
    if (!plans_.empty()) in = plans_.back()->in;
  }
  return plan_for(in, true);
}

std::string MeshPart::text() const {
  std::shared_ptr<const WorkerPlan> plan = last();
  const Mesh& mesh = world_.mesh();
  std::string text = format("mesh {}\n", to_text(mesh));
  auto add = [&](std::string_view name, Val v, const Division& division) {
    TypeRef type = graph_.types[static_cast<size_t>(v)];
    text += format("{}: {} {}\n", name, *type, to_text(mesh, division.layout, type->rank()));
  };
  for (int i = 0; i < graph_.inputs(); ++i)
    add("%" + graph_.input_names[static_cast<size_t>(i)], i, *plan->in[static_cast<size_t>(i)]);
  for (size_t i = 0; i < graph_.outputs.size(); ++i)
    add(format("result {}", i), graph_.outputs[i], *plan->out[i]);
  for (const Decision& d : plan->decisions) {
    text += format("{}{}: {}", d.made ? "" : "not ", d.what, d.reason);
    if (std::string place = to_text(d.loc); !place.empty()) text += format(" ({})", place);
    text += '\n';
  }
  return text + to_text(plan->traffic) + collectives_text(*plan->made.plan) + plan->local;
}

std::shared_ptr<const WorkerPlan> MeshPart::make(std::span<const Division* const> in,
                                                 bool whole) const {
  InternScope scope;
  const Mesh& mesh = world_.mesh();
  auto plan = std::make_shared<WorkerPlan>();
  plan->in.assign(in.begin(), in.end());
  std::vector<Constraint> constraints;
  sharding::Given given{.constants = options_.runtime_scalars};
  for (size_t i = 0; i < in.size(); ++i) {
    given.inputs.push_back(in[i]->layout);
    add_constraints(mesh, static_cast<Val>(i), *in[i], constraints);
  }
  sharding::Sharded made = sharding::shard(graph_, mesh, constraints, &plan->decisions, given);
  for (size_t i = 0; i < graph_.outputs.size(); ++i)
    plan->out.push_back(world_.intern({made.local.outputs[i], made.parameters[i]}));
  add_uneven_paths(mesh, made.local.graph, given.inputs, plan->decisions);
  if (!whole) return plan;
  plan->local = to_text(made.local.graph);
  plan->made = compilation_of(made.local.graph, options_);
  plan->traffic = sharding::traffic_of(plan->made.set->graph);
  plan->ops = worker_ops(made.local.graph), plan->compiled = options_.effort != Effort::e0;
  if (origins_) plan->meetings = meetings_in(plan->made.set->graph, graph_, mesh);
  plan->needed = memory_needed(*plan->made.plan);
  for (Val v : made.local.graph.outputs)
    plan->result_bytes += made.local.graph.types[static_cast<size_t>(v)]->bytes();
  scope.held.add(made.local.graph);
  plan->made.plan = std::move(scope.held).owned_by(std::move(plan->made.plan));
  return plan;
}

}  // namespace tn::mesh
