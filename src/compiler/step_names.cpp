#include "compiler/step_names.h"

#include <algorithm>

#include "ir/written.h"

namespace tn {

namespace {

constexpr size_t kMostParts = 3;  // of a name; what is between the first and the last is left out

/// The part of two paths that is the same, in whole components: "blocks[0]" of "blocks[0].attn" and
/// "blocks[0].norm".
std::string_view shared_path(std::string_view a, std::string_view b) {
  auto differ = std::ranges::mismatch(a, b);
  auto same = static_cast<size_t>(differ.in1 - a.begin());
  bool whole = (same == a.size() || a[same] == '.') && (same == b.size() || b[same] == '.');
  if (whole) return a.substr(0, same);
  size_t dot = a.substr(0, same).rfind('.');
  return dot == a.npos ? "" : a.substr(0, dot);
}

}  // namespace

std::string step_name(std::span<const GraphOp* const> ops) {
  std::vector<Written> parts;
  for (const GraphOp* op : ops) {
    Written written = written_at(op->loc);
    if (written.composite.empty()) written.composite = op->op->name;
    auto same = [&](const Written& w) {
      return w.path == written.path && w.composite == written.composite;
    };
    if (std::ranges::none_of(parts, same)) parts.push_back(std::move(written));
  }
  if (parts.empty()) return "copy";
  std::string path = parts[0].path;
  for (const Written& part : parts) path = shared_path(path, part.path);
  std::vector<std::string> names;
  for (const Written& part : parts) {
    std::string inside =
        part.path.substr(path.empty() ? 0 : std::min(path.size() + 1, part.path.size()));
    names.push_back(inside.empty() ? part.composite : inside + "." + part.composite);
  }
  if (names.size() > kMostParts) names = {names[0], "...", names.back()};
  if (path.empty()) return format("{}", join(names, " + "));
  return names.size() == 1 ? path + "." + names[0] : format("{}: {}", path, join(names, " + "));
}

std::vector<std::string> step_names(const KernelSet& set) {
  std::vector<std::string> names;
  auto at = [&](int op) { return &set.graph.ops[static_cast<size_t>(op)]; };
  for (int item : set.order) {
    std::vector<const GraphOp*> ops;
    if (item >= 0) {
      ops.push_back(at(item));
    } else {
      const FusedOps& cluster = set.clusters[static_cast<size_t>(~item)];
      if (cluster.hero >= 0) ops.push_back(at(cluster.hero));
      for (int member : cluster.members) ops.push_back(at(member));
    }
    names.push_back(step_name(ops));
  }
  return names;
}

}  // namespace tn
