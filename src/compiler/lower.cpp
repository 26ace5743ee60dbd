#include "compiler/lower.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/kernel_maker.h"
#include "compiler/memory.h"
#include "compiler/step_names.h"
#include "ir/body.h"
#include "loop/interpreter.h"

namespace tn {

Lowerer::Lowerer(const Graph& graph, const CompileOptions& options, CompileReport* report)
    : PlanBuilder(graph, options, report),
      grouping_(group_elementwise(graph)),
      members_(graph.ops.size()),
      returned_(graph.types.size()) {
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (int root = grouping_.of[i]; root >= 0)
      members_[static_cast<size_t>(root)].push_back(static_cast<int>(i));
  for (Val v : graph.outputs) returned_[static_cast<size_t>(v)] = true;
}

std::shared_ptr<const Plan> Lowerer::lower() {
  for (size_t i = 0; i < graph_.ops.size(); ++i) {
    const GraphOp& op = graph_.ops[i];
    loc_ = op.loc;
    if (op.op == &scalar_leaf) continue;
    if (op.op->view)
      lower_view(op);
    else if (grouping_.of[i] != Grouping::kAlone) {
      if (grouping_.of[i] == static_cast<int>(i)) lower_group(static_cast<int>(i));
    } else {
      op.op->lower && !is_call(graph_, op) ? lower_nest(op) : lower_call(op);
      name_step({&op});
    }
  }
  return_outputs();
  tell_loops();
  plan_memory(*plan_, options_.planning());
  return plan_;
}

void Lowerer::add_kernel(loop::Kernel kernel, std::vector<int32_t> buffers,
                         std::vector<int32_t> scalars) {
  auto kept = std::make_shared<const loop::Kernel>(std::move(kernel));
  Step& step = add_step(kept, access_of(*kept), std::move(buffers), std::move(scalars));
  std::get<KernelStep>(step.what).program = loop::prepare(*kept, {});
}

void Lowerer::name_step(const std::vector<const GraphOp*>& ops) {
  if (plan_->steps.empty()) return;
  Step& step = plan_->steps.back();
  step.name = step_name(ops);
  for (const GraphOp* op : ops) step.ops.push_back({op->op, type(op->out), op->loc});
}

void Lowerer::copy(Val v) {
  KernelMaker maker(graph_, "copy", type(v)->shape, {});
  maker.read(v, home(v));
  give_buffer(v);
  maker.write(v, home(v));
  maker.start();
  maker.copy(v);
  loop::Kernel kernel = maker.finish();
  add_kernel(std::move(kernel), std::move(maker.buffers), std::move(maker.scalars));
}

void Lowerer::lower_nest(const GraphOp& op) {
  std::vector<int32_t> buffers = buffers_of(op);
  add_kernel(nest_of(graph_, op), std::move(buffers), {});
}

std::vector<std::shared_ptr<const Plan>> Lowerer::body_plans(const GraphOp& op) {
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const GraphRef& body : bodies_of(op)) plans.push_back(compile(*body, options_.of_bodies()));
  return plans;
}

const GraphOp* Lowerer::inlined(Val v) const {
  int made_by = grouping_.producer[static_cast<size_t>(v)];
  if (made_by < 0 || grouping_.of[static_cast<size_t>(made_by)] != Grouping::kInlined)
    return nullptr;
  return &graph_.ops[static_cast<size_t>(made_by)];
}

void Lowerer::lower_group(int root) {
  const GraphOp& end = graph_.ops[static_cast<size_t>(root)];
  bool folds = end.op->family == Family::reduction;
  Axes reduced;
  bool keepdims = false;
  if (folds) end.op->reduce_axes(end.attr_data(), reduced, keepdims);
  const Shape& domain = type(folds ? graph_.in(end)[0] : end.out)->shape;
  KernelMaker maker(graph_, std::string(end.op->name), domain, reduced);
  const std::vector<int>& members = members_[static_cast<size_t>(root)];
  std::vector<const GraphOp*> ops;  // repeated ones first: they read from outside only
  for (int m : members)
    for (Val v : graph_.in(graph_.ops[static_cast<size_t>(m)]))
      if (const GraphOp* again = inlined(v); again && std::ranges::count(ops, again) == 0)
        ops.push_back(again);
  for (int m : members) ops.push_back(&graph_.ops[static_cast<size_t>(m)]);
  for (const GraphOp* op : ops) {
    for (Val v : graph_.in(*op)) {
      int made_by = grouping_.producer[static_cast<size_t>(v)];
      bool inside = made_by >= 0 && grouping_.of[static_cast<size_t>(made_by)] == root;
      if (!inside && !inlined(v)) maker.read(v, home(v));
    }
    if (op == &end || returned_[static_cast<size_t>(op->out)]) {
      give_buffer(op->out);
      maker.write(op->out, home(op->out));
    }
  }
  maker.start();
  for (const GraphOp* op : ops) maker.compute(*op);
  loop::Kernel kernel = maker.finish();
  add_kernel(std::move(kernel), std::move(maker.buffers), std::move(maker.scalars));
  name_step(ops);
}

}  // namespace tn
