#include "ir/body.h"

#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/hash.h"
#include "ir/sizes.h"

namespace tn {

namespace {

uint64_t hash_of(const Graph& graph) {
  uint64_t hash = static_cast<uint64_t>(graph.inputs());
  for (TypeRef type : graph.types) hash = combine(hash, type->hash);
  for (const GraphOp& op : graph.ops) {
    hash = combine(hash, hash_text(op.op->name));
    if (op.attrs) hash = combine(hash, op.attrs->hash);
    if (op.op == &scalar_leaf) hash = combine(hash, hash_bytes(&op.scalar.real, sizeof(double)));
  }
  hash = hash_bytes(graph.operands.data(), graph.operands.size() * sizeof(Val), hash);
  return hash_bytes(graph.outputs.data(), graph.outputs.size() * sizeof(Val), hash);
}

bool same_op(const GraphOp& a, const GraphOp& b) {
  ScalarAttrs x{a.scalar}, y{b.scalar};
  return a.op == b.op && a.attrs == b.attrs && a.ins == b.ins && a.outs == b.outs &&
         (a.op != &scalar_leaf || equal(*scalar_leaf.attrs, &x, &y));
}

struct BodyHash {
  size_t operator()(const Body* b) const { return b->hash; }
};
struct BodySame {
  bool operator()(const Body* a, const Body* b) const {
    const Graph &g = a->graph, &h = b->graph;
    return a->hash == b->hash && g.inputs() == h.inputs() && g.types == h.types &&
           g.operands == h.operands && g.outputs == h.outputs &&
           std::equal(g.ops.begin(), g.ops.end(), h.ops.begin(), h.ops.end(), same_op);
  }
};

struct Bodies {
  std::mutex mutex;
  std::unordered_set<const Body*, BodyHash, BodySame> table;
};
Bodies& bodies() {
  static auto& only = *[] {
    auto* made = new Bodies;
    guarded_at_fork(made->mutex, 8);
    return made;
  }();
  return only;
}

struct DeleteBody {
  void operator()(const Body* body) const {
    body->~Body();
    auto* memory = reinterpret_cast<const char*>(body) - kCountBytes;
    ::operator delete(const_cast<char*>(memory));
  }
};
using NewBody = std::unique_ptr<const Body, DeleteBody>;

NewBody new_body(Graph graph) {
  uint64_t hash = hash_of(graph);
  Held held;
  held.add(graph);
  auto* memory = static_cast<char*>(::operator new(kCountBytes + sizeof(Body)));
  new (memory) std::atomic<int32_t>(0);
  return NewBody(new (memory + kCountBytes) Body{std::move(graph), hash, std::move(held)});
}

/// What a table of derived graphs has for a key, given to this thread; nothing where it has none.
std::optional<Derived> find_derived(const Body& from, const std::vector<uint64_t>& key) {
  auto found = from.derived.find(key);
  if (found == from.derived.end()) return {};
  Derived made = found->second.made;
  if (!made.graph.body) made.graph = GraphRef(&from);
  hand_out(made.graph.body);
  return made;
}

}  // namespace

void drop_counted(const Body* body) noexcept {
  if (drop_last(body, bodies().mutex, bodies().table)) DeleteBody()(body);
}

GraphRef intern(Graph graph) {
  graph.name = "body";
  for (size_t i = 0; i < graph.input_names.size(); ++i) graph.input_names[i] = format("x{}", i);
  NewBody made = new_body(std::move(graph));
  std::lock_guard lock(bodies().mutex);
  auto [at, added] = bodies().table.insert(made.get());
  if (added) {
    if (is_among_first(bodies().table.size() - 1)) make_lasting(made.get());
    (void)made.release();
  }
  hand_out(*at);
  return GraphRef(*at);
}

size_t count_bodies() {
  std::lock_guard lock(bodies().mutex);
  return bodies().table.size();
}

std::vector<GraphRef> bodies_of(const Attrs* attrs) {
  std::vector<GraphRef> bodies;
  if (!attrs) return bodies;
  for (const Field& f : list_fields(*attrs->kind, const_cast<char*>(attrs->data)).items)
    if (f.kind == FieldKind::graph) bodies.push_back(*static_cast<GraphRef*>(f.at));
  return bodies;
}

const Attrs* with_bodies(const Attrs* attrs, FunctionRef<GraphRef(GraphRef)> f) {
  if (!attrs) return nullptr;
  AttrBuffer copy(*attrs->kind, attrs->data);
  bool any = false;
  for (const Field& field : list_fields(*attrs->kind, copy.data).items) {
    if (field.kind != FieldKind::graph) continue;
    auto& body = *static_cast<GraphRef*>(field.at);
    body = f(body);
    any = true;
  }
  return any ? intern(*attrs->kind, copy.data) : attrs;
}

Tensors params_for(const Graph& graph) {
  Tensors params;
  for (Val v = 0; v < graph.inputs(); ++v)
    params.push_back(make_param(graph.types[static_cast<size_t>(v)]));
  return params;
}

Tensors Derived::on(Tensors in) const {
  in.insert(in.end(), leaves.begin(), leaves.end());
  return replay(*graph, in);
}

Mask mask_of(const Tensors& list) {
  Mask mask;
  for (const Tensor& t : list) mask.push_back(t.defined());
  return mask;
}

Tensors chosen(const Tensors& list, const Mask& mask) {
  Tensors dense;
  for (size_t i = 0; i < mask.size(); ++i)
    if (mask[i]) dense.push_back(list[i]);
  return dense;
}

Tensors spread(const Tensors& dense, const Mask& mask) {
  Tensors all(mask.size());
  size_t next = 0;
  for (size_t i = 0; i < mask.size(); ++i)
    if (mask[i]) all[i] = dense[next++];
  return all;
}

void add_mask(std::vector<uint64_t>& key, const Mask& mask) {
  key.push_back(mask.size());
  for (size_t i = 0; i < mask.size(); ++i) {
    if (i % 64 == 0) key.push_back(0);
    key.back() |= uint64_t{mask[i]} << i % 64;
  }
}

Derived derived(GraphRef from, const std::vector<uint64_t>& key, FunctionRef<Derived()> make) {
  static auto& mutex = guarded_at_fork(*new std::mutex, 9);
  {
    std::lock_guard lock(mutex);
    if (auto known = find_derived(*from.body, key)) return *known;
  }
  uint64_t asked_before = rules_asked_for;
  std::vector<SizeGuard> guards;
  Derived made = [&] {  // may derive others; two threads may make the same
    SizeHints* around = SizeHints::current();
    if (!around) return make();
    SizeHints own(around->values);
    Derived here = make();
    guards = std::move(own.guards);
    return here;
  }();
  ask_again(guards);
  if (!made.leaves.empty() || rules_asked_for != asked_before || !guards.empty()) return made;
  Body::KeptDerived kept{made, {}};
  if (made.graph == from)
    kept.made.graph = {};  // it does not hold itself
  else
    kept.hold = Hold<Body>(made.graph.body);
  constexpr size_t kMost = 64;  // of one body: sizes of batches are keys too
  Body::DerivedTable old;       // let go of after the lock
  std::lock_guard lock(mutex);
  Body::DerivedTable& table = from.body->derived;
  if (table.size() >= kMost) old.swap(table);
  table.emplace(key, std::move(kept));
  return *find_derived(*from.body, key);
}

}  // namespace tn
