#include "mesh/mesh_simulation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "compiler/op_cost.h"
#include "ops/op_decls.h"
#include "sharding/variation.h"

namespace tn::mesh {

using sharding::Traffic;

namespace {

/// What workers compare when they meet.
using Sequence = std::vector<std::tuple<std::string, std::string, int64_t, std::string>>;

Sequence sequence_of(std::span<const Traffic> traffic) {
  Sequence list;
  for (const Traffic& one : traffic)
    list.emplace_back(one.name, one.mesh_axis, one.workers, format("{} {}", one.type, one.times));
  return list;
}

double seconds_of_products(const Graph& graph, double flops) {
  double count = 0;
  for (const GraphOp& op : graph.ops)
    if (op.op != &scalar_leaf) count += 2 * work_of(graph, op, {}, host_target()).multiply_adds;
  return count / flops;
}

const NetworkAxis& network_of(const Cluster& cluster, int axis) {
  static const NetworkAxis usual;
  if (cluster.axes.empty()) return usual;
  return cluster.axes[std::min(static_cast<size_t>(axis), cluster.axes.size() - 1)];
}

}  // namespace

double seconds_of(const Traffic& traffic, const NetworkAxis& network) {
  double rounds = std::ceil(std::log2(static_cast<double>(traffic.workers)));
  if (traffic.name == "all_sum" || traffic.name == "all_fold") rounds *= 2;
  double once =
      rounds * network.seconds + static_cast<double>(traffic.sent) / network.bytes_per_second;
  return once * static_cast<double>(traffic.times);
}

namespace {

/// Which values take memory while a graph runs, and from which op to which.
class Lives {
 public:
  Lives(const Graph& graph, Recomputing recomputing)
      : graph_(graph), all_(recomputing == Recomputing::all), roots_(graph.types.size()) {
    for (Val v = 0; v < graph.inputs(); ++v) roots_[static_cast<size_t>(v)] = {v};
    made_.resize(graph.types.size()), last_.resize(graph.types.size());
    more_.resize(graph.ops.size() + 1);
    for (size_t i = 0; i < graph.ops.size(); ++i) add(i);
    for (Val v : graph.outputs) read(v, graph.ops.size());
  }

  int64_t most() const {
    std::vector<int64_t> change(graph_.ops.size() + 2);
    for (size_t v = 0; v < made_.size(); ++v) {
      bool is_root = roots_[v].size() == 1 && static_cast<size_t>(roots_[v][0]) == v;
      if (!is_root || last_[v] == 0) continue;
      change[made_[v]] += graph_.types[v]->bytes();
      change[last_[v]] -= graph_.types[v]->bytes();
    }
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < more_.size(); ++i)
      now += change[i], most = std::max(most, now + more_[i]);
    return most;
  }

 private:
  /// Whether it is not kept, but made again where it is read.
  bool is_made_again(const GraphOp& op) const {
    if (!all_ || std::ranges::count(graph_.outputs, op.out)) return false;
    return op.op->is_elementwise();
  }
  std::vector<Val> roots_of(const GraphOp& op) const {
    std::set<Val> all;
    for (Val v : graph_.in(op))
      all.insert(roots_[static_cast<size_t>(v)].begin(), roots_[static_cast<size_t>(v)].end());
    return {all.begin(), all.end()};
  }
  void read(Val v, size_t at) {
    for (Val root : roots_[static_cast<size_t>(v)])
      last_[static_cast<size_t>(root)] = std::max(last_[static_cast<size_t>(root)], at + 1);
  }
  void add(size_t i) {
    const GraphOp& op = graph_.ops[i];
    for (int k = 0; k < op.outs; ++k) {
      auto v = static_cast<size_t>(op.out) + static_cast<size_t>(k);
      roots_[v] = {op.out + k}, made_[v] = i;
    }
    if (op.op == &scalar_leaf) return;
    for (Val v : graph_.in(op)) read(v, i);
    bool is_view = (op.op->family == Family::movement || op.op == &ops::copy) && op.ins > 0;
    if (is_view || is_made_again(op)) {
      roots_[static_cast<size_t>(op.out)] = roots_of(op);
    } else if (op.op->family == Family::general) {  // it reads memory: nothing is fused into it
      for (Val v : graph_.in(op)) {
        const std::vector<Val>& roots = roots_[static_cast<size_t>(v)];
        if (all_ && (roots.size() != 1 || graph_.types[static_cast<size_t>(roots[0])]->bytes() <
                                              graph_.types[static_cast<size_t>(v)]->bytes()))
          more_[i] += graph_.types[static_cast<size_t>(v)]->bytes();
      }
    }
  }

  const Graph& graph_;
  bool all_;
  std::vector<std::vector<Val>> roots_;  // of a value: those whose memory it needs
  std::vector<size_t> made_, last_;  // by value: the op that makes it; one behind the last reader
  std::vector<int64_t> more_;        // by op: what is made again for it
};

}  // namespace

int64_t live_bytes(const Graph& graph, Recomputing recomputing) {
  return Lives(graph, recomputing).most();
}

Simulation simulate(const Graph& graph, const Mesh& mesh,
                    std::span<const sharding::Constraint> constraints, const Cluster& cluster) {
  Simulation made;
  made.workers = mesh.workers();
  // The pass sees no coordinates, so one plan serves all workers. Every process makes it by itself:
  // two must be equal.
  sharding::Sharded first = sharding::shard(graph, mesh, constraints);
  sharding::Sharded second = sharding::shard(graph, mesh, constraints);
  const Graph& local = first.local.graph;
  std::set<std::string> plans{to_text(local), to_text(second.local.graph)};
  made.plans = static_cast<int>(plans.size());
  made.traffic = sharding::traffic_of(local);
  std::vector<uint32_t> divided;
  for (const Layout& layout : first.local.inputs)
    divided.push_back(sharding::divided_axes(mesh, layout));
  made.are_equal =
      sequence_of(made.traffic) == sequence_of(sharding::traffic_of(second.local.graph)) &&
      sharding::uneven_paths(local, mesh, divided).empty();
  std::set<std::string> used;
  for (const Traffic& one : made.traffic) {
    int axis = mesh.find(one.mesh_axis);
    made.communicating += seconds_of(one, network_of(cluster, axis));
    if (used.insert(one.mesh_axis).second) made.groups += made.workers / mesh[axis].size;
  }
  made.computing = seconds_of_products(local, cluster.flops);
  for (int v = 0; v < local.inputs(); ++v)
    made.state += local.types[static_cast<size_t>(v)]->bytes();
  made.peak = live_bytes(local, Recomputing::none),
  made.least = live_bytes(local, Recomputing::all);
  made.fits = std::min(made.peak, made.least) <= cluster.memory;
  return made;
}

}  // namespace tn::mesh
