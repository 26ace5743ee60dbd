#include "compiler/plan_builder.h"

#include "base/error.h"
#include "compiler/kernel_maker.h"
#include "ir/body.h"
#include "loop/sharing.h"
#include "loop/step_source.h"

namespace tn {

loop::S number_part(loop::Builder& b, std::vector<int32_t>& scalars, const Home& home, DType type,
                    bool imaginary) {
  bool narrow = info(type).compute != type;
  DType read_as = narrow ? DType::f64 : type;
  loop::S x;
  if (home.kind == Home::Kind::argument) {
    scalars.push_back(imaginary ? ~home.argument : home.argument);
    x = b.argument(b.add_argument(), read_as);
  } else {
    bool split = imaginary || home.value.kind == Kind::complex;
    x = b.constant(split ? Scalar(imaginary ? home.value.imag : home.value.real) : home.value,
                   read_as);
  }
  return narrow ? b.cast(b.cast(x, type), info(type).compute) : x;
}

PlanBuilder::PlanBuilder(const Graph& graph, const CompileOptions& options, CompileReport* report)
    : graph_(graph),
      options_(options),
      report_(report),
      homes_(graph.types.size()),
      plan_(std::make_shared<Plan>()) {
  plan_->constants = options_.constants;
  plan_->inputs = graph_.inputs() - static_cast<int>(plan_->constants.size());
  plan_->scalars = options_.runtime_scalars;
  for (Val v = 0; v < static_cast<Val>(options_.donated.size()); ++v)
    plan_->donated.push_back(options_.donated[static_cast<size_t>(v)] ? type(v)->bytes() : 0);
  for (Val v = 0; v < graph_.inputs(); ++v)
    homes_[static_cast<size_t>(v)] = {
        Home::Kind::buffer, v, type(v)->elements, Strided::row_major(type(v)->shape), {}, -1};
}

void PlanBuilder::lower_leaf(const GraphOp& op) {
  int32_t number = next_scalar_++;
  Home& h = homes_[static_cast<size_t>(op.out)];
  bool at_run_time = number < options_.runtime_scalars;
  h.kind = at_run_time ? Home::Kind::argument : Home::Kind::constant;
  h.argument = number;
  h.value = op.scalar;
}

void PlanBuilder::lower_view(const GraphOp& op) {
  Val source = graph_.in(op)[0];
  Home& from = home(source);
  if (from.kind != Home::Kind::buffer) {  // every view of a number is the number
    homes_[static_cast<size_t>(op.out)] = from;
    return;
  }
  View view = op.op->view(op.attr_data(), *type(source));
  std::optional<Strided> at = apply(view, from.at);
  if (!at) {
    from = copy_of(from, type(source));
    at = apply(view, from.at);
  }
  homes_[static_cast<size_t>(op.out)] = from;
  homes_[static_cast<size_t>(op.out)].at = *at;
}

Step& PlanBuilder::add_step(const loop::Kernel& kernel, std::vector<int32_t> buffers,
                            std::vector<int32_t> scalars) {
  Step step{nullptr, nullptr, std::move(buffers), std::move(scalars)};
  if (report_) {
    report_->loops += to_text(kernel) + "\n";
    auto kept = std::make_shared<const loop::Kernel>(kernel);
    step.source = std::make_shared<const StepSource>(StepSource{.kernel = std::move(kept)});
  }
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
  return plan_->steps.back();
}

int32_t PlanBuilder::add_buffer(TypeRef type) {
  plan_->bytes.push_back(type->bytes());
  return plan_->first_own() + static_cast<int32_t>(plan_->bytes.size()) - 1;
}

int32_t PlanBuilder::give_buffer(Val v) {
  int32_t buffer = add_buffer(type(v));
  homes_[static_cast<size_t>(v)] = {
      Home::Kind::buffer, buffer, type(v)->elements, Strided::row_major(type(v)->shape), {}, -1};
  return buffer;
}

Home PlanBuilder::copy_of(const Home& from, TypeRef t) {
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

int32_t PlanBuilder::contiguous(Val v) {
  Home& h = home(v);
  bool as_is = h.kind == Home::Kind::buffer && h.at.offset == 0 && h.at.is_contiguous();
  if (!as_is) h = copy_of(h, type(v));
  return h.buffer;
}

void PlanBuilder::lower_nest(const GraphOp& op) {
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

void PlanBuilder::lower_library(const GraphOp& op) {
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
  Step step{run_library, call, std::move(buffers), {}};
  if (report_) {
    report_->loops += format("library {}\n\n", op.op->name);
    step.source = std::make_shared<const StepSource>(
        StepSource{{}, op.op, op.attrs, call->in, call->out, {}});
  }
  for (int i = 0; i < op.outs; ++i) step.writes.push_back(op.ins + i);
  // What is run for its effect has an empty result; bodies of control flow may have effects.
  step.effect = !call->plans.empty() || type(op.out)->elements == 0;
  step.name = op.op->name;
  step.place = loc_.bits;
  plan_->steps.push_back(std::move(step));
}

void PlanBuilder::return_outputs() {
  for (Val v : graph_.outputs) {
    Home& h = home(v);
    bool as_is = h.kind == Home::Kind::buffer && h.at.is_contiguous();
    if (!as_is) h = copy_of(h, type(v));
    int64_t offset = type(v)->elements ? h.at.offset * size_of(type(v)->dtype) : 0;
    plan_->outputs.push_back({h.buffer, offset});
  }
}

}  // namespace tn
