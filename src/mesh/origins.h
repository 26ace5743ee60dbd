#pragma once
// Where the values of a process come from, as its collectives tell those of other processes.
//
// The origin of a result follows from the op and the origins of the operands alone. So it does not
// depend on the plans into which a process divides its program: one may evaluate a value earlier
// than others, or with more.
#include <span>
#include <vector>

#include "compiler/compile_graph.h"
#include "ir/graph.h"
#include "ir/mesh_layout.h"
#include "runtime/transport.h"

namespace tn::mesh {

using workers::Origin;

/// Of bytes of the host: of many, so many samples.
inline constexpr size_t kSamples = 4096, kFewSamples = 2;
Origin origin_of(const char* bytes, size_t count, size_t samples = kSamples);

/// A collective of a plan: the value of the graph that it is about, and its number.
struct Meeting {
  uint64_t loc;
  Val value;
  size_t number;
};
/// Those of `local` along axes of the mesh, by place. The pass has marked places with the values of
/// `graph`. Bodies are shared, so a collective in a body that two ops have is left out.
std::vector<Meeting> meetings_in(const Graph& local, const Graph& graph, const Mesh& mesh);

/// The origins of the values of a graph, in its runs.
class GraphOrigins {
 public:
  /// Collectives of other groups than the axes of the mesh make values that nothing is known of.
  GraphOrigins(const Graph& graph, const Mesh& mesh, const CompileOptions& options);

  /// Of the numbers of a run, in order.
  std::vector<Origin> of_numbers(const Graph& graph, const Scalar* scalars) const;
  /// By value.
  std::vector<Origin> of_run(const Graph& graph, std::span<const Origin> inputs,
                             std::span<const Origin> numbers) const;
  /// Of a result, or of what a collective is about, by number.
  Origin of_one(Origin value, size_t number) const;
  std::vector<workers::CallOrigin> of_calls(std::span<const Meeting> meetings,
                                            std::span<const Origin> values) const;

 private:
  void take_arguments(const Graph& graph, std::span<const Origin> inputs,
                      std::vector<Origin>& values) const;

  std::vector<uint64_t> ops_;  // hashes without operands; 0: nothing is known of the results
  std::vector<Loc> readers_;   // of numbers, in order; with a mark, as places of a plan
  size_t runtime_;             // the first numbers, which are given to a run
  bool is_function_;
};

}  // namespace tn::mesh
