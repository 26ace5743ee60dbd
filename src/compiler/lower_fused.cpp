#include "compiler/lower_fused.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/bundle.h"
#include "compiler/kernel_maker.h"
#include "compiler/memory.h"
#include "loop/interpreter.h"
#include "loop/step_source.h"

namespace tn {

/// A library call with operands in place, and the kernel that works on its blocks. Buffers of a
/// step: the operands, the result, then those of the kernel.
struct FusedLowerer::Tiled {
  const Attrs* attrs;
  const ops::TiledForm* form;
  std::vector<TypeRef> in, out;
  std::vector<Strided> at;
  BufferRef packed;
  std::shared_ptr<const NativeKernel> work;
  std::shared_ptr<const loop::Program> after;  // where the work has no machine code
};

namespace {

using Tiled = FusedLowerer::Tiled;

void run_program(const void* data, const StepCall& call) {
  loop::run(*static_cast<const loop::Program*>(data), call.buffers, call.scalars);
}

const void* attr_data(const Tiled& tiled) { return tiled.attrs ? tiled.attrs->data : nullptr; }

struct TiledRun {
  const Tiled* tiled;
  const StepCall* call;
};

void work_on_tile(const void* data, const KernelTile& tile) {
  const TiledRun& r = *static_cast<const TiledRun*>(data);
  run_tile(*r.tiled->work, r.call->buffers + r.tiled->in.size() + 1, r.call->scalars, tile);
}

void run_tiled(const void* data, const StepCall& call) {
  const Tiled& t = *static_cast<const Tiled*>(data);
  TiledRun self{&t, &call};
  ops::TiledCall tiled{attr_data(t),
                       t.in,
                       t.out,
                       t.at,
                       call.buffers,
                       call.buffers[t.in.size()],
                       t.packed ? t.packed.data() : nullptr,
                       {}};
  if (t.work) tiled.work = {work_on_tile, &self};
  t.form->run(tiled);
  if (t.after) loop::run(*t.after, call.buffers + t.in.size() + 1, call.scalars);
}

}  // namespace

FusedLowerer::FusedLowerer(const Graph& graph, const CompileOptions& options, CompileReport* report)
    : PlanBuilder(graph, options, report),
      fusion_(fuse(graph, options.off, report ? &report->decisions : nullptr)) {}

std::shared_ptr<const Plan> FusedLowerer::lower() {
  for (const GraphOp& op : graph_.ops)
    if (op.op == &scalar_leaf) lower_leaf(op);
  for (int n : fusion_.order) {
    if (n < 0)
      lower_cluster(fusion_.clusters[static_cast<size_t>(~n)]);
    else
      lower_alone(graph_.ops[static_cast<size_t>(n)]);
  }
  return_outputs();
  compile_pending();
  if (!std::ranges::count(options_.off, "bundle")) {
    int joined = bundle_steps(*plan_);
    if (report_ && joined > 0)
      report_->decisions.push_back({"bundle", true, format("{} kernels run with others", joined),
                                    "they do not depend on each other, so threads meet once"});
  }
  plan_memory(*plan_, options_.effort == Effort::e1);
  return plan_;
}

/// Views are looked through when somebody asks: inside kernels they are coordinates.
Home& FusedLowerer::home(Val v) {
  Home& h = homes_[static_cast<size_t>(v)];
  int made_by = fusion_.producer[static_cast<size_t>(v)];
  if (h.kind == Home::Kind::none && made_by >= 0) {
    const GraphOp& op = graph_.ops[static_cast<size_t>(made_by)];
    if (op.op->view) lower_view(op);
  }
  return h;
}

void FusedLowerer::lower_cluster(const Cluster& cluster) {
  loc_ = graph_.ops[static_cast<size_t>(cluster.members.back())].loc;
  for (int m : cluster.members) {
    const GraphOp& op = graph_.ops[static_cast<size_t>(m)];
    if (!op.op->is_elementwise() && op.op->lower)
      for (Val v : graph_.in(op)) contiguous(v);
  }
  for (const auto& [v, at] : cluster.stores) give_buffer(v);
  if (cluster.hero >= 0) {
    const GraphOp& hero = graph_.ops[static_cast<size_t>(cluster.hero)];
    if (lower_tiled(hero, &cluster)) return;
    lower_alone(hero);
  }
  auto where = [this](Val v) -> const Home& { return home(v); };
  FusedKernel fused(graph_, fusion_, cluster, where);
  loop::Kernel kernel = fused.whole();
  add_kernel(std::move(kernel), std::move(fused.buffers), std::move(fused.scalars));
}

void FusedLowerer::lower_alone(const GraphOp& op) {
  loc_ = op.loc;
  if (type(op.out)->elements == 0 || has_loop_form(graph_, op)) return lower_empty(op);
  if (lower_tiled(op, nullptr)) return;
  if (op.op->lower && !op.op->run)
    lower_nest(op);
  else
    lower_library(op);
}

/// Ops on no elements: sums of nothing, and results that only need a place.
void FusedLowerer::lower_empty(const GraphOp& op) {
  if (!has_loop_form(graph_, op)) {
    if (op.op->run) return lower_library(op);
    return lower_nest(op);
  }
  bool folds = op.op->family == Family::reduction;
  Axes reduced = folds ? folding_of(op).axes : Axes();
  KernelMaker maker(graph_, std::string(op.op->name),
                    type(folds ? graph_.in(op)[0] : op.out)->shape, reduced);
  for (Val v : graph_.in(op)) maker.read(v, home(v));
  give_buffer(op.out);
  maker.write(op.out, home(op.out));
  maker.start();
  maker.compute(op);
  loop::Kernel kernel = maker.finish();
  add_kernel(std::move(kernel), std::move(maker.buffers), std::move(maker.scalars));
}

/// A second operand known now is packed now, once for all runs.
void FusedLowerer::pack_ahead(Tiled& tiled, const std::vector<int32_t>& buffers) {
  int32_t constant = buffers[1] - plan_->inputs;
  if (constant < 0 || constant >= static_cast<int32_t>(plan_->constants.size())) return;
  const Bound& bound = plan_->constants[static_cast<size_t>(constant)];
  const void* in[] = {nullptr, static_cast<const char*>(bound.buffer->data) + bound.offset};
  ops::TiledCall call{attr_data(tiled), tiled.in, tiled.out, tiled.at, in, nullptr, nullptr, {}};
  int64_t bytes = tiled.form->packed_bytes(call);
  if (bytes == 0) return;
  tiled.packed = allocate(static_cast<size_t>(bytes));
  tiled.form->pack(call, tiled.packed.data());
}

/// A buffer for the sums: that of a finished result when nobody else wants them.
void FusedLowerer::give_result(const GraphOp& op, const Cluster* cluster) {
  if (!cluster) {
    give_buffer(op.out);
    return;
  }
  for (const auto& [v, at] : cluster->stores) {
    if (type(v)->dtype != type(op.out)->dtype || type(v)->elements != cluster->points) continue;
    Home& h = homes_[static_cast<size_t>(op.out)];
    h = home(v);
    h.at = Strided::row_major(type(op.out)->shape);
    return;
  }
  give_buffer(op.out);
}

bool FusedLowerer::lower_tiled(const GraphOp& op, const Cluster* cluster) {
  std::vector<TypeRef> in = graph_.in_types(op);
  const ops::TiledForm* form = ops::tiled_form(*op.op, in);
  if (!form) return false;
  for (TypeRef t : in)
    if (t->elements == 0) return false;
  Types out = graph_.out_types(op);
  auto tiled = std::make_shared<Tiled>();
  *tiled = {op.attrs, form, in, {out.begin(), out.end()}, {}, {}, {}, {}};
  std::vector<int32_t> buffers;
  for (Val v : graph_.in(op)) {
    if (home(v).kind != Home::Kind::buffer) contiguous(v);
    buffers.push_back(home(v).buffer);
    tiled->at.push_back(home(v).at);
  }
  pack_ahead(*tiled, buffers);
  std::optional<FusedKernel> fused;
  std::optional<loop::Kernel> kernel;
  if (homes_[static_cast<size_t>(op.out)].kind == Home::Kind::none) give_result(op, cluster);
  if (cluster) {
    auto where = [this](Val v) -> const Home& { return home(v); };
    fused.emplace(graph_, fusion_, *cluster, where);
    ops::TileDomain d = form->domain(op.attr_data(), in, out);
    kernel = fused->tile(d.batch, d.rows, d.columns);
    if (!kernel) return false;
  }
  buffers.push_back(home(op.out).buffer);
  std::vector<int32_t> scalars;
  if (fused) {
    buffers.insert(buffers.end(), fused->buffers.begin(), fused->buffers.end());
    scalars = fused->scalars;
  }
  if (report_) report_->loops += format("library {}\n\n", op.op->name);
  Step step{run_tiled, tiled, std::move(buffers), std::move(scalars)};
  step.writes.push_back(static_cast<int32_t>(in.size()));
  if (kernel)
    for (size_t i = 0; i < kernel->buffers.size(); ++i)
      if (kernel->buffers[i].written)
        step.writes.push_back(static_cast<int32_t>(in.size() + 1 + i));
  step.name = op.op->name;
  step.place = op.loc.bits;
  if (report_) {
    auto after = kernel ? std::make_shared<const loop::Kernel>(*kernel) : nullptr;
    step.source = std::make_shared<const StepSource>(
        StepSource{std::move(after), op.op, op.attrs, tiled->in, tiled->out, tiled->at});
  }
  plan_->steps.push_back(std::move(step));
  if (kernel) {
    if (report_) report_->loops += to_text(*kernel) + "\n";
    pending_.push_back({std::move(*kernel), cpu::Form::tile, plan_->steps.size() - 1});
  }
  return true;
}

void FusedLowerer::add_kernel(loop::Kernel kernel, std::vector<int32_t> buffers,
                              std::vector<int32_t> scalars) {
  add_step(kernel, std::move(buffers), std::move(scalars));
  pending_.push_back({std::move(kernel), cpu::Form::whole, plan_->steps.size() - 1});
}

void FusedLowerer::compile_pending() {
  std::vector<cpu::KernelRequest> requests;
  for (const Pending& p : pending_) requests.push_back({&p.kernel, p.form});
  auto compiled = cpu::compile_kernels(requests);
  for (size_t i = 0; i < pending_.size(); ++i) {
    Step& step = plan_->steps[pending_[i].step];
    if (report_ && compiled[i])
      report_->kernels +=
          format("# {}\n{}\n", pending_[i].kernel.name, cpu::assembly_text(requests[i]));
    if (pending_[i].form == cpu::Form::tile) {
      auto tiled = std::static_pointer_cast<Tiled>(std::const_pointer_cast<void>(step.data));
      if (compiled[i]) tiled->work = compiled[i]->at();
      if (!compiled[i]) tiled->after = loop::prepare(pending_[i].kernel, {});
    } else if (compiled[i]) {
      step.run = run_native;
      step.data = compiled[i]->at();
    } else {
      step.run = run_program;
      step.data = loop::prepare(pending_[i].kernel, {});
    }
  }
}

}  // namespace tn
