#include "sharding/variation.h"

#include <algorithm>

#include "base/text.h"
#include "ir/body.h"
#include "ops/call.h"
#include "ops/collectives.h"
#include "ops/control_flow.h"
#include "ops/op_decls.h"
#include "ops/worker_parts.h"

namespace tn::sharding {
namespace {

using Masks = std::vector<uint32_t>;
using Kind = ControlStep::Kind;

bool makes_equal(const OpDef& op) {
  constexpr const OpDef* kAll[] = {&ops::all_sum, &ops::all_fold, &ops::all_gather,
                                   &ops::all_broadcast};
  return std::ranges::count(kAll, &op) > 0;
}
bool makes_different(const OpDef& op) {
  constexpr const OpDef* kAll[] = {&ops::reduce_scatter, &ops::all_to_all, &ops::slice_of_worker};
  return std::ranges::count(kAll, &op) > 0;
}

/// What workers do together along an axis, in order: equal texts meet.
std::string meetings(const Graph& graph, std::string_view axis) {
  std::string text;
  for (const GraphOp& op : graph.ops) {
    if (op.op == &scalar_leaf) continue;
    if (makes_equal(*op.op) || op.op == &ops::reduce_scatter || op.op == &ops::all_to_all) {
      const auto& group = *static_cast<const ops::GroupAttrs*>(op.attr_data());
      TypeRef in = graph.types[static_cast<size_t>(graph.in(op)[0])];
      if (group.mesh_axis == axis) text += format("{} {};", op.op->name, *in);
    }
    std::string inside;
    for (GraphRef inner : bodies_of(op)) inside += meetings(*inner, axis) + '|';
    if (inside.find(';') == inside.npos) continue;
    text += format("{}(", op.op->name);
    if (ops::control_kind(*op.op) == Kind::scan)
      text += format("{}:", static_cast<const ops::ScanAttrs*>(op.attr_data())->length);
    text += inside + ')';
  }
  return text;
}

class Variation {
 public:
  Variation(const Mesh& mesh, std::vector<UnevenPath>* uneven) : mesh_(mesh), uneven_(uneven) {}

  Masks run(const Graph& graph, std::span<const uint32_t> inputs) {
    Masks masks(graph.types.size());
    std::ranges::copy(inputs, masks.begin());
    for (const GraphOp& op : graph.ops) {
      if (op.op == &scalar_leaf) continue;
      Masks in;
      for (Val v : graph.in(op)) in.push_back(masks[static_cast<size_t>(v)]);
      Masks out = results(op, in);
      std::ranges::copy(out, masks.begin() + op.out);
    }
    return masks;
  }

 private:
  static uint32_t joined(std::span<const uint32_t> masks) {
    uint32_t all = 0;
    for (uint32_t mask : masks) all |= mask;
    return all;
  }
  Masks outputs(const Graph& graph, std::span<const uint32_t> inputs) {
    Masks all = run(graph, inputs), out;
    for (Val v : graph.outputs) out.push_back(all[static_cast<size_t>(v)]);
    return out;
  }

  Masks results(const GraphOp& op, const Masks& in) {
    if (auto kind = ops::control_kind(*op.op)) {
      if (*kind == Kind::cond) return of_cond(op, in);
      return *kind == Kind::while_loop ? of_while(op, in) : of_scan(op, in);
    }
    if (op.op == &ops::call) {
      const Graph& body = *static_cast<const ops::CallAttrs*>(op.attr_data())->graph;
      return outputs(body, std::span(in).first(static_cast<size_t>(body.inputs())));
    }
    uint32_t all = joined(in);
    if (makes_equal(*op.op)) all &= ~axis_of(op);
    if (makes_different(*op.op)) all |= axis_of(op);
    if (op.op == &ops::to_local) {
      const auto& a = *static_cast<const ops::WorkerPartsAttrs*>(op.attr_data());
      for (int t = 0; t < mesh_.count(); ++t)
        if (format(",{},", a.mesh_axes).find(format(",{},", mesh_[t].name)) != std::string::npos)
          all |= 1u << t;
    }
    return Masks(static_cast<size_t>(op.outs), all);
  }

  uint32_t axis_of(const GraphOp& op) const {
    int axis = mesh_.find(static_cast<const ops::GroupAttrs*>(op.attr_data())->mesh_axis);
    return axis < 0 ? 0 : 1u << axis;
  }

  Masks of_cond(const GraphOp& op, const Masks& in) {
    const auto& a = *static_cast<const ops::CondAttrs*>(op.attr_data());
    Masks then = outputs(*a.then, std::span(in).subspan(1));
    Masks otherwise = outputs(*a.otherwise, std::span(in).subspan(1));
    for (size_t i = 0; i < then.size(); ++i) then[i] |= otherwise[i] | in[0];
    check(op, in[0], [&](std::string_view axis) {
      return meetings(*a.then, axis) == meetings(*a.otherwise, axis);
    });
    return then;
  }

  Masks of_while(const GraphOp& op, const Masks& in) {
    const auto& a = *static_cast<const ops::WhileAttrs*>(op.attr_data());
    auto carries = static_cast<size_t>(op.outs);
    Masks now = in;
    uint32_t goes_on = 0;
    for (bool grows = true; grows;) {
      goes_on = quiet().outputs(*a.go_on, now)[0];
      Masks made = quiet().outputs(*a.body, now);
      grows = false;
      for (size_t i = 0; i < carries; ++i) {
        uint32_t next = now[i] | made[i] | goes_on;
        grows |= next != now[i], now[i] = next;
      }
    }
    outputs(*a.go_on, now), outputs(*a.body, now);
    check(op, goes_on, [&](std::string_view axis) {
      return meetings(*a.go_on, axis).empty() && meetings(*a.body, axis).empty();
    });
    now.resize(carries);
    return now;
  }

  Masks of_scan(const GraphOp& op, const Masks& in) {
    const auto& a = *static_cast<const ops::ScanAttrs*>(op.attr_data());
    auto carries = static_cast<size_t>(a.carries);
    Masks now = in, made;
    for (bool grows = true; grows;) {
      made = quiet().outputs(*a.body, now);
      grows = false;
      for (size_t i = 0; i < carries; ++i)
        grows |= (made[i] & ~now[i]) != 0, now[i] |= made[i], made[i] = now[i];
    }
    outputs(*a.body, now);
    return made;
  }

  /// For passes that are repeated: reports are made in the last.
  Variation quiet() const { return {mesh_, nullptr}; }

  template <class Meets>
  void check(const GraphOp& op, uint32_t predicate, Meets&& meets) {
    for (int t = 0; uneven_ && t < mesh_.count(); ++t)
      if (predicate >> t & 1 && !meets(mesh_[t].name)) uneven_->push_back({op.op->name, t, op.loc});
  }

  const Mesh& mesh_;
  std::vector<UnevenPath>* uneven_;
};

}  // namespace

std::vector<uint32_t> variation(const Graph& graph, const Mesh& mesh,
                                std::span<const uint32_t> inputs) {
  return Variation(mesh, nullptr).run(graph, inputs);
}

uint32_t divided_axes(const Mesh& mesh, const Layout& layout) {
  uint32_t axes = 0;
  for (int t = 0; t < mesh.count(); ++t)
    if (layout[t] && mesh[t].size > 1) axes |= 1u << t;
  return axes;
}

std::vector<UnevenPath> uneven_paths(const Graph& graph, const Mesh& mesh,
                                     std::span<const uint32_t> inputs) {
  std::vector<UnevenPath> found;
  Variation(mesh, &found).run(graph, inputs);
  return found;
}

}  // namespace tn::sharding
