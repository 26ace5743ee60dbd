#pragma once
// Graphs over several devices: cut into parts, each for one device, which know of none.
#include <memory>

#include "ir/graph.h"

namespace tn {

struct Compilation;
struct Target;
struct CompileOptions;
class PlacedCode;

/// Whether a graph has to do with a device that is not the host's: one of its values is there, or a
/// function of one worker (shard_map) is inside its control flow.
bool names_devices(const Graph& graph);

/// The same computation on any device: nothing of it is said.
Graph without_devices(const Graph& graph);

/// The same computation with everything on one device; `graph` names none.
Graph placed_on(const Graph& graph, Device device);

/// An op that devices of a target leave to the host; null: there is none. `graph` names no devices.
const OpDef* op_of_host(const Graph& graph, const Target& target);

/// What one device computes without waiting for another.
struct GraphPart {
  Device device;
  Graph graph;                   // its types name no devices
  std::vector<Val> in, out;      // values of the graph that was cut
  std::vector<int32_t> scalars;  // its run-time numbers, by number in that graph
  int known = 0;                 // so many of its last inputs are constants
  /// Values of other devices that go to a device before it runs, for it or for a later part.
  std::vector<std::pair<Val, Device>> fetched = {};
};

struct PlacedGraph {
  Graph graph;                    // what was cut: composites may have been expanded
  std::vector<GraphPart> parts;   // in an order in which they can run
  std::vector<Val> outputs;       // of the graph: the values that they are copies of
  std::vector<Device> output_at;  // where they are wanted
  /// All of it runs on one device: the part has the inputs, outputs and numbers of the graph.
  bool is_whole = false;
};

/// `known`: so many of the last inputs are constants; they are the last of the parts' as well.
/// `runtime_scalars`: so many of the first numbers are given at every run.
PlacedGraph place(const Graph& graph, int known, int runtime_scalars);

/// The plans of the parts, joined.
Compilation compile_placed(const Graph& graph, const CompileOptions& options);
std::unique_ptr<const PlacedCode> make_placed(const Graph& graph, const CompileOptions& options);

}  // namespace tn
