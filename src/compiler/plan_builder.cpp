#include "compiler/plan_builder.h"

#include "base/error.h"
#include "loop/sharing.h"
#include "ops/control_flow.h"

namespace tn {

std::vector<Home> numbers_of(const Graph& graph, int runtime_scalars) {
  std::vector<Home> homes(graph.types.size());
  int32_t next = 0;
  for (const GraphOp& op : graph.ops) {
    if (op.op != &scalar_leaf) continue;
    Home& h = homes[static_cast<size_t>(op.out)];
    h.kind = next < runtime_scalars ? Home::Kind::argument : Home::Kind::constant;
    h.argument = next++;
    h.value = op.scalar;
  }
  return homes;
}

KernelAccess access_of(const loop::Kernel& kernel) {
  KernelAccess access;
  loop::Sharing sharing(kernel);
  int count = static_cast<int>(kernel.buffers.size());
  for (int output = 0; output < count; ++output) {
    if (!kernel.buffers[static_cast<size_t>(output)].written) continue;
    access.writes.push_back(output);
    for (int input = 0; input < count; ++input)
      if (sharing.allows(input, output)) access.in_place.push_back({input, output});
  }
  return access;
}

PlanBuilder::PlanBuilder(const Graph& graph, const CompileOptions& options)
    : graph_(graph),
      options_(options),
      homes_(numbers_of(graph, options.runtime_scalars)),
      plan_(std::make_shared<Plan>()) {
  plan_->constants = options_.constants;
  plan_->inputs = graph_.inputs() - static_cast<int>(plan_->constants.size());
  plan_->scalars = options_.runtime_scalars;
  plan_->one_thread = options_.one_thread;
  plan_->target = options_.target;
  plan_->products = options_.products;
  // Constants, the last inputs of the graph, are not inputs of the plan, and never donated.
  for (Val v = 0; v < plan_->inputs && v < static_cast<Val>(options_.donated.size()); ++v)
    plan_->donated.push_back(options_.donated[static_cast<size_t>(v)] ? type(v)->bytes() : 0);
  for (Val v = 0; v < graph_.inputs(); ++v) {
    set_home(v, v);
    plan_->given_bytes.push_back(type(v)->bytes());
  }
}

void PlanBuilder::set_home(Val v, int32_t buffer) {
  homes_[static_cast<size_t>(v)] = {.kind = Home::Kind::buffer,
                                    .buffer = buffer,
                                    .owner = v,
                                    .size = type(v)->elements,
                                    .at = Strided::row_major(type(v)->shape),
                                    .value = {}};
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
    copy(source);
    at = apply(view, from.at);
  }
  homes_[static_cast<size_t>(op.out)] = from;
  homes_[static_cast<size_t>(op.out)].at = *at;
}

/// Points of `axes`; `INT64_MAX` when there are more.
static int64_t points_of(const loop::Kernel& kernel, loop::AxisSet axes,
                         std::span<const Binding> sizes) {
  int64_t points = 1;
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    if (!(axes >> k & 1)) continue;
    Dim extent = kernel.axes[k].extent;
    int64_t count = extent.is_const() ? extent.raw : evaluate(extent, sizes);
    if (count == 0) return 0;
    if (__builtin_mul_overflow(points, count, &points)) points = INT64_MAX;
  }
  return points;
}

void PlanBuilder::check_repeats(std::string_view name, int64_t count) const {
  constexpr int64_t kMost = int64_t{1} << 32;
  LocScope place(loc_);
  if (count > kMost)
    fail(Hint{"broadcast after reducing: the sum of n equal elements is n times the element"},
         "{}: reduces {} equal elements, the maximum is {}", name, count, kMost);
}

void PlanBuilder::check_work(const loop::Kernel& kernel, std::span<const Binding> sizes) const {
  constexpr int64_t kMost = int64_t{1} << 50;
  LocScope place(loc_);
  for (const loop::Value& v : kernel.values)
    if (v.op == loop::Op::reduce) {
      loop::AxisSet repeated = v.over & ~kernel.values[static_cast<size_t>(v.a)].axes;
      check_repeats(kernel.name, points_of(kernel, repeated, sizes));
    }
  if (int64_t points = points_of(kernel, ~loop::AxisSet{0}, sizes); points > kMost)
    fail("{}: computes {} elements, the maximum is {}", kernel.name, points, kMost);
}

Step& PlanBuilder::add_step(std::shared_ptr<const loop::Kernel> kernel, const KernelAccess& access,
                            std::vector<int32_t> buffers, std::vector<int32_t> scalars,
                            std::span<const Binding> sizes) {
  check_work(*kernel, sizes);
  std::string name = kernel->name;
  return plan_->steps.emplace_back(Step{.what = KernelStep{std::move(kernel)},
                                        .buffers = std::move(buffers),
                                        .scalars = std::move(scalars),
                                        .writes = access.writes,
                                        .in_place = access.in_place,
                                        .name = std::move(name),
                                        .loc = loc_});
}

int32_t PlanBuilder::add_buffer(int64_t bytes) {
  plan_->bytes.push_back(bytes);
  return plan_->first_own() + static_cast<int32_t>(plan_->bytes.size()) - 1;
}

int32_t PlanBuilder::give_buffer(Val v) {
  int32_t buffer = add_buffer(type(v)->bytes());
  set_home(v, buffer);
  return buffer;
}

int32_t PlanBuilder::contiguous(Val v) {
  Home& h = home(v);
  bool as_is = h.kind == Home::Kind::buffer && h.at.offset == 0 && h.at.is_contiguous();
  if (!as_is) copy(v);
  return h.buffer;
}

std::vector<int32_t> PlanBuilder::buffers_of(const GraphOp& op) {
  std::vector<int32_t> buffers;
  for (Val v : graph_.in(op)) buffers.push_back(contiguous(v));
  for (int i = 0; i < op.outs; ++i) buffers.push_back(give_buffer(op.out + i));
  return buffers;
}

bool is_call(const Graph& graph, const GraphOp& op, const CompileOptions& options) {
  if (op.op->is_elementwise()) return false;  // for all types that it takes it is loops
  const LibraryKernel* kernel = library_kernel(*op.op, graph.in_types(op), options.target);
  if (kernel) return !kernel->only_checks || options.checks_indices || options.effort == Effort::e0;
  return ops::control_kind(*op.op).has_value();
}

void PlanBuilder::lower_call(const GraphOp& op) {
  std::vector<TypeRef> in = graph_.in_types(op);
  Types out = graph_.out_types(op);
  const LibraryKernel* kernel = library_kernel(*op.op, in, options_.target);
  auto control = ops::control_kind(*op.op);
  invariant(kernel || control, "{}: no way to run it on {}", op.op->name, *type(op.out));
  // What is run for its effect has an empty result; bodies of control flow may have effects.
  Step step{.buffers = buffers_of(op),
            .effect = control || type(op.out)->elements == 0,
            .name = std::string(op.op->name),
            .loc = loc_};
  CallStep call{op.op, op.attrs, std::move(in), {out.begin(), out.end()}};
  if (control)
    step.what = ControlStep{std::move(call), *control, body_plans(op)};
  else
    step.what = LibraryStep{std::move(call), kernel};
  for (int i = 0; i < op.outs; ++i) step.writes.push_back(op.ins + i);
  if (kernel && kernel->room) give_room(op, *kernel, step);
  plan_->steps.push_back(std::move(step));
}

/// What the call needs for its own time is a buffer of the plan that no other step uses.
void PlanBuilder::give_room(const GraphOp& op, const LibraryKernel& kernel, Step& step) {
  auto& call = std::get<LibraryStep>(step.what);
  int64_t bytes = kernel.room({op.attr_data(), call.in, call.out, nullptr, nullptr});
  if (bytes == 0) return;
  auto at = static_cast<int32_t>(step.buffers.size());
  call.room.push_back({bytes, at});
  step.writes.push_back(at);
  step.buffers.push_back(add_buffer(bytes));
}

void PlanBuilder::return_outputs() {
  for (Val v : graph_.outputs) {
    Home& h = home(v);
    bool as_is = h.kind == Home::Kind::buffer && h.at.is_contiguous();
    if (!as_is) copy(v);
    int64_t offset = type(v)->elements ? h.at.offset * size_of(type(v)->dtype) : 0;
    plan_->outputs.push_back({h.buffer, offset});
  }
}

}  // namespace tn
