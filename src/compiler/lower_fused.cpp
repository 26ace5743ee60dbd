#include "compiler/lower_fused.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "compiler/bundle.h"
#include "compiler/memory_report.h"
#include "compiler/plan_memory.h"
#include "compiler/stopwatch.h"
#include "compiler/worker_steps.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "loop/interpreter.h"

namespace tn {

static constexpr int kNoCluster = -1;

FusedLowerer::FusedLowerer(KernelSet& set, const Graph& graph, std::span<const Binding> sizes,
                           CompileCounts& counts)
    : PlanBuilder(graph, set.options), set_(set), sizes_(sizes), counts_(counts) {}

void FusedLowerer::add_steps() {
  Stopwatch lowering(timed(counts_.lowering_ms), CompileStage::lowering);
  for (size_t i = 0; i < set_.order.size(); ++i) {
    size_t before = plan_->steps.size();
    lower(set_.order[i]);
    if (i < set_.names.size() && plan_->steps.size() > before)
      plan_->steps.back().name = set_.names[i];
  }
  return_outputs();
}

/// When the steps have their kernels.
void FusedLowerer::arrange_steps() {
  fold_in_place(*plan_);
  if (std::ranges::count(options_.on, kOverlap))
    overlap_collectives(*plan_, options_.memory_limit == 0);
  if (!std::ranges::count(options_.off, "bundle")) bundle_steps(*plan_);
}

int64_t FusedLowerer::memory() {
  add_steps();
  arrange_steps();
  MemoryPlanning how = options_.planning();
  // A guess need not be the best.
  plan_memory(*plan_, how == MemoryPlanning::optimal ? MemoryPlanning::best_fit : how);
  return memory_needed(*plan_);
}

std::shared_ptr<const Plan> FusedLowerer::lower() {
  add_steps();
  bind_kernels();
  Stopwatch memory(timed(counts_.memory_ms), CompileStage::memory);
  arrange_steps();
  plan_memory(*plan_, options_.planning(), &set_.step_order);
  ++counts_.plans;
  return plan_;
}

void FusedLowerer::lower(int item) {
  size_t before = plan_->steps.size();
  if (item < 0)
    lower_cluster(~item);
  else
    lower_alone(graph_.ops[static_cast<size_t>(item)]);
  if (plan_->steps.size() > before) add_ops(item);
}

/// The last step computes them; those before it copied operands.
void FusedLowerer::add_ops(int item) {
  Step& step = plan_->steps.back();
  step.ops.reserve(item < 0 ? set_.clusters[static_cast<size_t>(~item)].members.size() : 1);
  auto add = [&](int n) {
    const GraphOp& op = graph_.ops[static_cast<size_t>(n)];
    step.ops.push_back({op.op, type(op.out), op.loc});
  };
  if (item >= 0) return add(item);
  const FusedOps& cluster = set_.clusters[static_cast<size_t>(~item)];
  if (cluster.hero >= 0 && step.library()) add(cluster.hero);
  for (int m : cluster.members) add(m);
}

/// Views are looked through on demand: inside kernels they are coordinates.
Home& FusedLowerer::home(Val v) {
  Home& h = homes_[static_cast<size_t>(v)];
  int made_by = set_.producer[static_cast<size_t>(v)];
  if (h.kind == Home::Kind::none && made_by >= 0) {
    const GraphOp& op = graph_.ops[static_cast<size_t>(made_by)];
    if (op.op->view) lower_view(op);
  }
  return h;
}

void FusedLowerer::copy(Val v) {
  Home from = home(v);
  SharedKernel* made = type(v)->elements ? kernel(KernelUse::copy, v) : nullptr;
  give_buffer(v);
  if (made)
    add_kernel(*made);
  else if (type(v)->elements)
    add_copy(v, from);
}

/// Sets from files have the kernels that the sizes they were planned for asked for; where a view
/// has no strides at others, the library copies it.
void FusedLowerer::add_copy(Val v, const Home& from) {
  invariant(from.kind == Home::Kind::buffer, "a number is copied without a kernel");
  CopyStep copy;
  copy.element_bytes = static_cast<int64_t>(size_of(type(v)->dtype));
  copy.offset = from.at.offset * copy.element_bytes;
  for (Dim d : from.at.shape) copy.extents.push_back(d.value());
  copy.strides.assign(from.at.strides.begin(), from.at.strides.end());
  plan_->steps.push_back({.what = std::move(copy),
                          .buffers = {from.buffer, home(v).buffer},
                          .writes = {1},
                          .name = "copy",
                          .loc = loc_});
}

std::vector<std::shared_ptr<const Plan>> FusedLowerer::body_plans(const GraphOp& op) {
  return set_.body_plans(number_of(op), sizes_, counts_);
}

SharedKernel& FusedLowerer::needed(KernelUse use, int number) {
  SharedKernel* found = kernel(use, number);
  if (!found) fail("damaged: a set of kernels lacks one that its graph needs");
  return *found;
}

void FusedLowerer::lower_cluster(int number) {
  const FusedOps& cluster = set_.clusters[static_cast<size_t>(number)];
  loc_ = graph_.ops[static_cast<size_t>(cluster.members.back())].loc;
  for (Val v : cluster.rows) contiguous(v);
  for (Val v : cluster.reads) home(v);
  for (Val v : cluster.stores) give_buffer(v);
  if (cluster.hero >= 0) {
    const GraphOp& hero = graph_.ops[static_cast<size_t>(cluster.hero)];
    if (lower_tiled(hero, number)) return;
    lower_alone(hero);
  }
  add_kernel(needed(KernelUse::cluster, number));
}

void FusedLowerer::lower_alone(const GraphOp& op) {
  loc_ = op.loc;
  if (lower_tiled(op, kNoCluster)) return;
  if (set_.library[static_cast<size_t>(number_of(op))]) {
    lower_call(op);
    if (auto* call = std::get_if<LibraryStep>(&plan_->steps.back().what))
      if (call->kernel->only_checks && type(op.out)->elements) add_nest(op, *call);
    return;
  }
  Types out = graph_.out_types(op);
  if (std::ranges::all_of(out, [](TypeRef t) { return t->elements == 0; })) {
    for (int i = 0; i < op.outs; ++i) give_buffer(op.out + i);
  } else {
    PlanBuilder::buffers_of(op);
    add_kernel(needed(KernelUse::nest, number_of(op)));
  }
}

/// The loop nest computes what the call has checked.
void FusedLowerer::add_nest(const GraphOp& op, LibraryStep& call) {
  SharedKernel& nest = needed(KernelUse::nest, number_of(op));
  Step& step = plan_->steps.back();
  std::vector<int32_t> more = buffers_of(nest);
  for (int32_t written : nest.access.writes)
    step.writes.push_back(static_cast<int32_t>(step.buffers.size()) + written);
  step.buffers.insert(step.buffers.end(), more.begin(), more.end());
  call.after.kernel = nest.kernel;
  pending_.push_back({&nest, plan_->steps.size() - 1});
}

/// The constant that another machine packed, as it was.
void FusedLowerer::unpack(const GraphOp& op, int32_t constant) {
  Bound& raw = set_.options.constants[static_cast<size_t>(constant)];
  if (raw.is_absent()) raw = {unpacked(set_, number_of(op)), 0};
  plan_->constants[static_cast<size_t>(constant)] = raw;
}

/// A second operand known now is packed now, once for all runs and sizes: its order does not depend
/// on the other operand.
void FusedLowerer::pack_ahead(LibraryStep& tiled, const GraphOp& op,
                              const std::vector<int32_t>& buffers) {
  int32_t constant = buffers[1] - plan_->inputs;
  if (constant < 0 || constant >= static_cast<int32_t>(plan_->constants.size())) return;
  const TiledForm::Packing* packing = tiled.kernel->tiled->packing;
  if (!packing) return;
  auto known = set_.packed.find(number_of(op));
  if (known != set_.packed.end() && known->second.layout != packing->layout()) {
    unpack(op, constant);
    set_.packed.erase(known), known = set_.packed.end();
  }
  const Bound& bound = plan_->constants[static_cast<size_t>(constant)];
  HostView host(bound);
  const void* in[] = {nullptr, host.data()};
  TiledCall call{op.attr_data(), tiled.in, tiled.out, tiled.at, in, nullptr};
  int64_t bytes = packing->bytes(call);
  bool absent = bound.is_absent();  // then the packed one serves even where it is not faster
  if (bytes == 0 && !absent) return;
  if (known == set_.packed.end()) {
    invariant(!absent, "{}: its constant is absent and not packed", op.op->name);
    PackedRight made{.data = allocate(static_cast<size_t>(bytes)),
                     .layout = packing->layout(),
                     .constant = constant};
    std::memset(made.data.data(), 0, static_cast<size_t>(bytes));  // files have it, padding and all
    made.in = tiled.in, made.out = tiled.out, made.at = tiled.at;
    packing->pack(call, made.data.data());
    known = set_.packed.emplace(number_of(op), std::move(made)).first;
  }
  invariant(static_cast<int64_t>(known->second.data.bytes()) >= bytes,
            "{}: a packed constant is too short", op.op->name);
  tiled.packed = known->second.data;
}

/// A buffer for the sums: that of a finished result when it has no other reader.
void FusedLowerer::give_result(const GraphOp& op, int cluster) {
  Val sums = cluster < 0 ? kNoVal : set_.clusters[static_cast<size_t>(cluster)].sums;
  if (sums == kNoVal) {
    give_buffer(op.out);
    return;
  }
  Home& h = homes_[static_cast<size_t>(op.out)];
  h = home(sums);
  h.at = Strided::row_major(type(op.out)->shape);
}

bool FusedLowerer::lower_tiled(const GraphOp& op, int cluster) {
  std::vector<TypeRef> in = graph_.in_types(op);
  const LibraryKernel* kernel = library_kernel(*op.op, in, options_.target);
  if (!kernel || !kernel->tiled) return false;
  for (TypeRef t : in)
    if (t->elements == 0) return false;
  Types out = graph_.out_types(op);
  LibraryStep tiled{{op.op, op.attrs, in, {out.begin(), out.end()}}, kernel};
  std::vector<int32_t> buffers;
  int64_t repeats = INT64_MAX;
  for (Val v : graph_.in(op)) {
    if (home(v).kind != Home::Kind::buffer) contiguous(v);
    repeats = std::min(repeats, type(v)->elements / home(v).size);
    buffers.push_back(home(v).buffer);
    tiled.at.push_back(home(v).at);
  }
  check_repeats(op.op->name, repeats);
  pack_ahead(tiled, op, buffers);
  if (homes_[static_cast<size_t>(op.out)].kind == Home::Kind::none) give_result(op, cluster);
  SharedKernel* work = cluster < 0 ? nullptr : this->kernel(KernelUse::tile, cluster);
  if (cluster >= 0 && !work) return false;
  buffers.push_back(home(op.out).buffer);
  add_tiled(op, std::move(tiled), std::move(buffers), work);
  return true;
}

void FusedLowerer::add_tiled(const GraphOp& op, LibraryStep tiled, std::vector<int32_t> buffers,
                             SharedKernel* work) {
  auto result = static_cast<int32_t>(tiled.in.size());
  Step step{.buffers = std::move(buffers),
            .writes = {result},
            .name = std::string(op.op->name),
            .loc = op.loc};
  if (work) {
    std::vector<int32_t> more = buffers_of(*work);
    step.buffers.insert(step.buffers.end(), more.begin(), more.end());
    step.scalars = work->scalars;
    for (int32_t written : work->access.writes) step.writes.push_back(result + 1 + written);
    // Blocks are worked on once each; where the sums are made, nothing else may be read.
    for (auto [input, output] : work->access.in_place)
      if (more[static_cast<size_t>(output)] != step.buffers[static_cast<size_t>(result)])
        step.in_place.push_back({result + 1 + input, result + 1 + output});
    tiled.after.kernel = work->kernel;
    pending_.push_back({work, plan_->steps.size()});
  }
  add_room(op, tiled, step);
  step.what = std::move(tiled);
  plan_->steps.push_back(std::move(step));
}

/// What the call needs for its own time are buffers of the plan that no other step uses.
void FusedLowerer::add_room(const GraphOp& op, LibraryStep& tiled, Step& step) {
  const TiledForm& form = *tiled.kernel->tiled;
  if (!form.room) return;
  const void* packed = tiled.packed ? tiled.packed.data() : nullptr;
  TileRoom room =
      form.room({op.attr_data(), tiled.in, tiled.out, tiled.at, nullptr, nullptr, packed});
  for (int64_t bytes : room.bytes) {
    auto at = static_cast<int32_t>(step.buffers.size());
    tiled.room.push_back({bytes, at});
    if (bytes == 0) continue;
    step.writes.push_back(at);
    step.buffers.push_back(add_buffer(bytes));
  }
}

std::vector<int32_t> FusedLowerer::buffers_of(const SharedKernel& kernel) {
  std::vector<int32_t> buffers;
  for (Val v : kernel.values) {
    invariant(home(v).kind == Home::Kind::buffer, "kernel {}: value {} is not in memory",
              kernel.kernel->name, v);
    buffers.push_back(home(v).buffer);
  }
  return buffers;
}

void FusedLowerer::add_kernel(SharedKernel& kernel) {
  add_step(kernel.kernel, kernel.access, buffers_of(kernel), kernel.scalars, sizes_);
  pending_.push_back({&kernel, plan_->steps.size() - 1});
}

/// Steps get their kernels for these sizes; those that no plan had before are compiled.
void FusedLowerer::bind_kernels() {
  std::vector<SharedKernel*> kernels;
  for (const Pending& p : pending_) kernels.push_back(p.kernel);
  set_.compile(kernels, sizes_, counts_);
  Stopwatch lowering(timed(counts_.lowering_ms), CompileStage::lowering);
  std::unordered_map<const loop::Kernel*, std::shared_ptr<const loop::BlockProgram>> programs;
  for (const auto& [kernel, number] : pending_) {
    Step& step = plan_->steps[number];
    auto* library = std::get_if<LibraryStep>(&step.what);
    KernelStep& call = library ? library->after : std::get<KernelStep>(step.what);
    if (kernel->code) {
      call.code = kernel->code->bind(sizes_);
      continue;
    }
    auto& program = programs[kernel->kernel.get()];
    if (!program) program = loop::prepare(*kernel->kernel, sizes_);
    call.program = program;
  }
}

namespace {

/// Parts of a set that plans add to it, and that refer to types.
size_t parts_of(const KernelSet& set) {
  size_t parts = set.bodies.size() + set.packed.size();
  for (const auto& [op, bodies] : set.bodies) parts += bodies.size();
  return parts;
}

}  // namespace

std::shared_ptr<const Plan> plan_of(KernelSet& set, std::span<const Binding> sizes,
                                    CompileCounts& counts) {
  InternScope scope;
  size_t parts = parts_of(set);
  Graph graph = sizes.empty() ? Graph() : substitute(set.graph, replacements(sizes));
  std::shared_ptr<const Plan> plan =
      FusedLowerer(set, sizes.empty() ? set.graph : graph, sizes, counts).lower();
  if (parts_of(set) != parts) scope.held.make_lasting();
  return std::move(scope.held).owned_by(std::move(plan));
}

int64_t memory_of(KernelSet& set, std::span<const Binding> sizes) {
  InternScope scope;
  size_t parts = parts_of(set);
  CompileCounts none;
  Graph graph = substitute(set.graph, replacements(sizes));
  int64_t bytes = FusedLowerer(set, graph, sizes, none).memory();
  if (parts_of(set) != parts) scope.held.make_lasting();
  return bytes;
}

}  // namespace tn
