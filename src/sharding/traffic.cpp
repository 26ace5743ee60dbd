#include "sharding/traffic.h"

#include <algorithm>

#include "base/text.h"
#include "ir/body.h"
#include "ops/collectives.h"
#include "ops/control_flow.h"
#include "ops/op_decls.h"

namespace tn::sharding {
namespace {

/// How much of the larger side a worker sends, as a fraction of (workers - 1) / workers.
int share_of(const OpDef& op) {
  if (&op == &ops::all_sum || &op == &ops::all_fold) return 2;  // scattered, then gathered
  constexpr const OpDef* kOnce[] = {&ops::all_gather, &ops::reduce_scatter, &ops::all_to_all,
                                    &ops::all_broadcast};
  return std::ranges::count(kOnce, &op) ? 1 : 0;
}

/// Where a graph is: inside control flow it runs several times, or perhaps not.
struct Inside {
  int64_t times = 1;
  std::string where = {};
};

Inside inside_of(const GraphOp& op, Inside at) {
  std::optional<ControlStep::Kind> kind = ops::control_kind(*op.op);
  if (kind == ControlStep::Kind::scan) {
    Dim length = static_cast<const ops::ScanAttrs*>(op.attr_data())->length;
    if (length.is_const()) at.times *= length.value();
  }
  if (kind == ControlStep::Kind::while_loop) at.where = "in a round of while_loop";
  if (kind == ControlStep::Kind::cond) at.where = "in a branch of cond";
  return at;
}

void add_traffic(const Graph& local, const Inside& at, std::vector<Traffic>& all) {
  for (const GraphOp& op : local.ops) {
    if (op.op == &scalar_leaf) continue;
    for (GraphRef inner : bodies_of(op)) add_traffic(*inner, inside_of(op, at), all);
    int share = share_of(*op.op);
    if (!share) continue;
    const auto& group = *static_cast<const ops::GroupAttrs*>(op.attr_data());  // the first of all
    if (group.workers < 2) continue;
    TypeRef in = local.types[static_cast<size_t>(local.in(op)[0])];
    TypeRef out = local.types[static_cast<size_t>(op.out)];
    int64_t bytes = std::max(in->bytes(), out->bytes());
    int64_t others = group.workers - 1;
    all.push_back({std::string(op.op->name), std::string(group.mesh_axis), group.workers,
                   format("{}", *out), bytes, share * bytes * others / group.workers, op.loc,
                   at.times, at.where});
  }
}

}  // namespace

std::vector<Traffic> traffic_of(const Graph& local) {
  std::vector<Traffic> all;
  add_traffic(local, {}, all);
  return all;
}

int64_t sent_by(std::span<const Traffic> traffic) {
  int64_t sent = 0;
  for (const Traffic& one : traffic) sent += one.sent * one.times;
  return sent;
}

std::string short_bytes(int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1000 && unit + 1 < std::size(kUnits); ++unit) amount /= 1000;
  if (unit == 0 || amount >= 10) return format("{:.0f}{}", amount, kUnits[unit]);
  return format("{:.1f}{}", amount, kUnits[unit]);
}

std::string to_text(std::span<const Traffic> traffic) {
  if (traffic.empty()) return "no collectives\n";
  std::string text;
  int64_t count = 0;
  for (const Traffic& one : traffic) {
    text += format("{} along {} of {}: {}, a worker sends {}", one.name, one.mesh_axis, one.type,
                   short_bytes(one.bytes), short_bytes(one.sent));
    if (one.times != 1) text += format(", {} times", one.times);
    if (!one.where.empty()) text += format(", {}", one.where);
    if (std::string place = to_text(one.loc); !place.empty()) text += format(" ({})", place);
    text += '\n', count += one.times;
  }
  return text + format("{} collective{}, a worker sends {}\n", count, count == 1 ? "" : "s",
                       short_bytes(sent_by(traffic)));
}

}  // namespace tn::sharding
