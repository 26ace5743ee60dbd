#include "sharding/propagate.h"

#include <deque>

#include "ops/op_decls.h"
#include "sharding/local_region.h"
#include "sharding/positions.h"

namespace tn::sharding {

namespace {

class Propagation {
 public:
  Propagation(const Graph& graph, const Mesh& mesh, Links& links, Decisions* decisions)
      : graph_(graph),
        mesh_(mesh),
        links_(links),
        decisions_(decisions),
        ops_at_(ops_at_values(graph)),
        reached_(graph.ops.size() * static_cast<size_t>(mesh.count())),
        layouts_(graph.types.size(), Layout(mesh)),
        parameters_(graph.types.size()),
        is_closed_(graph.types.size()),
        leaves_worker_(graph.types.size()),
        is_of_one_worker_(ops_of_one_worker(graph)) {
    for (const GraphOp& op : graph.ops)
      if (op.op == &ops::shard || op.op == &ops::from_local) {
        is_closed_[static_cast<size_t>(op.out)] = true;
        leaves_worker_[static_cast<size_t>(op.out)] = op.op == &ops::from_local;
      }
  }

  Layouts run(std::span<const Constraint> constraints) {
    for (Priority priority : {Priority::data, Priority::parameter, Priority::stored}) {
      for (const Constraint& c : constraints) {
        if (c.priority != priority) continue;
        for (int t = 0; t < mesh_.count(); ++t)
          if (c.layout[t]) give(c.value, t, c.layout[t], priority, -1, c.loc);
      }
      for (; !waiting_.empty(); waiting_.pop_front()) spread(waiting_.front(), priority);
    }
    std::vector<uint32_t> folds(graph_.ops.size());
    for (size_t i = 0; i < reached_.size(); ++i) {
      size_t axes = static_cast<size_t>(mesh_.count());
      if (reached_[i] && reached_[i]->fold) folds[i / axes] |= 1u << i % axes;
    }
    return {std::move(layouts_), std::move(folds), std::move(parameters_)};
  }

 private:
  struct Waiting {
    Val value;
    int axis;
  };

  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }
  Layout& layout(Val v) { return layouts_[static_cast<size_t>(v)]; }

  void decide(bool made, Val v, const Layout& layout, std::string reason, int op, Loc loc = {}) {
    if (!decisions_) return;
    if (op >= 0) loc = graph_.ops[static_cast<size_t>(op)].loc;
    std::string what = format("{} {}", *type(v), to_text(mesh_, layout, type(v)->rank()));
    decisions_->push_back({"shard", made, std::move(what), std::move(reason), loc});
  }

  std::string reason_for(int axis, int op) const {
    if (op < 0) return format("'{}' is given", mesh_[axis].name);
    return format("'{}' through {}", mesh_[axis].name,
                  graph_.ops[static_cast<size_t>(op)].op->name);
  }

  /// Divides `v`, if it has no place for this axis yet and there is room.
  void give(Val v, int axis, Digit digit, Priority priority, int op, Loc loc = {}) {
    Layout& now = layout(v);
    bool is_stored = priority == Priority::stored;
    bool is_closed = op >= 0 && is_closed_[static_cast<size_t>(v)] &&
                     !(is_stored && leaves_worker_[static_cast<size_t>(v)]);
    if (now[axis] == digit) return;
    if (is_stored && op < 0 && !now[axis]) digit = stored_digit(v, axis, digit);
    if (is_closed || now[axis] || !has_room(mesh_, now, type(v)->shape, axis, digit)) {
      Layout wanted(mesh_);
      wanted[axis] = digit;
      std::string_view why = now[axis]   ? "the axis divides it elsewhere"
                             : is_closed ? "its layout is given"
                                         : "there is no room";
      decide(false, v, wanted, format("{}: {}", reason_for(axis, op), why), op, loc);
      return;
    }
    now[axis] = digit;
    if (is_stored) now.stored |= 1u << axis;
    if (priority == Priority::parameter) parameters_[static_cast<size_t>(v)] |= 1u << axis;
    decide(true, v, now, reason_for(axis, op), op, loc);
    waiting_.push_back({v, axis});
  }

  /// Another place for a layout of memory, where axes that divide the computation have taken its
  /// own: behind them in the dimension, or in another one.
  Digit stored_digit(Val v, int axis, Digit wanted) const {
    const Layout& now = layouts_[static_cast<size_t>(v)];
    const Shape& shape = type(v)->shape;
    auto fits = [&](Digit digit) { return has_room(mesh_, now, shape, axis, digit); };
    if (fits(wanted)) return wanted;
    for (int k = 0; k < shape.rank(); ++k) {
      Digit digit{(wanted.dim + k) % shape.rank(), 1};
      for (int u = 0; u < mesh_.count(); ++u)
        if (now[u] && now[u].dim == digit.dim)
          digit.radix = std::max(digit.radix, now[u].radix * mesh_[u].parts);
      if (fits(digit)) return digit;
    }
    return wanted;
  }

  void spread(Waiting from, Priority priority) {
    for (int op : ops_at_[static_cast<size_t>(from.value)])
      for (int slot = 0; slot < links_.slots(op); ++slot)
        if (links_.value(op, slot) == from.value) spread_through(op, slot, from, priority);
  }

  void spread_through(int op, int slot, Waiting from, Priority priority) {
    const GraphOp& one = graph_.ops[static_cast<size_t>(op)];
    if (priority == Priority::stored && !keeps_places(*one.op)) return;
    bool is_border = one.op == &ops::to_local || one.op == &ops::from_local;
    if (is_border || is_of_one_worker_[static_cast<size_t>(op)]) return;
    Digit digit = layout(from.value)[from.axis];
    std::optional<Reach> reach = links_.follow(op, slot, digit, mesh_[from.axis].parts);
    if (!reach) {
      if (decisions_ && !has_positions(*one.op)) {
        Layout wanted(mesh_);
        wanted[from.axis] = digit;
        std::string why = format("{} is not divided there", one.op->name);
        decide(false, from.value, wanted, std::move(why), op);
      }
      return;
    }
    auto& before = reached_[static_cast<size_t>(op * mesh_.count() + from.axis)];
    if (before && *before != *reach) {
      decide(false, from.value, layout(from.value),
             format("{} is divided along '{}' elsewhere", one.op->name, mesh_[from.axis].name), op);
      return;
    }
    if (priority != Priority::stored) before = *reach;
    for (int k = 0; k < links_.slots(op); ++k) {
      Digit there = reach->slots[static_cast<size_t>(k)];
      Val v = links_.value(op, k);
      bool fits =
          priority != Priority::stored || identical(type(v)->shape, type(from.value)->shape);
      if (there && fits) give(v, from.axis, there, priority, op);
    }
  }

  const Graph& graph_;
  const Mesh& mesh_;
  Links& links_;
  Decisions* decisions_;
  std::vector<std::vector<int>> ops_at_;
  std::vector<std::optional<Reach>> reached_;  // by op and mesh axis
  std::vector<Layout> layouts_;
  std::vector<uint32_t> parameters_;
  std::vector<bool> is_closed_, leaves_worker_, is_of_one_worker_;
  std::deque<Waiting> waiting_;
};

}  // namespace

bool keeps_places(const OpDef& op) { return op.is_elementwise() || &op == &ops::copy; }

std::vector<Constraint> constraints_in(const Graph& graph, const Mesh& mesh) {
  std::vector<Constraint> made;
  std::vector<bool> is_inside = ops_of_one_worker(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp& op = graph.ops[i];
    if (op.op == &ops::to_local || op.op == &ops::from_local) {
      Val whole = op.op == &ops::to_local ? graph.in(op)[0] : op.out;
      made.push_back({whole, layout_of_parts(graph, op, mesh), ops::ShardRole::data, op.loc});
    }
    if (op.op != &ops::shard || is_inside[i]) continue;
    const auto& a = *static_cast<const ops::ShardAttrs*>(op.attr_data());
    TypeRef type = graph.types[static_cast<size_t>(op.out)];
    made.push_back({op.out, layout_of(mesh, a.mesh_axes, a.axes, *type), a.role, op.loc});
  }
  return made;
}

Layouts propagate(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
                  Links& links, Decisions* decisions) {
  return Propagation(graph, mesh, links, decisions).run(constraints);
}

}  // namespace tn::sharding
