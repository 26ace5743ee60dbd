#pragma once
// The collectives of a worker's graph, and the bytes that they move.
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tn::sharding {

struct Traffic {
  std::string name;       // of the op: "all_sum"
  std::string mesh_axis;  // along which workers take part
  int64_t workers = 1;
  std::string type;   // of what it makes on a worker
  int64_t bytes = 0;  // of its larger side on a worker: what is summed or gathered
  int64_t sent = 0;   // by a worker to others, by an algorithm that sends no byte twice
  Loc loc;
  int64_t times = 1;  // in loops of a known length
  /// "in a round of while_loop", "in a branch of cond": how often is known when it runs.
  std::string where = {};
};

/// In the order of the graph, with what is inside control flow. Ops that send nothing are left out.
std::vector<Traffic> traffic_of(const Graph& local);
/// What a worker sends: one round of each while_loop counts, and all branches.
int64_t sent_by(std::span<const Traffic> traffic);
/// A line for each, and their sums: "all_sum data f32[16,8]: 512 bytes, sends 768 (train.py:3)".
std::string to_text(std::span<const Traffic> traffic);
inline std::string to_text(const std::vector<Traffic>& traffic) {
  return to_text(std::span(traffic));
}

/// "512B", "123KB", "7.1MB": as logs say it.
std::string short_bytes(int64_t bytes);

}  // namespace tn::sharding
