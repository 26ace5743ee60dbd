#include "compiler/lower.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/kernel_maker.h"
#include "compiler/memory.h"
#include "ir/body.h"
#include "loop/interpreter.h"
#include "loop/sharing.h"

namespace tn {

Lowerer::Lowerer(const Graph& graph, const CompileOptions& options, CompileReport* report)
    : graph_(graph),
      options_(options),
      report_(report),
      grouping_(group_elementwise(graph)),
      members_(graph.ops.size()),
      returned_(graph.types.size()),
      homes_(graph.types.size()),
      plan_(std::make_shared<Plan>()) {
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (int root = grouping_.of[i]; root >= 0)
      members_[static_cast<size_t>(root)].push_back(static_cast<int>(i));
  for (Val v : graph.outputs) returned_[static_cast<size_t>(v)] = true;
}

std::shared_ptr<const Plan> Lowerer::lower() {
  plan_->constants = options_.constants;
  plan_->inputs = graph_.inputs() - static_cast<int>(plan_->constants.size());
  plan_->scalars = options_.runtime_scalars;
  for (Val v = 0; v < graph_.inputs(); ++v)
    home(v) = {
        Home::Kind::buffer, v, type(v)->elements, Strided::row_major(type(v)->shape), {}, -1};
  for (size_t i = 0; i < graph_.ops.size(); ++i) {
    const GraphOp& op = graph_.ops[i];
    loc_ = op.loc;
    if (op.op == &scalar_leaf)
      lower_leaf(op);
    else if (op.op->view)
      lower_view(op);
    else if (grouping_.of[i] != Grouping::kAlone) {
      if (grouping_.of[i] == static_cast<int>(i)) lower_group(static_cast<int>(i));
    } else if (op.op->lower && !op.op->run)
      lower_nest(op);
    else
      lower_library(op);
  }
  return_outputs();
  plan_memory(*plan_, options_.effort == Effort::e0);
  return plan_;
}

void Lowerer::lower_leaf(const GraphOp& op) {
  int32_t number = next_scalar_++;
  Home& h = home(op.out);
  bool at_run_time = number < options_.runtime_scalars;
  h.kind = at_run_time ? Home::Kind::argument : Home::Kind::constant;
  h.argument = number;
  h.value = op.scalar;
}

void Lowerer::lower_view(const GraphOp& op) {
  Val source = graph_.in(op)[0];
  Home& from = home(source);
  if (from.kind != Home::Kind::buffer) {  // every view of a number is the number
    home(op.out) = from;
    return;
  }
  View view = op.op->view(op.attr_data(), *type(source));
  std::optional<Strided> at = apply(view, from.at);
  if (!at) {
    from = copy_of(from, type(source));
    at = apply(view, from.at);
  }
  home(op.out) = from;
  home(op.out).at = *at;
}

int32_t Lowerer::add_buffer(TypeRef type) {
  plan_->bytes.push_back(type->bytes());
  return plan_->first_own() + static_cast<int32_t>(plan_->bytes.size()) - 1;
}

int32_t Lowerer::give_buffer(Val v) {
  int32_t buffer = add_buffer(type(v));
  home(v) = {
      Home::Kind::buffer, buffer, type(v)->elements, Strided::row_major(type(v)->shape), {}, -1};
  return buffer;
}

static void run_program(const void* data, const StepCall& call) {
  loop::run(*static_cast<const loop::Program*>(data), call.buffers, call.scalars);
}

void Lowerer::add_kernel(loop::Kernel kernel, std::vector<int32_t> buffers,
                         std::vector<int32_t> scalars) {
  if (report_) report_->loops += to_text(kernel) + "\n";
  Step step{run_program, loop::prepare(kernel, {}), std::move(buffers), std::move(scalars)};
  loop::Sharing sharing(kernel);
  int count = static_cast<int>(kernel.buffers.size());
  for (int output = 0; output < count; ++output) {
    if (!kernel.buffers[static_cast<size_t>(output)].written) continue;
    step.writes.push_back(output);
    for (int input = 0; input < count; ++input)
      if (sharing.allows(input, output)) step.in_place.push_back({input, output});
  }
  step.name = kernel.name;
  step.place = loc_.bits;
  plan_->steps.push_back(std::move(step));
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
}

Home Lowerer::copy_of(const Home& from, TypeRef t) {
  Graph one;  // a value and its copy: enough for the maker to know the types
  one.add_input("x", t);
  one.types.push_back(t);
  Home to{Home::Kind::buffer, add_buffer(t), t->elements, Strided::row_major(t->shape), {}, -1};
  KernelMaker maker(one, "copy", t->shape, {});
  maker.read(0, from);
  maker.write(1, to);
  maker.start();
  maker.copy(0, 1);
  loop::Kernel kernel = maker.finish();
  add_kernel(std::move(kernel), std::move(maker.buffers), std::move(maker.scalars));
  return to;
}

int32_t Lowerer::contiguous(Val v) {
  Home& h = home(v);
  bool as_is = h.kind == Home::Kind::buffer && h.at.offset == 0 && h.at.is_contiguous();
  if (!as_is) h = copy_of(h, type(v));
  return h.buffer;
}

void Lowerer::lower_nest(const GraphOp& op) {
  std::vector<TypeRef> in = graph_.in_types(op);
  std::vector<int32_t> buffers;
  for (Val v : graph_.in(op)) buffers.push_back(contiguous(v));
  for (int i = 0; i < op.outs; ++i) buffers.push_back(give_buffer(op.out + i));
  loop::Lowering lowering(std::string(op.op->name), in, graph_.out_types(op));
  op.op->lower(op.attr_data(), lowering);
  add_kernel(lowering.b.finish(), std::move(buffers), {});
}

namespace {

struct Library {
  const OpDef* op;
  const Attrs* attrs;
  std::vector<TypeRef> in, out;
  std::vector<std::shared_ptr<const Plan>> plans;
};

void run_library(const void* data, const StepCall& call) {
  const Library& library = *static_cast<const Library*>(data);
  library.op->run({library.attrs ? library.attrs->data : nullptr, library.in, library.out,
                   call.buffers, call.buffers + library.in.size(), library.plans});
}

/// Graphs among the attributes are compiled in turn.
std::vector<std::shared_ptr<const Plan>> plans_of(const GraphOp& op, Effort effort) {
  std::vector<std::shared_ptr<const Plan>> plans;
  if (!op.attrs) return plans;
  for (const Field& f : list_fields(*op.op->attrs, const_cast<void*>(op.attr_data())).items)
    if (f.kind == FieldKind::graph)
      plans.push_back(compile(**static_cast<GraphRef*>(f.at), {.effort = effort}));
  return plans;
}

}  // namespace

void Lowerer::lower_library(const GraphOp& op) {
  invariant(op.op->run != nullptr, "{}: no way to run it on {}", op.op->name, *type(op.out));
  std::vector<int32_t> buffers;
  for (Val v : graph_.in(op)) buffers.push_back(contiguous(v));
  for (int i = 0; i < op.outs; ++i) buffers.push_back(give_buffer(op.out + i));
  Types out = graph_.out_types(op);
  auto call = std::make_shared<Library>(Library{op.op,
                                                op.attrs,
                                                graph_.in_types(op),
                                                {out.begin(), out.end()},
                                                plans_of(op, options_.effort)});
  if (report_) report_->loops += format("library {}\n\n", op.op->name);
  Step step{run_library, call, std::move(buffers), {}};
  for (int i = 0; i < op.outs; ++i) step.writes.push_back(op.ins + i);
  // What is run for its effect has an empty result; bodies of control flow may have effects.
  step.effect = !call->plans.empty() || type(op.out)->elements == 0;
  step.name = op.op->name;
  step.place = loc_.bits;
  plan_->steps.push_back(std::move(step));
}

void Lowerer::return_outputs() {
  for (Val v : graph_.outputs) {
    Home& h = home(v);
    bool as_is = h.kind == Home::Kind::buffer && h.at.is_contiguous();
    if (!as_is) h = copy_of(h, type(v));
    int64_t offset = type(v)->elements ? h.at.offset * size_of(type(v)->dtype) : 0;
    plan_->outputs.push_back({h.buffer, offset});
  }
}

}  // namespace tn
