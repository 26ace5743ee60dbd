#include "ir/interned.h"

#include "ir/graph.h"

namespace tn {

static std::atomic<size_t> lasting_count = 4096;

bool is_among_first(size_t count) {
  bool lasts = count < lasting_count.load(std::memory_order_relaxed);
  if (!lasts) has_counted.store(true, std::memory_order_relaxed);
  return lasts;
}

size_t set_lasting_count(size_t count) {
  has_counted = true;
  return lasting_count.exchange(count);
}

void make_lasting(const void* interned) noexcept {
  if (!interned) return;
  std::atomic<int32_t>& holders = holders_of(interned);
  int32_t count = holders.load(std::memory_order_relaxed);
  while (count < kLasting && !holders.compare_exchange_weak(count, count + kLasting)) {
  }
}

void make_lasting(const Graph& graph) {
  for (TypeRef type : graph.types) make_lasting(type);
  for (const GraphOp& op : graph.ops) make_lasting(op.attrs);
}

void Held::drop_all() noexcept {
  for (TypeRef type : types_) drop(type);
  for (const Attrs* attrs : attrs_) drop(attrs);
  for (const Body* body : bodies_) drop(body);
}

void Held::add(const Graph& graph) {
  for (TypeRef type : graph.types) add(type);
  for (const GraphOp& op : graph.ops) add(op.attrs);
}

void Held::make_lasting() {
  for (TypeRef type : types_) tn::make_lasting(type);
  for (const Attrs* attrs : attrs_) tn::make_lasting(attrs);
  for (const Body* body : bodies_) tn::make_lasting(body);
  types_.clear(), attrs_.clear(), bodies_.clear();
}

}  // namespace tn
