// What rows and columns share of reductions.
#include "backend/cuda/codegen/gpu_emitter.h"
#include "loop/reduction_tree.h"

namespace tn::cuda {

using loop::Monoid;
using loop::Op;

DType Emitter::part_type(ValueId id, int part) const {
  return part == 0 ? p_.value(p_.value(id).a).type : DType::i64;
}

llvm::Constant* Emitter::identity(ValueId id, int part) const {
  return part == 0 ? ops_.identity(p_.value(id).monoid, part_type(id, 0))
                   : ops_.constant_bits(~uint64_t{0}, DType::i64);
}

/// The accumulators of a sweep: by reduction, by part, by slot.
Emitter::Values Emitter::identities(size_t slots) const {
  Values accs;
  for (ValueId id : p_.sweeps[sweep_])
    for (int part = 0; part < parts(id); ++part) accs.insert(accs.end(), slots, identity(id, part));
  return accs;
}

Emitter::Pair Emitter::joined(ValueId id, Pair a, Pair b) {
  const loop::Value& v = p_.value(id);
  if (!is_indexed(id)) {
    if (a.x == identity(id, 0)) return b;
    return {ops_.combine(v.monoid, part_type(id, 0), a.x, b.x), nullptr};
  }
  codegen::Ops::Best best = ops_.better(v.monoid, part_type(id, 0), {a.x, a.index}, {b.x, b.index});
  return {best.value, best.index};
}

Emitter::Pair Emitter::joined_freely(ValueId id, Pair a, Pair b) {
  Monoid monoid = p_.value(id).monoid;
  bool extreme = monoid == Monoid::max || monoid == Monoid::min;
  if (!extreme || part_type(id, 0) != DType::f32) return joined(id, a, b);
  return {threads_.extreme(monoid == Monoid::max, a.x, b.x), nullptr};
}

/// What an element brings to a reduction: the identity where there is none.
Emitter::Pair Emitter::element(ValueId id, size_t e) {
  Pair found{nullptr, nullptr};
  if (p_.phase == Phase::finish) {
    int at = p_.room;
    for (ValueId other : p_.sweeps[sweep_]) {
      if (other == id) break;
      at += parts(other);
    }
    for (int part = 0; part < parts(id); ++part) {
      DType type = part_type(id, part);
      Type* memory = ops_.memory_type(type);
      Value* place = b_.CreateGEP(memory, buffer(at + part), inner_[e]);
      threads_.touch(place, size_of(type), false);
      (part ? found.index : found.x) = ops_.from_memory(b_.CreateLoad(memory, place), type);
    }
  } else {
    found.x = value(p_.value(id).a, e);
    if (is_indexed(id)) found.index = as(inner_[e], b_.getInt64Ty());
  }
  if (!valid_[e]) return found;
  found.x = b_.CreateSelect(valid_[e], found.x, identity(id, 0));
  if (found.index) found.index = b_.CreateSelect(valid_[e], found.index, identity(id, 1));
  return found;
}

void Emitter::accumulate(ValueId id, size_t e, Value** acc, size_t slots) {
  bool indexed = is_indexed(id);
  Pair now = joined(id, {acc[0], indexed ? acc[slots] : nullptr}, element(id, e));
  acc[0] = now.x;
  if (indexed) acc[slots] = now.index;
}

void Emitter::accumulate_sweep(Values& accs, size_t slots) {
  size_t at = 0;
  for (ValueId id : p_.sweeps[sweep_]) {
    for (size_t e = 0; e < at_.size(); ++e) accumulate(id, e, &accs[at + e % slots], slots);
    at += slots * size_t(parts(id));
  }
}

/// With the thread whose number differs in `mask`; the lower one comes first.
Emitter::Pair Emitter::shuffle_joined(ValueId id, Pair a, int mask, Value* lower) {
  Pair b{threads_.shuffled(a.x, mask), a.index ? threads_.shuffled(a.index, mask) : nullptr};
  Monoid monoid = p_.value(id).monoid;
  bool ordered = (monoid == Monoid::max || monoid == Monoid::min) && is_float(part_type(id, 0));
  if (!ordered) return joined(id, a, b);
  Value* first = b_.CreateSelect(lower, a.x, b.x);
  return joined(id, {first, nullptr}, {b_.CreateSelect(lower, b.x, a.x), nullptr});
}

/// Adds the results of a chunk to the accumulators whose `here` holds, by slot.
void Emitter::add_chunk(Values& outer, const Values& totals, const Values& here) {
  size_t slots = here.size(), at = 0, total = 0;
  size_t results = totals.size() == identities(1).size() ? 1 : slots;
  for (ValueId id : p_.sweeps[sweep_]) {
    size_t two = is_indexed(id) ? slots : 0;
    for (size_t k = 0; k < slots; ++k) {
      size_t from = total + (results == 1 ? 0 : k);
      Value *&x = outer[at + k], *none = nullptr, *&index = two ? outer[at + two + k] : none;
      Pair next = joined(id, {x, index}, {totals[from], two ? totals[from + results] : nullptr});
      x = b_.CreateSelect(here[k], next.x, x);
      if (two) index = b_.CreateSelect(here[k], next.index, index);
    }
    at += slots * size_t(parts(id)), total += results * size_t(parts(id));
  }
}

/// Of `elements` results of each reduction, by part.
void Emitter::set_results(const Values& totals, size_t elements) {
  size_t at = 0;
  for (ValueId id : p_.sweeps[sweep_]) {
    size_t last = at + elements * size_t(parts(id) - 1);
    for (size_t e = 0; e < elements; ++e) {
      if (canonical(p_.value(id).axes, e) != e) continue;
      Value* result = totals[last + e];
      if (bounds(p_.extent).lo < 1) {
        Value* extent = size(p_.extent, b_.getInt64Ty());
        Value* none = ops_.empty(p_.value(id).monoid, part_type(id, 0));
        result = b_.CreateSelect(b_.CreateICmpEQ(extent, b_.getInt64(0)), none, result);
      }
      once(0, static_cast<uint64_t>(id), e, [&] { return result; });
    }
    at += elements * size_t(parts(id));
  }
}

/// Makes what is the same at all points of a sweep before its loop.
void Emitter::hoist(size_t sweep) {
  std::vector<bool> wanted(p_.kernel.values.size(), false);
  auto want = [&](ValueId id) { wanted[size_t(id)] = true; };
  for (ValueId id : p_.sweeps[sweep]) want(p_.value(id).a);
  if (sweep + 1 == p_.sweeps.size())
    for (size_t i = 0; i < p_.kernel.stores.size(); ++i)
      if (p_.stored_inside[i]) loop::for_each_operand(p_.kernel, p_.kernel.stores[i], want);
  for (size_t i = wanted.size(); i-- > 0;) {
    const loop::Value& v = p_.kernel.values[i];
    if (!wanted[i] || v.op == Op::reduce) continue;
    if (v.axes & p_.inner_axes) loop::for_each_operand(p_.kernel, v, want);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const loop::Value& v = p_.kernel.values[i];
    if (!wanted[i] || v.axes & p_.inner_axes || v.op == Op::reduce) continue;
    for (size_t e = 0; e < at_.size(); ++e)
      if (canonical(v.axes, e) == e) value(ValueId(i), e);
  }
}

llvm::Value* Emitter::shared_place(int64_t offset, Value* index, DType type) {
  Value* bytes = b_.CreateMul(index, number(index->getType(), size_of(type)));
  return threads_.shared(
      as(b_.CreateAdd(bytes, number(index->getType(), offset)), b_.getInt64Ty()));
}

llvm::Value* Emitter::shared_load(int64_t offset, Value* index, DType type) {
  Value* place = shared_place(offset, index, type);
  return ops_.from_memory(b_.CreateLoad(ops_.memory_type(type), place), type);
}

void Emitter::shared_store(int64_t offset, Value* index, DType type, Value* x) {
  b_.CreateStore(ops_.to_memory(x, type), shared_place(offset, index, type));
}

}  // namespace tn::cuda
