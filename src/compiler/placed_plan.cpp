// Plans of graphs over several devices: those of their parts, joined.
#include <map>

#include "compiler/compile_graph.h"
#include "compiler/placing.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "runtime/device.h"

namespace tn {
namespace {

/// Parts one after the other; what one needs of another device is copied there once. Nothing is
/// donated to them.
void run_parts(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
               std::span<Bound> outputs, bool*) {
  const Plan::Parts& parts = *plan.parts;
  std::vector<Bound> values(static_cast<size_t>(parts.values));
  std::ranges::copy(inputs, values.begin());
  std::ranges::copy(plan.constants, values.begin() + plan.inputs);
  std::map<std::pair<int32_t, uint16_t>, Bound> copies;
  auto at = [&](int32_t value, Device device, int64_t bytes) {
    const Bound& own = values[static_cast<size_t>(value)];
    if (own.buffer->device == device) return own;
    auto number = static_cast<uint16_t>(device.kind << 8 | device.index);
    Bound& copy = copies[{value, number}];
    if (!copy.buffer) copy = copy_to(device, own, static_cast<size_t>(bytes));
    return copy;
  };
  for (const Plan::Part& part : parts.list) {
    std::vector<Bound> in, out(part.out.size());
    for (size_t i = 0; i < part.in.size(); ++i)
      in.push_back(at(part.in[i], part.plan->device, part.in_bytes[i]));
    std::vector<Scalar> numbers;
    for (int32_t number : part.scalars) numbers.push_back(scalars[number]);
    run(part.plan, in, numbers.data(), out);
    for (size_t i = 0; i < out.size(); ++i)
      values[static_cast<size_t>(part.out[i])] = std::move(out[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Plan::Wanted& wanted = parts.outputs[i];
    outputs[i] = at(wanted.value, wanted.device, wanted.bytes);
  }
}

/// All of it is on one device.
void run_whole(const Plan& plan, std::span<const Bound> inputs, const Scalar* scalars,
               std::span<Bound> outputs, bool* overwritten) {
  run(plan.parts->list[0].plan, inputs, scalars, outputs, overwritten);
}

bool plans_itself(Device device) { return !device.is_host() && runtime_of(device).plans_itself(); }

/// For a device that will plan it: what a run gives and gets.
Compilation unplanned(const GraphPart& part, const CompileOptions& options,
                      std::span<const Binding> sizes) {
  Graph graph = substitute(part.graph, replacements(sizes));
  auto plan = std::make_shared<Plan>();
  plan->constants = options.constants;
  plan->inputs = graph.inputs() - static_cast<int>(options.constants.size());
  plan->scalars = options.runtime_scalars;
  plan->outputs.resize(graph.outputs.size());
  plan->target = options.target;
  plan->products = options.products;
  for (size_t i = 0; i < options.donated.size(); ++i)
    plan->donated.push_back(options.donated[i] ? graph.types[i]->bytes() : 0);
  plan->unplanned = runtime_of(part.device).part(part.device, graph, options);
  return {nullptr, std::move(plan), {sizes.begin(), sizes.end()}, nullptr};
}

/// The options for a part of a graph. Constants are where the compiler can look at them.
CompileOptions options_of(const PlacedGraph& placed, const GraphPart& part,
                          const CompileOptions& all, DeviceCopies& copies) {
  CompileOptions own = all;
  if (!part.device.is_host())
    if (Target its = runtime_of(part.device).target(part.device); its.kind != own.target.kind) {
      own.target = its;
      // Nothing interprets kernels there, and what checks indices are calls of the host's library.
      own.effort = std::max(own.effort, Effort::e1);
      own.checks_indices = false;
    }
  if (!placed.is_whole) {
    own.runtime_scalars = static_cast<int>(part.scalars.size());
    own.constants.clear(), own.donated.clear();
    auto first = static_cast<size_t>(placed.graph.inputs()) - all.constants.size();
    for (size_t i = part.in.size() - static_cast<size_t>(part.known); i < part.in.size(); ++i)
      own.constants.push_back(all.constants[static_cast<size_t>(part.in[i]) - first]);
  }
  for (Bound& value : own.constants) {
    if (plans_itself(part.device)) break;
    if (value.is_absent() || value.buffer->device.is_host()) continue;
    Bound here = copy_to({}, value, value.bytes());
    copies.add(here, value);
    value = std::move(here);
  }
  return own;
}

/// From what `compile` makes of the parts, by number.
Compilation joined(const PlacedGraph& placed, const CompileOptions& options,
                   std::span<const Binding> sizes, DeviceCopies& copies,
                   FunctionRef<Compilation(size_t part)> compile) {
  auto made_parts = std::make_shared<std::vector<Compilation>>();
  auto bytes = [&](Val v) {
    TypeRef type = placed.graph.types[static_cast<size_t>(v)];
    return substitute(type, replacements(sizes))->bytes();
  };
  auto parts = std::make_shared<Plan::Parts>();
  parts->run = placed.is_whole ? run_whole : run_parts;
  parts->values = placed.graph.values();
  for (size_t i = 0; i < placed.parts.size(); ++i) {
    const GraphPart& part = placed.parts[i];
    const Compilation& own = made_parts->emplace_back(compile(i));
    Plan::Part made{on_device(part.device, own.plan, copies), part.in, part.out, part.scalars, {}};
    made.in.resize(part.in.size() - static_cast<size_t>(part.known));
    for (Val v : made.in) made.in_bytes.push_back(bytes(v));
    parts->list.push_back(std::move(made));
  }
  for (size_t i = 0; i < placed.outputs.size(); ++i)
    parts->outputs.push_back({placed.outputs[i], placed.output_at[i], bytes(placed.outputs[i])});
  auto plan = std::make_shared<Plan>();
  plan->inputs = placed.graph.inputs() - static_cast<int>(options.constants.size());
  plan->constants = options.constants;
  plan->outputs.resize(placed.graph.outputs.size());
  if (placed.is_whole) plan->donated = made_parts->front().plan->donated;
  plan->parts = std::move(parts);
  return {nullptr, std::move(plan), {sizes.begin(), sizes.end()}, std::move(made_parts)};
}

class Code : public PlacedCode {
 public:
  Code(const Graph& graph, const CompileOptions& options)
      : placed_(place(graph, static_cast<int>(options.constants.size()), options.runtime_scalars)),
        options_(options) {
    make_lasting(placed_.graph);
    for (const GraphPart& part : placed_.parts) {
      part_options_.push_back(options_of(placed_, part, options_, copies_));
      parts_.push_back(plans_itself(part.device)
                           ? nullptr
                           : std::make_unique<CompiledGraph>(part.graph, part_options_.back()));
    }
  }

  Compilation compilation(std::span<const Binding> sizes) const override {
    return joined(placed_, options_, sizes, copies_, [&](size_t part) {
      return parts_[part] ? parts_[part]->compilation(sizes)
                          : unplanned(placed_.parts[part], part_options_[part], sizes);
    });
  }

 private:
  PlacedGraph placed_;
  CompileOptions options_;
  std::vector<CompileOptions> part_options_;
  std::vector<std::unique_ptr<CompiledGraph>> parts_;  // null: the device plans it
  mutable DeviceCopies copies_;
};

}  // namespace

std::unique_ptr<const PlacedCode> make_placed(const Graph& graph, const CompileOptions& options) {
  return std::make_unique<Code>(graph, options);
}

Compilation compile_placed(const Graph& graph, const CompileOptions& options) {
  PlacedGraph placed =
      place(graph, static_cast<int>(options.constants.size()), options.runtime_scalars);
  DeviceCopies copies;
  Compilation made = joined(placed, options, options.sizes, copies, [&](size_t i) {
    const GraphPart& part = placed.parts[i];
    CompileOptions own = options_of(placed, part, options, copies);
    if (plans_itself(part.device)) return unplanned(part, own, options.sizes);
    return compilation_of(part.graph, own);
  });
  Held held;  // keys name the types of the whole
  held.add(graph);
  made.plan = std::move(held).owned_by(std::move(made.plan));
  return made;
}

}  // namespace tn
