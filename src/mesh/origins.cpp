#include "mesh/origins.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/function_ref.h"
#include "base/hash.h"
#include "ir/body.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"

namespace tn::mesh {
namespace {

constexpr uint64_t kConstant = 2;  // the number of a graph: in other traces it may be an argument

/// Of all bytes, up to 256 KiB; of more, so many blocks at equal distances. Eight chains for speed.
uint64_t hash_of_samples(const char* bytes, size_t count, size_t samples) {
  constexpr size_t kLanes = 8, kBlock = kLanes * sizeof(uint64_t), kMostBlocks = 4096;
  uint64_t lanes[kLanes] = {};
  size_t blocks = count / kBlock, hashed = blocks > kMostBlocks ? samples : blocks;
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

Origin of_ops(uint64_t hash) {
  return {.ops = hash, .values = hash, .traced_ops = hash, .traced_values = hash};
}

Origin of_values(uint64_t hash) { return {.values = hash, .traced_values = hash}; }

/// With what `from` brings. The line is that of what the host gave first.
void join(Origin& to, const Origin& from) {
  to.ops = combine(to.ops, from.ops), to.values = combine(to.values, from.values);
  to.traced_ops = combine(to.traced_ops, from.traced_ops);
  to.traced_values = combine(to.traced_values, from.traced_values);
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

Origin origin_of(const char* bytes, size_t count, size_t samples) {
  return of_values(hash_of_samples(bytes, count, samples));
}

GraphOrigins::GraphOrigins(const Graph& graph, const Mesh& mesh, const CompileOptions& options)
    : runtime_(static_cast<size_t>(options.runtime_scalars)), is_function_(options.is_function) {
  std::vector<int> number(graph.types.size(), -1);  // by value
  for (const GraphOp& op : graph.ops) {
    ops_.push_back(hash_of(graph, op, mesh));
    for (Val v : graph.in(op))
      if (int known = number[static_cast<size_t>(v)]; known >= 0)
        readers_[static_cast<size_t>(known)] = op.loc.marked(0);
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
    made.push_back(of_values(hash_of(number < runtime_ ? scalars[number] : op.scalar)));
    made.back().loc = readers_[number].bits;
  }
  return made;
}

std::vector<Origin> GraphOrigins::of_run(const Graph& graph, std::span<const Origin> inputs,
                                         std::span<const Origin> numbers) const {
  std::vector<Origin> made(graph.types.size());
  std::ranges::copy(inputs, made.begin());
  auto next = numbers.begin();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp& op = graph.ops[i];
    Origin own;
    if (op.op == &scalar_leaf) {
      own = *next++, own.loc = 0;
      own.traced_ops = kConstant;
    } else if (op.op == &ops::copy) {
      own = made[static_cast<size_t>(graph.in(op)[0])];
    } else if (ops_[i]) {
      own = of_ops(ops_[i]);
      for (Val v : graph.in(op)) join(own, made[static_cast<size_t>(v)]);
    }
    for (int k = 0; k < op.outs; ++k) {
      made[static_cast<size_t>(op.out + k)] = own;
      if (k) join(made[static_cast<size_t>(op.out + k)], of_ops(static_cast<uint64_t>(k)));
    }
  }
  if (is_function_) take_arguments(graph, inputs, made);
  return made;
}

/// Other traces of the function have other ops and other numbers. What they have in common is its
/// name and the tensors that it gets.
void GraphOrigins::take_arguments(const Graph& graph, std::span<const Origin> inputs,
                                  std::vector<Origin>& values) const {
  Origin all = of_ops(hash_text(graph.name));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (graph.types[i]->rank() > 0 || inputs[i].ops != Origin().ops) join(all, inputs[i]);
  for (Origin& own : values) own.ops = all.ops, own.values = all.values;
}

Origin GraphOrigins::of_one(Origin value, size_t number) const {
  if (is_function_) value.ops = combine(value.ops, number);
  return value;
}

std::vector<workers::CallOrigin> GraphOrigins::of_calls(std::span<const Meeting> meetings,
                                                        std::span<const Origin> values) const {
  std::vector<workers::CallOrigin> made;
  for (const Meeting& one : meetings)
    made.push_back({one.loc, of_one(values[static_cast<size_t>(one.value)], one.number)});
  return made;
}

std::vector<Meeting> meetings_in(const Graph& local, const Graph& graph, const Mesh& mesh) {
  if (graph.types.size() > Loc::kMarks) return {};
  std::map<uint64_t, Meeting> made;  // by place
  size_t number = 0;
  for (const GraphOp& op : local.ops)
    for_each_collective(op, [&](const GraphOp& collective) {
      if (!is_along(mesh, collective)) return;
      auto value = static_cast<Val>(op.loc.mark()) - 1;
      auto [at, is_new] =
          made.try_emplace(collective.loc.bits, Meeting{collective.loc.bits, value, number++});
      if (!is_new && at->second.value != value) at->second.value = kNoVal;
    });
  std::vector<Meeting> known;
  for (const auto& [loc, meeting] : made)
    if (meeting.value >= 0) known.push_back(meeting);
  return known;
}

}  // namespace tn::mesh
