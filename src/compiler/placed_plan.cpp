// Plans of graphs over several devices: those of their parts, joined.
#include "compiler/compile_graph.h"
#include "compiler/placing.h"
#include "ir/interned.h"
#include "ir/rewrite.h"
#include "plan/first_code.h"
#include "plan/run_places.h"
#include "runtime/device.h"

namespace tn {
namespace {

/// For a device that will plan it: what a run gives and gets.
Compilation unplanned(const GraphPart& part, const CompileOptions& options,
                      std::span<const Binding> sizes) {
  Graph graph = substitute(part.graph, replacements(sizes));
  auto plan = std::make_shared<Plan>();
  plan->constants = options.constants;
  plan->inputs = graph.inputs() - static_cast<int>(options.constants.size());
  plan->scalars = options.runtime_scalars;
  for (Val v = 0; v < graph.inputs(); ++v)
    plan->given_bytes.push_back(graph.types[static_cast<size_t>(v)]->bytes());
  plan->outputs.resize(graph.outputs.size());
  plan->target = options.target;
  plan->products = options.products;
  for (size_t i = 0; i < options.donated.size(); ++i)
    plan->donated.push_back(options.donated[i] ? graph.types[i]->bytes() : 0);
  plan->unplanned = runtime_of(part.device).part(part.device, graph, options);
  return {nullptr, std::move(plan), {sizes.begin(), sizes.end()}, nullptr};
}

/// Which inputs of a part may be overwritten: those donated ones that no other part and no result
/// needs, where they are. Devices that work beside others have many parts, and have read what was
/// copied: there it is the last part.
std::vector<bool> donated_to(const PlacedGraph& placed, const GraphPart& part,
                             const std::vector<bool>& donated) {
  std::vector<int> readers(placed.graph.types.size());
  bool is_beside = works_beside_others(part.device);
  size_t first = is_beside ? static_cast<size_t>(&part - placed.parts.data()) : 0;
  for (const GraphPart& each : std::span(placed.parts).subspan(first))
    for (Val v : each.in) ++readers[static_cast<size_t>(v)];
  for (Val v : placed.outputs) ++readers[static_cast<size_t>(v)];
  std::vector<bool> made;
  for (Val v : part.in) {
    auto at = static_cast<size_t>(v);
    bool is_there = placed.graph.types[at]->device == part.device;
    made.push_back(at < donated.size() && donated[at] && is_there && readers[at] == 1);
  }
  return made;
}

/// The options for a part of a graph. Constants are where the compiler can look at them.
CompileOptions options_of(const PlacedGraph& placed, const GraphPart& part,
                          const CompileOptions& all, DeviceCopies& copies) {
  CompileOptions own = all;
  if (!part.device.is_host())
    if (Target its = runtime_of(part.device).target(part.device); its.kind != own.target.kind) {
      own.target = its;
      // Passes find the device's library kernels, so they run; kernels are interpreted where they
      // can be. What checks indices are calls of the host's library.
      if (own.effort == Effort::e0) own.on.emplace_back(kInterpretFirst);
      own.effort = std::max(own.effort, Effort::e1);
      own.checks_indices = false;
    }
  if (!placed.is_whole) {
    own.runtime_scalars = static_cast<int>(part.scalars.size());
    own.constants.clear(), own.donated = donated_to(placed, part, all.donated);
    auto known = static_cast<size_t>(placed.graph.inputs()) - all.constants.size();
    for (size_t i = part.in.size() - static_cast<size_t>(part.known); i < part.in.size(); ++i)
      own.constants.push_back(all.constants[static_cast<size_t>(part.in[i]) - known]);
  }
  Val first = part.graph.inputs() - static_cast<Val>(own.constants.size());
  for (Bound& value : own.constants) {
    TypeRef type = part.graph.types[static_cast<size_t>(first++)];
    if (plans_itself(part.device)) break;
    if (value.is_absent() || value.buffer->device.is_host()) continue;
    auto bytes = static_cast<size_t>(type->bytes());
    Bound here = copy_to({}, value, bytes);
    copies.add(here, value, bytes);
    value = std::move(here);
  }
  return own;
}

/// The values that nothing needs after each part: what runs made of them is given back.
std::vector<std::vector<Val>> dropped_after(const PlacedGraph& placed) {
  std::vector<bool> needed(placed.graph.types.size());
  std::vector<std::vector<Val>> dropped(placed.parts.size());
  auto need = [&](Val v) {
    bool was_needed = needed[static_cast<size_t>(v)];
    return needed[static_cast<size_t>(v)] = true, was_needed;
  };
  for (Val v : placed.outputs) need(v);
  for (size_t i = placed.parts.size(); i-- > 0;) {
    for (Val v : placed.parts[i].in)
      if (!need(v)) dropped[i].push_back(v);
    for (Val v : placed.parts[i].out)
      if (!need(v)) dropped[i].push_back(v);
  }
  return dropped;
}

/// From what `compile` makes of the parts, by number.
Compilation joined(const PlacedGraph& placed, const CompileOptions& options,
                   std::span<const Binding> sizes, DeviceCopies& copies, std::vector<Loc> recorded,
                   FunctionRef<Compilation(size_t part)> compile) {
  auto made_parts = std::make_shared<std::vector<Compilation>>();
  auto bytes = [&](Val v) {
    TypeRef type = placed.graph.types[static_cast<size_t>(v)];
    return substitute(type, replacements(sizes))->bytes();
  };
  auto parts = std::make_shared<Plan::Parts>();
  parts->is_whole = placed.is_whole;
  parts->recorded = std::move(recorded);
  for (TypeRef type : placed.graph.types) parts->devices.push_back(type->device);
  std::vector<std::vector<Val>> dropped = dropped_after(placed);
  for (size_t i = 0; i < placed.parts.size(); ++i) {
    const GraphPart& part = placed.parts[i];
    const Compilation& own = made_parts->emplace_back(compile(i));
    Plan::Part made{on_device(part.device, own.plan, copies), part.in, part.out, part.scalars, {}};
    made.in.resize(part.in.size() - static_cast<size_t>(part.known));
    for (Val v : made.in) made.in_bytes.push_back(bytes(v));
    for (Val v : made.out) parts->devices[static_cast<size_t>(v)] = part.device;
    for (auto [v, device] : part.fetched) made.fetched.push_back({v, device, bytes(v)});
    if (!placed.is_whole) made.dropped = std::move(dropped[i]);
    parts->list.push_back(std::move(made));
  }
  for (size_t i = 0; i < placed.outputs.size(); ++i)
    parts->outputs.push_back({placed.outputs[i], placed.output_at[i], bytes(placed.outputs[i])});
  auto plan = std::make_shared<Plan>();
  plan->inputs = placed.graph.inputs() - static_cast<int>(options.constants.size());
  plan->constants = options.constants;
  for (Val v = 0; v < placed.graph.inputs(); ++v) plan->given_bytes.push_back(bytes(v));
  plan->outputs.resize(placed.graph.outputs.size());
  if (placed.is_whole) plan->donated = made_parts->front().plan->donated;
  plan->parts = std::move(parts);
  return {nullptr, std::move(plan), {sizes.begin(), sizes.end()}, std::move(made_parts)};
}

class Code : public PlacedCode {
 public:
  Code(const Graph& graph, const CompileOptions& options)
      : placed_(place(graph, static_cast<int>(options.constants.size()), options.runtime_scalars)),
        recorded_(places_in(graph)),
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
    return joined(placed_, options_, sizes, copies_, recorded_, [&](size_t part) {
      return parts_[part] ? parts_[part]->compilation(sizes)
                          : unplanned(placed_.parts[part], part_options_[part], sizes);
    });
  }

 private:
  PlacedGraph placed_;
  std::vector<Loc> recorded_;
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
  Compilation made =
      joined(placed, options, options.sizes, copies, places_in(graph), [&](size_t i) {
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
