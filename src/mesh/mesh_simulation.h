#pragma once
// A program on a mesh of any size, without its workers: what the sharding pass makes of it, what a
// step would take, and the memory of a worker.
#include "sharding/shard.h"
#include "sharding/traffic.h"

namespace tn::mesh {

/// The network along an axis of the mesh, for one worker.
struct NetworkAxis {
  double seconds = 5e-6;           // of a message without data
  double bytes_per_second = 50e9;  // that a worker sends
};

/// What workers are made of.
struct Cluster {
  double flops = 1e12;  // of a worker, in products
  int64_t memory = int64_t{64} << 30;
  std::vector<NetworkAxis> axes;  // by axis of the mesh; the last holds for those behind it
};

struct Simulation {
  int64_t workers = 1;
  int64_t groups = 0;  // that communicate, along all axes
  int plans = 0;       // that differ
  /// Whether all workers make the same collectives in one order along each axis: the collectives
  /// of all plans, and in each plan those of every way through control flow that workers may take.
  bool are_equal = false;
  std::vector<sharding::Traffic> traffic;
  /// Seconds of a step, one after the other. Gathers count twice where not everything can be kept.
  double computing = 0, communicating = 0;
  int64_t state = 0;  // bytes of a worker's inputs
  int64_t peak = 0;   // with what lives beside them, if all is kept
  int64_t least = 0;  // if elementwise ops and gathers are done again
  bool fits = false;  // into the memory of a worker

  int64_t sent() const { return sharding::sent_by(traffic); }
};

/// The time of a collective: messages of halving and doubling, and the bytes.
double seconds_of(const sharding::Traffic& traffic, const NetworkAxis& network);

/// Results of elementwise ops, and what is gathered from inputs: kept, or made again where they are
/// read.
enum class Recomputing : uint8_t { none, all };

/// The most bytes that live at once while the ops run in their order. Views take none.
int64_t live_bytes(const Graph& graph, Recomputing recomputing = Recomputing::none);

Simulation simulate(const Graph& graph, const Mesh& mesh,
                    std::span<const sharding::Constraint> constraints, const Cluster& cluster);

}  // namespace tn::mesh
