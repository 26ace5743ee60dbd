#include "mesh/origins.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/function_ref.h"
#include "base/hash.h"
#include "ir/body.h"
#include "ops/collectives.h"

namespace tn::mesh {
namespace {

/// Of all bytes, up to 256 KiB; of more, blocks at equal distances. Eight chains, for speed.
uint64_t hash_of_samples(const char* bytes, size_t count) {
  constexpr size_t kLanes = 8, kBlock = kLanes * sizeof(uint64_t), kMostBlocks = 4096;
  uint64_t lanes[kLanes] = {};
  size_t blocks = count / kBlock, hashed = std::min(blocks, kMostBlocks);
  for (size_t k = 0; k < hashed; ++k) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes + blocks * k / hashed * kBlock, kBlock);
    for (size_t i = 0; i < kLanes; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15u;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  uint64_t hash = hash_bytes(lanes, sizeof lanes, count);
  return hash_bytes(bytes + blocks * kBlock, count % kBlock, hash);
}

uint64_t hash_of(const Scalar& number) {
  const double parts[] = {number.real, number.imag};
  return hash_bytes(parts, sizeof parts, static_cast<uint64_t>(number.integer));
}

/// With what `from` brings. The line is that of what the host gave first.
void join(Origin& to, const Origin& from) {
  to.ops = combine(to.ops, from.ops), to.values = combine(to.values, from.values);
  if (!to.loc) to.loc = from.loc;
}

bool is_along(const Mesh& mesh, const GraphOp& collective) {
  const auto& group = *static_cast<const ops::GroupAttrs*>(collective.attr_data());  // the first
  return mesh.find(group.mesh_axis) >= 0;
}

/// Collectives of an op and of its bodies.
void for_each_collective(const GraphOp& op, FunctionRef<void(const GraphOp&)> see) {
  if (op.op == &scalar_leaf) return;
  if (ops::needs_workers(*op.op)) see(op);
  for (GraphRef body : bodies_of(op))
    for (const GraphOp& inner : body->ops) for_each_collective(inner, see);
}

uint64_t hash_of(const Graph& graph, const GraphOp& op, const Mesh& mesh) {
  bool is_known = true;
  for_each_collective(op, [&](const GraphOp& one) { is_known &= is_along(mesh, one); });
  if (!is_known) return 0;
  uint64_t hash = hash_text(op.op->name);
  if (op.attrs) hash = combine(hash, op.attrs->hash);
  for (TypeRef type : graph.out_types(op)) hash = combine(hash, type->hash);
  return hash | 1;
}

}  // namespace

Origin origin_of(const char* bytes, size_t count) {
  return {.values = hash_of_samples(bytes, count)};
}

GraphOrigins::GraphOrigins(Graph& graph, const Mesh& mesh, int runtime_scalars)
    : runtime_(static_cast<size_t>(runtime_scalars)) {
  std::vector<int> number(graph.types.size(), -1);  // by value
  for (GraphOp& op : graph.ops) {
    op.loc = op.loc.marked(ops_.size());
    ops_.push_back(hash_of(graph, op, mesh));
    for (Val v : graph.in(op))
      if (int known = number[static_cast<size_t>(v)]; known >= 0)
        readers_[static_cast<size_t>(known)] = op.loc;
    if (op.op != &scalar_leaf) continue;
    number[static_cast<size_t>(op.out)] = static_cast<int>(readers_.size());
    readers_.emplace_back();
  }
}

std::vector<Origin> GraphOrigins::of_numbers(const Graph& graph, const Scalar* scalars) const {
  std::vector<Origin> made;
  for (const GraphOp& op : graph.ops) {
    if (op.op != &scalar_leaf) continue;
    size_t number = made.size();
    const Scalar& value = number < runtime_ ? scalars[number] : op.scalar;
    made.push_back({.values = hash_of(value), .loc = readers_[number].bits});
  }
  return made;
}

std::vector<Origin> GraphOrigins::of_run(const Graph& graph, std::span<const Origin> inputs,
                                         const Scalar* scalars) const {
  std::vector<Origin> numbers = of_numbers(graph, scalars);
  std::vector<Origin> made(graph.types.size());
  std::ranges::copy(inputs, made.begin());
  auto next = numbers.begin();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp& op = graph.ops[i];
    Origin own;
    if (op.op == &scalar_leaf) {
      own.values = next++->values;
    } else if (ops_[i]) {
      own.ops = own.values = ops_[i];
      for (Val v : graph.in(op)) join(own, made[static_cast<size_t>(v)]);
    }
    for (int k = 0; k < op.outs; ++k) {
      Origin& of = made[static_cast<size_t>(op.out + k)] = own;
      if (k) join(of, {.ops = static_cast<uint64_t>(k), .values = static_cast<uint64_t>(k)});
    }
  }
  return made;
}

std::vector<Meeting> meetings_in(const Graph& local, const Graph& graph, const Mesh& mesh) {
  std::map<uint64_t, std::set<uint64_t>> marks;  // by place of the collective
  for (const GraphOp& op : local.ops)
    for_each_collective(op, [&](const GraphOp& collective) {
      if (is_along(mesh, collective)) marks[collective.loc.bits].insert(op.loc.mark());
    });
  std::vector<Meeting> made;
  for (const auto& [loc, its] : marks) {
    if (its.size() > 1 || its.contains(0)) continue;
    Meeting& own = made.emplace_back(Meeting{loc, {}});
    for (size_t i = *its.begin() - 1; i < graph.ops.size(); i += Loc::kMarks)
      if (graph.ops[i].outs) own.values.push_back(graph.ops[i].out);
  }
  return made;
}

std::vector<workers::CallOrigin> origins_of(std::span<const Meeting> meetings,
                                            std::span<const Origin> values) {
  std::vector<workers::CallOrigin> made;
  for (const Meeting& one : meetings) {
    made.push_back({one.loc, {}});
    for (Val v : one.values) join(made.back().origin, values[static_cast<size_t>(v)]);
  }
  return made;
}

}  // namespace tn::mesh
