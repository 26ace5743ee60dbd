#include "compiler/placing.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "compiler/part_order.h"
#include "ir/body.h"
#include "ir/rewrite.h"
#include "ops/control_flow.h"
#include "ops/op_decls.h"
#include "passes/passes.h"
#include "plan/library.h"
#include "runtime/device.h"

namespace tn {
namespace {

bool has_device(TypeRef type) { return !type->device.is_host(); }

/// The mesh of a function of one worker inside the graphs of an op. It can run nowhere else.
std::optional<Device> mesh_inside(const GraphOp& op) {
  std::optional<Device> found;
  if (op.op != &ops::call && !ops::control_kind(*op.op)) return found;
  for (GraphRef body : bodies_of(op)) {
    for (const GraphOp& inner : body->ops) {
      TypeRef type = inner.outs ? body->types[static_cast<size_t>(inner.out)] : nullptr;
      bool is_border = inner.op == &ops::to_local || inner.op == &ops::from_local;
      if (is_border && has_device(type)) found = type->device;
      if (std::optional<Device> deeper = mesh_inside(inner)) found = deeper;
    }
  }
  return found;
}

}  // namespace

bool names_devices(const Graph& graph) {
  return std::ranges::any_of(graph.types, has_device) ||
         std::ranges::any_of(graph.ops, [](const GraphOp& op) { return bool(mesh_inside(op)); });
}

Graph without_devices(const Graph& graph) { return placed_on(graph, {}); }

Graph placed_on(const Graph& graph, Device device) {
  Graph made;
  GraphCopy copy{graph, made};
  copy.inputs();
  for (TypeRef& type : made.types) type = on_device(type, device);
  for (const GraphOp& op : graph.ops) {
    if (op.op == &ops::to_device) {
      copy[op.out] = copy[graph.in(op)[0]];
      continue;
    }
    copy.op(op);
    made.ops.back().attrs =
        with_bodies(op.attrs, [&](GraphRef body) { return intern(placed_on(*body, device)); });
    for (int i = 0; i < op.outs; ++i) {
      TypeRef& type = made.types[static_cast<size_t>(made.ops.back().out + i)];
      type = on_device(type, device);
    }
  }
  made.outputs = copy.all(graph.outputs);
  return made;
}

namespace {

using Claims = FunctionRef<bool(const OpDef& op, std::span<const TypeRef> in)>;

/// Whether a device has what an op needs, in its loops or in its library, which `claims`.
bool has_code(const Graph& graph, const GraphOp& op, Claims claims) {
  if (op.op == &scalar_leaf || op.op == &ops::to_device) return true;
  std::vector<TypeRef> in = graph.in_types(op);
  bool is_code = op.op->rules->lower || op.op->rules->body;  // loops, or other ops
  bool needs_library = !is_code && library_kernel(*op.op, in, host_target());
  if (needs_library && !claims(*op.op, in)) return false;
  return std::ranges::all_of(bodies_of(op), [&](GraphRef body) {
    return std::ranges::all_of(
        body->ops, [&](const GraphOp& inner) { return has_code(*body, inner, claims); });
  });
}

bool can_run(Device device, const Graph& graph, const GraphOp& op) {
  if (device.is_host()) return true;
  return has_code(graph, op, [&](const OpDef& its, std::span<const TypeRef> in) {
    return runtime_of(device).claims(its, in);
  });
}

class Placer {
 public:
  Placer(const Graph& graph, int known, int runtime_scalars)
      : graph_(graph), first_known_(graph.inputs() - known), runtime_(runtime_scalars) {
    source_.resize(graph.types.size()), at_.resize(graph.types.size());
    for (Val v = 0; v < graph.inputs(); ++v)
      source_[index(v)] = v, at_[index(v)] = place_on(graph.types[index(v)]->device);
    for (const GraphOp& op : graph.ops) see(op);
    delay();
  }

  PlacedGraph run() {
    Lists lists;
    for (const GraphOp& op : graph_.ops)
      if (is_placed(op)) lists[at_[index(op.out)]].push_back(&op);
    PlacedGraph made;
    if (std::optional<Device> only = only_device()) {
      made.is_whole = true;
      made.parts.push_back({*only, without_devices(graph_), {}, {}, {}, 0});
      return made;
    }
    for (Val v : graph_.outputs) {
      Val source = source_[index(v)];
      made.outputs.push_back(source);
      made.output_at.push_back(graph_.types[index(v)]->device);
      if (constants_.contains(source)) lists[{}];  // some part must store it
    }
    for (const auto& [place, list] : lists) made.parts.push_back(part(place, list, made.outputs));
    auto is_beside = [&](const auto& list) { return works_beside_others(list.first.device); };
    if (std::ranges::any_of(lists, is_beside)) reorder(made.parts, lists);
    return made;
  }

 private:
  /// Stages run one after the other; a value from another device is of an earlier one. A device
  /// that works beside others has a part for each set of values that ops wait for.
  struct Place {
    int stage = 0;
    Device device = {};
    int order = 0;  // of the device, by its first value: indices may differ between processes
    int waits = 0;  // the number of the set
    friend bool operator<(const Place& a, const Place& b) {
      return std::tuple(a.stage, a.device.kind, a.order, a.waits) <
             std::tuple(b.stage, b.device.kind, b.order, b.waits);
    }
    friend bool operator==(const Place&, const Place&) = default;
  };
  using Lists = std::map<Place, std::vector<const GraphOp*>>;

  Place place_on(Device device) {
    if (device.is_host()) return {};
    auto number = static_cast<int>(numbers_.size()) + 1;
    return {0, device, numbers_.try_emplace({device.kind, device.index}, number).first->second, 0};
  }
  /// A result that is its operand, wherever it is wanted.
  bool is_copy(const GraphOp& op) const {
    return op.op == &ops::to_device && source_[index(op.out)] != op.out;
  }
  bool is_placed(const GraphOp& op) const { return op.op != &scalar_leaf && !is_copy(op); }

  /// Sets of values, by number; 0 is the empty one. Early values are of stage 0. They are there
  /// before any late one, so a set that has late values has no others.
  class WaitSets {
   public:
    int joined(int a, int b) {
      if (a == b || b == 0 || is_late(a) > is_late(b)) return a;
      if (a == 0 || is_late(b) > is_late(a)) return b;
      auto [known, is_new] = joins_.try_emplace({std::min(a, b), std::max(a, b)});
      if (!is_new) return known->second;
      std::vector<Val> all;
      std::ranges::set_union(sets_[static_cast<size_t>(a)], sets_[static_cast<size_t>(b)],
                             std::back_inserter(all));
      return known->second = number(std::move(all));
    }
    int of(Val v, bool is_late) {
      int set = number({v});
      if (is_late) late_.insert(v);
      return set;
    }
    bool is_late(int set) const {
      return set > 0 && late_.contains(sets_[static_cast<size_t>(set)].front());
    }
    int size(int set) const { return static_cast<int>(sets_[static_cast<size_t>(set)].size()); }

   private:
    int number(std::vector<Val> set) {
      auto [known, is_new] = numbers_.try_emplace(set, static_cast<int>(sets_.size()));
      if (is_new) sets_.push_back(std::move(set));
      return known->second;
    }
    std::vector<std::vector<Val>> sets_{{}};
    std::map<std::vector<Val>, int> numbers_{{{}, 0}};
    std::map<std::pair<int, int>, int> joins_;
    std::set<Val> late_;
  };
  static size_t index(Val v) { return static_cast<size_t>(v); }

  /// Where everything is, apart from numbers.
  std::optional<Device> only_device() const {
    std::optional<Device> only;
    auto same = [&](Device device) {
      if (!only) only = device;
      return *only == device;
    };
    for (Val v = 0; v < graph_.values(); ++v) {
      TypeRef type = graph_.types[index(v)];
      Val from = source_[index(v)];  // a single value of the host travels with the run
      bool travels =
          type->rank() == 0 && from < graph_.inputs() && !has_device(graph_.types[index(from)]);
      bool is_number = constants_.contains(from);
      bool refused = v >= graph_.inputs() && !is_number && at_[index(v)].device != type->device;
      if (!travels && !is_number && (refused || !same(type->device))) return {};
    }
    for (Val v : graph_.outputs)
      if (constants_.contains(v) || graph_.types[index(v)]->device != only) return {};
    return only;
  }

  void see(const GraphOp& op) {
    if (op.op == &scalar_leaf) {
      constants_.emplace(op.out, static_cast<int>(constants_.size()));
      source_[index(op.out)] = op.out;
      return;
    }
    Device device = graph_.types[index(op.out)]->device;
    if (op.op == &ops::to_device) {
      Val from = source_[index(graph_.in(op)[0])];
      // What readers elsewhere cannot get from a part of a mesh goes through the whole mesh.
      bool is_move = works_beside_others(at_[index(from)].device) && !device.is_host() &&
                     !works_beside_others(device);
      if (!is_move) {
        source_[index(op.out)] = from, at_[index(op.out)] = at_[index(from)];
        return;
      }
    }
    if (device.is_host()) device = mesh_inside(op).value_or(device);
    Place place = place_on(can_run(device, graph_, op) ? device : Device());
    bool is_beside = works_beside_others(place.device);
    auto wait_for = [&](Val from) {
      const Place& there = at_[index(from)];
      bool is_here = there.device == place.device;
      // What the host makes of the arguments is there from the start.
      if (is_beside && there.device.is_host() && there.stage == 0) return;
      place.stage = std::max(place.stage, there.stage + !is_here);
      if (is_beside)
        place.waits =
            waits_.joined(place.waits, is_here ? there.waits : waits_.of(from, there.stage > 0));
    };
    for (Val v : graph_.in(op)) {
      Val from = source_[index(v)];
      if (!constants_.contains(from) && from >= graph_.inputs()) wait_for(from);
    }
    if (has_effects(op)) {  // in their order
      if (last_effect_ != kNoVal) wait_for(last_effect_), after_effect_[op.out] = last_effect_;
      last_effect_ = op.out;
    }
    for (int i = 0; i < op.outs; ++i)
      source_[index(op.out + i)] = op.out + i, at_[index(op.out + i)] = place;
  }

  /// Moves ops of devices to the last stage that their readers allow: what does not wait for the
  /// host, and what does, is one part where the host does not wait for the former.
  void delay() {
    std::map<std::pair<int, int>, int> last;  // stage, by device
    auto key = [](Device device) { return std::pair<int, int>(device.kind, device.index); };
    for (const GraphOp& op : graph_.ops)
      if (const Place& at = at_[index(op.out)]; is_placed(op) && op.outs > 0)
        last[key(at.device)] = std::max(last[key(at.device)], at.stage);
    std::vector<int> limit(graph_.types.size(), INT_MAX);  // of values, by their readers
    std::vector<std::optional<Place>> reader(graph_.types.size());
    std::vector<bool> is_scattered(graph_.types.size());  // it has readers in several places
    for (size_t i = graph_.ops.size(); i-- > 0;) {
      const GraphOp& op = graph_.ops[i];
      if (!is_placed(op) || op.outs == 0) continue;
      Place place = at_[index(op.out)];
      if (works_beside_others(place.device)) {
        if (!waits_.is_late(place.waits) && !has_effects(op))
          place = place_of_readers(op, reader, is_scattered);
      } else if (!place.device.is_host() && !has_effects(op)) {
        place.stage = last[key(place.device)];
        for (int k = 0; k < op.outs; ++k)
          place.stage = std::min(place.stage, limit[index(op.out + k)]);
      }
      for (int k = 0; k < op.outs; ++k) at_[index(op.out + k)] = place;
      for (Val v : graph_.in(op)) {
        Val from = source_[index(v)];
        bool is_here = at_[index(from)].device == place.device;
        if (reader[index(from)] && reader[index(from)] != place) is_scattered[index(from)] = true;
        reader[index(from)] = place;
        limit[index(from)] = std::min(limit[index(from)], place.stage - !is_here);
      }
    }
  }

  /// Where an op that waits for nothing late goes: to its readers, if they are in one part.
  Place place_of_readers(const GraphOp& op, const std::vector<std::optional<Place>>& reader,
                         const std::vector<bool>& is_scattered) const {
    const Place& own = at_[index(op.out)];
    std::optional<Place> found;
    for (int k = 0; k < op.outs; ++k) {
      const std::optional<Place>& its = reader[index(op.out + k)];
      if (!its) continue;
      bool is_one = !is_scattered[index(op.out + k)] && its->device == own.device;
      if (!is_one || (found && found != its)) return own;
      found = its;
    }
    return found.value_or(own);
  }

  /// Into the order of a run in which devices work beside each other.
  void reorder(std::vector<GraphPart>& parts, const Lists& lists) const {
    std::vector<OrderedPart> nodes;
    std::map<Val, int> maker;
    for (const auto& [place, list] : lists) {
      for (Val v : parts[nodes.size()].out) maker[v] = static_cast<int>(nodes.size());
      nodes.push_back({place.device, place.stage, waits_.size(place.waits), 0, {}});
    }
    auto at = nodes.begin();
    for (const auto& [place, list] : lists) {
      std::set<int> after;
      for (Val v : parts[static_cast<size_t>(at - nodes.begin())].in)
        if (auto made = maker.find(v); made != maker.end()) {
          after.insert(made->second);
          if (nodes[static_cast<size_t>(made->second)].device != place.device)
            at->time = static_cast<int>(list.size());
        }
      for (const GraphOp* op : list)
        if (auto effect = after_effect_.find(op->out); effect != after_effect_.end())
          if (const Place& there = at_[index(effect->second)]; there != place)
            after.insert(static_cast<int>(std::distance(lists.begin(), lists.find(there))));
      at++->after.assign(after.begin(), after.end());
    }
    PartOrder order = order_parts(nodes);
    std::vector<GraphPart> ordered;
    for (int p : order.order) ordered.push_back(std::move(parts[static_cast<size_t>(p)]));
    fetch_early(ordered, order, maker);
    parts = std::move(ordered);
  }

  /// Values go to other devices as soon as they are made: a device that has worked ahead would
  /// otherwise hold up those that need them.
  static void fetch_early(std::vector<GraphPart>& ordered, const PartOrder& order,
                          const std::map<Val, int>& maker) {
    std::vector<size_t> position(ordered.size());
    for (size_t i = 0; i < ordered.size(); ++i) position[static_cast<size_t>(order.order[i])] = i;
    std::set<std::tuple<Val, uint8_t, uint8_t>> done;
    for (size_t i = 0; i < ordered.size(); ++i) {
      Device device = ordered[i].device;
      for (Val v : std::vector(ordered[i].in)) {
        auto made = maker.find(v);
        if (made == maker.end()) continue;
        size_t from = position[static_cast<size_t>(made->second)], to = from + 1;
        bool is_own = ordered[from].device == device;
        if (is_own || !done.insert({v, device.kind, device.index}).second) continue;
        auto end = order.end[static_cast<size_t>(made->second)];
        while (order.begin[static_cast<size_t>(order.order[to])] < end) ++to;
        ordered[to].fetched.emplace_back(v, device);
      }
    }
  }

  GraphPart part(const Place& place, const std::vector<const GraphOp*>& list,
                 const std::vector<Val>& outputs) const {
    std::vector<bool> own(graph_.types.size()), wanted(graph_.types.size());
    for (const GraphOp* op : list)
      for (int i = 0; i < op->outs; ++i) own[index(op->out + i)] = true;
    for (Val v : outputs) wanted[index(v)] = true;
    for (const GraphOp& op : graph_.ops)
      if (!is_copy(op) && (op.outs == 0 || !own[index(op.out)]))
        for (Val v : graph_.in(op)) wanted[index(source_[index(v)])] = true;

    GraphPart made{place.device, {}, {}, {}, {}, 0};
    Graph cut;
    cut.name = graph_.name;
    std::vector<Val> value(graph_.types.size(), kNoVal);
    std::vector<Val> numbers;  // constants that it reads, in the order of the graph
    auto read = [&](Val v) {
      if (own[index(v)] || value[index(v)] != kNoVal) return;
      if (constants_.contains(v)) {
        if (std::ranges::find(numbers, v) == numbers.end()) numbers.push_back(v);
        return;
      }
      if (std::ranges::find(made.in, v) == made.in.end()) made.in.push_back(v);
    };
    for (const GraphOp* op : list)
      for (Val v : graph_.in(*op)) read(source_[index(v)]);
    bool stores_numbers = place.stage == 0 && place.device.is_host();
    for (Val v : outputs)
      if (stores_numbers && constants_.contains(v)) read(v);
    // A constant that goes from one part of a mesh to another does so in every run: between
    // processes the compiler must send nothing.
    auto is_moved = [&](Device from) {
      return from != place.device && !from.is_host() &&
             (works_beside_others(from) || works_beside_others(place.device));
    };
    auto is_known = [&](Val v) {
      return v >= first_known_ && v < graph_.inputs() && !is_moved(graph_.types[index(v)]->device);
    };
    std::ranges::stable_partition(made.in, std::not_fn(is_known));
    made.known = static_cast<int>(std::ranges::count_if(made.in, is_known));
    for (Val v : made.in)
      value[index(v)] = cut.add_input(format("x{}", cut.inputs()), graph_.types[index(v)]);
    std::ranges::sort(numbers);
    for (Val v : numbers) {
      const GraphOp& op = *std::ranges::find(graph_.ops, v, &GraphOp::out);
      value[index(v)] = cut.add_constant(op.scalar, graph_.types[index(v)], op.loc);
      if (int number = constants_.at(v); number < runtime_) made.scalars.push_back(number);
    }
    for (const GraphOp* op : list) {
      std::vector<Val> in;
      for (Val v : graph_.in(*op)) in.push_back(value[index(source_[index(v)])]);
      Val first = cut.add(*op->op, op->attrs, in, graph_.out_types(*op), op->loc);
      for (int i = 0; i < op->outs; ++i) {
        Val v = op->out + i;
        value[index(v)] = first + i;
        if (wanted[index(v)]) made.out.push_back(v), cut.outputs.push_back(first + i);
      }
    }
    for (Val v : numbers)
      if (stores_numbers && std::ranges::find(outputs, v) != outputs.end())
        made.out.push_back(v), cut.outputs.push_back(value[index(v)]);
    made.graph = without_devices(cut);
    return made;
  }

  const Graph& graph_;
  Val first_known_;
  int runtime_;
  std::map<Val, int> constants_;  // and their numbers
  std::vector<Val> source_;       // by value: what it is a copy of
  std::vector<Place> at_;         // by value
  WaitSets waits_;
  std::map<std::pair<uint8_t, uint8_t>, int> numbers_;  // of devices, by their first values
  Val last_effect_ = kNoVal;
  std::map<Val, Val> after_effect_;  // by results of ops with effects: the effect before
};

}  // namespace

const OpDef* op_of_host(const Graph& graph, const Target& target) {
  Graph expanded = expand_composites(graph);
  for (const GraphOp& op : expanded.ops)
    if (!has_code(expanded, op, [&](const OpDef& its, std::span<const TypeRef> in) {
          return library_kernel(its, in, target) != nullptr;
        }))
      return op.op;
  return nullptr;
}

PlacedGraph place(const Graph& graph, int known, int runtime_scalars) {
  auto is_refused = [](const Graph& g) {
    return std::ranges::any_of(g.ops, [&](const GraphOp& op) {
      return op.outs > 0 && !can_run(g.types[static_cast<size_t>(op.out)]->device, g, op);
    });
  };
  Graph expanded = expand_composites(graph);
  if (!is_refused(expanded)) expanded = graph;
  PlacedGraph made = Placer(expanded, known, runtime_scalars).run();
  made.graph = std::move(expanded);
  return made;
}

}  // namespace tn
