#pragma once
// Where the values of a process come from, as its collectives tell those of other processes.
//
// The origin of a result follows from the op and the origins of the operands alone. So it does not
// depend on the plans into which a process divides its program: one may evaluate a value earlier
// than others, or with more.
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/mesh_layout.h"
#include "runtime/transport.h"

namespace tn::mesh {

using workers::Origin;

/// Of bytes of the host.
Origin origin_of(const char* bytes, size_t count);

/// The origins of the values of a graph, in its runs.
class GraphOrigins {
 public:
  /// Marks the places of the ops by their numbers. Collectives of other groups than the axes of the
  /// mesh make values that nothing is known of. The first `runtime_scalars` numbers are a run's.
  GraphOrigins(Graph& graph, const Mesh& mesh, int runtime_scalars);

  /// By value.
  std::vector<Origin> of_run(const Graph& graph, std::span<const Origin> inputs,
                             const Scalar* scalars) const;
  /// Of the numbers, in order.
  std::vector<Origin> of_numbers(const Graph& graph, const Scalar* scalars) const;

 private:
  std::vector<uint64_t> ops_;  // hashes without operands; 0: nothing is known of the results
  std::vector<Loc> readers_;   // of numbers, in order
  size_t runtime_;
};

/// A collective of a plan, and the ops of the graph that it is for.
struct Meeting {
  uint64_t loc;
  std::vector<Val> values;
};
/// Those of `local` along axes of the mesh, by place. `graph`: with marked places. Bodies have no
/// marks, so a collective in a body that two ops share is left out.
std::vector<Meeting> meetings_in(const Graph& local, const Graph& graph, const Mesh& mesh);

/// What each of them is about, in a run.
std::vector<workers::CallOrigin> origins_of(std::span<const Meeting> meetings,
                                            std::span<const Origin> values);

}  // namespace tn::mesh
