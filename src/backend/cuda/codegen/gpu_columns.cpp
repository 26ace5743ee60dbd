// Columns: a thread owns some places of one par axis and one lane of the reduction tree. Lanes are
// combined through shared memory.
#include <algorithm>

#include "backend/cuda/codegen/gpu_emitter.h"
#include "loop/reduction_tree.h"

namespace tn::cuda {

using loop::kChunk;
using loop::kLanes;

void Emitter::columns() {
  int across = p_.threads / p_.lanes;
  Dim extent = p_.extents[size_t(p_.vector_axis)];
  int64_t wide = int64_t{across} * p_.vector;
  Type* type = index_type(p_.points + wide);
  Value* thread = threads_.thread();
  lane_ = b_.CreateUDiv(thread, b_.getInt32(uint32_t(across)));
  Value* column = as(b_.CreateURem(thread, b_.getInt32(uint32_t(across))), type);
  std::vector<int> others;
  for (int axis : p_.par)
    if (axis != p_.vector_axis) others.push_back(axis);
  par_at_.assign(p_.extents.size(), nullptr);
  Value *block = as(threads_.block(), type), *blocks = size(max(ceil_div(extent, wide), 1), type);
  place(b_.CreateUDiv(block, blocks), others, par_at_);
  Value* first = b_.CreateMul(b_.CreateURem(block, blocks), number(type, wide));
  Value* base = b_.CreateAdd(first, b_.CreateMul(column, number(type, p_.vector)));
  if (!divides(wide, extent)) {
    active_ = b_.CreateICmpSLT(base, size(extent, type));
    base = b_.CreateSelect(active_, base, number(type, 0));
  }
  par_at_[size_t(p_.vector_axis)] = base;
  group_axes_ = p_.inner_axes;
  lane_axes_ = loop::axis_bit(size_t(p_.vector_axis));
  for (size_t k = 0; k < p_.sweeps.size(); ++k) column_sweep(k);
  set_columns(nullptr, nullptr);
  Value* first_lane = b_.CreateICmpEQ(lane_, b_.getInt32(0));
  emit_last_stores(p_.lanes > 1 ? p_.threads : 1, both(active_, first_lane));
}

/// The places of this thread, at its points from `base` on; null: at none.
void Emitter::set_columns(Value* base, Value* end) {
  size_t vector = size_t(p_.vector);
  set_elements(base ? vector * size_t(p_.unroll) : vector);
  for (size_t e = 0; e < at_.size(); ++e) {
    if (e % vector == 0) {
      at_[e] = par_at_;
      if (!base) continue;
      Type* type = base->getType();
      Value* i = b_.CreateAdd(b_.CreateAdd(base, as(lane_, type)),
                              number(type, int64_t(e / vector) * p_.lanes));
      valid_[e] = b_.CreateICmpSLT(i, end);
      inner_[e] = b_.CreateSelect(valid_[e], i, number(type, 0));
      place(inner_[e], p_.inner, at_[e]);
    } else {
      size_t first = e - e % vector;
      at_[e] = at_[first], valid_[e] = valid_[first], inner_[e] = inner_[first];
      Value*& along = at_[e][size_t(p_.vector_axis)];
      along = b_.CreateAdd(along, number(along->getType(), int64_t(e % vector)));
    }
  }
}

void Emitter::column_sweep(size_t number_of_sweep) {
  sweep_ = number_of_sweep;
  Type* type = index_type(p_.extent);
  size_t slots = size_t(p_.vector);
  Value* extent = size(p_.extent, type);
  bool reduces = !p_.sweeps[sweep_].empty();
  if (p_.extent.is(0)) {
    set_columns(nullptr, nullptr);
    return set_results(identities(slots), slots);
  }
  set_columns(nullptr, nullptr);
  hoist(sweep_);
  if (!reduces || bounds(p_.extent).hi <= kChunk) {
    Values totals = column_range(number(type, 0), extent);
    set_columns(nullptr, nullptr);
    return set_results(totals, slots);
  }
  Values outer = loop(
      number(type, 0), extent, kChunk, identities(slots), [&](Value* begin, const Values& now) {
        Value* end = codegen::smaller(b_, b_.CreateAdd(begin, number(type, kChunk)), extent);
        Values totals = column_range(begin, end), next = now;
        Value* chunk = b_.CreateUDiv(begin, number(type, kChunk));
        Value* lane = b_.CreateURem(chunk, number(type, kLanes));
        add_chunk(next, totals, Values(slots, b_.CreateICmpEQ(lane, as(lane_, type))));
        return next;
      });
  Values totals = fold_columns(outer);
  set_columns(nullptr, nullptr);
  set_results(totals, slots);
}

/// Folds a range, which lies in one chunk: by reduction, part and column.
Emitter::Values Emitter::column_range(Value* begin, Value* end) {
  size_t slots = size_t(p_.vector);
  bool stores = sweep_ + 1 == p_.sweeps.size();
  int64_t step = int64_t{p_.lanes} * p_.unroll;
  Values accs = loop(begin, end, step, identities(slots), [&](Value* i, const Values& now) {
    set_columns(i, end);
    Values next = now;
    accumulate_sweep(next, slots);
    if (stores) emit_stores(true, active_);
    return next;
  });
  return fold_columns(accs);
}

/// Every thread gets the results of its columns.
Emitter::Values Emitter::fold_columns(const Values& accs) {
  if (accs.empty() || p_.lanes == 1) return accs;
  int across = p_.threads / p_.lanes;
  Type* i32 = b_.getInt32Ty();
  size_t slots = size_t(p_.vector), at = 0;
  Values results;
  int64_t indices_at = int64_t{p_.threads} * p_.vector * 8;
  Value* own = b_.CreateMul(threads_.thread(), number(i32, p_.vector));
  for (ValueId id : p_.sweeps[sweep_]) {
    bool indexed = is_indexed(id);
    DType type = part_type(id, 0);
    auto place_of = [&](Value* from, size_t k) {
      return b_.CreateAdd(from, number(i32, int64_t(k)));
    };
    auto read = [&](Value* from, size_t k) {
      return Pair{shared_load(0, place_of(from, k), type),
                  indexed ? shared_load(indices_at, place_of(from, k), DType::i64) : nullptr};
    };
    auto write = [&](size_t k, Pair x) {
      shared_store(0, place_of(own, k), type, x.x);
      if (indexed) shared_store(indices_at, place_of(own, k), DType::i64, x.index);
    };
    for (size_t k = 0; k < slots; ++k)
      write(k, {accs[at + k], indexed ? accs[at + slots + k] : nullptr});
    threads_.barrier();
    for (int half = p_.lanes / 2; half >= 1; half /= 2) {
      when(b_.CreateICmpULT(lane_, number(i32, half)), [&] {
        Value* other = b_.CreateAdd(own, number(i32, int64_t{half} * across * p_.vector));
        for (size_t k = 0; k < slots; ++k) write(k, joined(id, read(own, k), read(other, k)));
      });
      threads_.barrier();
    }
    Value* first =
        b_.CreateMul(b_.CreateURem(threads_.thread(), number(i32, across)), number(i32, p_.vector));
    Values indices;
    for (size_t k = 0; k < slots; ++k) {
      Pair total = read(first, k);
      results.push_back(total.x);
      if (indexed) indices.push_back(total.index);
    }
    results.insert(results.end(), indices.begin(), indices.end());
    threads_.barrier();
    at += slots * size_t(parts(id));
  }
  return results;
}

}  // namespace tn::cuda
