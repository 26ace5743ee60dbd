#include "eval/flush_parts.h"

#include <algorithm>
#include <numeric>

#include "eval/hot_paths.h"
#include "ir/walk.h"

namespace tn {

namespace {

uint64_t plan_of(const RegionRef& region) { return region ? as_signal(region)->plan : 0; }

/// Of each node of a walk by its `index`: the number of its part, or none for leaves.
constexpr uint32_t kNoPart = UINT32_MAX;
using PartNumbers = std::vector<uint32_t>;

/// Whether another part of the walk, or the program outside of it, needs each of the nodes.
std::vector<bool> needed_nodes(const Walk& walk, const PartNumbers& parts) {
  std::vector<bool> needed(parts.size());
  for (Node* node : walk.nodes) {
    if (node->refs.load(std::memory_order_acquire) > node->uses) needed[node->index] = true;
    for (int i = 0; i < node->ins; ++i) {
      uint32_t operand = node->inputs()[i].node->index;
      if (parts[operand] != parts[node->index]) needed[operand] = true;
    }
  }
  return needed;
}

}  // namespace

std::vector<FlushPart> parts_of(std::span<const Tensor> wanted) {
  std::lock_guard lock(walk_mutex());
  static auto& walk = *new Walk;  // scratch, kept between flushes
  walk.nodes.clear(), walk.leaves.clear();
  tn::walk(wanted, walk);
  auto is_param = [](Node* leaf) { return leaf->op == &param_leaf; };
  if (walk.nodes.empty() || std::ranges::any_of(walk.leaves, is_param)) return {{}};
  std::vector<RegionRef> regions = regions_of(walk.nodes);
  if (std::ranges::all_of(regions, [&](auto& r) { return plan_of(r) == plan_of(regions[0]); }))
    return {{{}, regions[0]}};
  std::vector<size_t> order(walk.nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return walk.nodes[i]->sequence; });

  std::vector<FlushPart> parts{{{}, regions[order[0]]}};
  uint32_t values = 0;
  for (Node* node : walk.leaves) values = std::max(values, node->index);
  for (Node* node : walk.nodes) values = std::max(values, node->index);
  PartNumbers numbers(values + 1, kNoPart);
  for (size_t i : order) {
    if (plan_of(regions[i]) != plan_of(parts.back().region)) parts.push_back({{}, regions[i]});
    numbers[walk.nodes[i]->index] = static_cast<uint32_t>(parts.size() - 1);
  }
  std::vector<bool> needed = needed_nodes(walk, numbers);
  for (size_t i : order) {
    Node* node = walk.nodes[i];
    uint32_t part = numbers[node->index];
    if (!needed[node->index] || part == parts.size() - 1) continue;
    retain(node);
    parts[part].wanted.emplace_back(node, 0);
  }
  return parts;
}

HotPathPolicy policy_in(const SignalRegion* region) {
  if (!region || !region->compile) return hot_path_policy();
  const signal::Compile& compile = *region->compile;
  using When = HotPathPolicy::When;
  if (!compile.wanted) return {.when = When::never};
  prepare_hot_paths();
  return {compile.threshold > 1 ? When::hot : When::always, compile.threshold};
}

}  // namespace tn
