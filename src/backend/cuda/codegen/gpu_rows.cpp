// Rows: a group of threads sweeps along the inner axes of a place.
//
// In a group of up to 32 threads each owns some of the 64 lanes of the reduction tree and folds
// them in order; lanes are then combined in the thread and by shuffles. In larger groups, which are
// whole blocks, elements pass through shared memory, where 64 threads fold a lane each.
#include <algorithm>

#include "backend/cuda/codegen/gpu_emitter.h"
#include "loop/reduction_tree.h"

namespace tn::cuda {

using loop::kChunk;
using loop::kLanes;

// Loads of a lane that are under way together.
static constexpr int64_t kAhead = 8;

size_t Emitter::row_elements() const {
  int64_t slots = p_.group > 32 ? p_.vector : kLanes / p_.group;
  if (!p_.unrolled) return size_t(slots) * size_t(p_.unroll);
  int64_t extent = p_.extent.value();
  if (p_.group == 1) return size_t(extent);
  int64_t step = p_.group * slots;
  return size_t((extent + step - 1) / step * slots);
}

void Emitter::rows() {
  int rows = p_.threads / p_.group;
  Dim units = p_.points;
  if (p_.phase == Phase::chunks) units *= ceil_div(p_.extent, kChunk);
  Type* type = index_type(units + rows);
  Value *thread = threads_.thread(), *unit = as(threads_.block(), type);
  lane_ = thread;
  if (rows > 1) {
    Value* row = b_.CreateUDiv(thread, b_.getInt32(uint32_t(p_.group)));
    lane_ = b_.CreateURem(thread, b_.getInt32(uint32_t(p_.group)));
    unit = b_.CreateAdd(b_.CreateMul(unit, number(type, rows)), as(row, type));
    if (!divides(rows, units)) {
      Value* last = b_.CreateSub(size(units, type), number(type, 1));
      active_ = b_.CreateICmpSLE(unit, last);
      unit = b_.CreateSelect(active_, unit, last);
    }
  }
  row_ = unit;
  if (p_.phase == Phase::chunks)
    row_ = b_.CreateUDiv(unit, size(max(ceil_div(p_.extent, kChunk), 1), type));
  par_at_.assign(p_.extents.size(), nullptr);
  place(row_, p_.par, par_at_);
  group_axes_ = p_.inner_axes;
  lane_axes_ = p_.group == 1 || p_.spread || p_.vector == 1
                   ? p_.inner_axes
                   : loop::axis_bit(size_t(p_.vector_axis));
  Value* first = b_.CreateICmpEQ(lane_, b_.getInt32(0));
  Value* guard = both(active_, p_.group > 1 ? first : nullptr);
  if (p_.phase == Phase::chunks) {
    Type* along = index_type(p_.extent);
    Value* chunks = size(max(ceil_div(p_.extent, kChunk), 1), type);
    Value* begin = b_.CreateMul(as(b_.CreateURem(unit, chunks), along), number(along, kChunk));
    Value* end =
        codegen::smaller(b_, b_.CreateAdd(begin, number(along, kChunk)), size(p_.extent, along));
    return store_chunk(row_range(begin, end), unit, guard);
  }
  for (size_t k = 0; k < p_.sweeps.size(); ++k) row_sweep(k);
  set_elements(1);
  at_[0] = par_at_;
  emit_last_stores(p_.group, guard);
}

void Emitter::store_chunk(const Values& totals, Value* unit, Value* guard) {
  when(guard, [&] {
    for (size_t k = 0; k < totals.size(); ++k) {
      int to = p_.room + static_cast<int>(k);
      DType type = p_.kernel.buffers[size_t(to)].type;
      Type* memory = ops_.memory_type(type);
      Value* place = b_.CreateGEP(memory, buffer(to), as(unit, b_.getInt64Ty()));
      threads_.touch(place, size_of(type), true);
      b_.CreateStore(ops_.to_memory(totals[k], type), place);
    }
  });
}

void Emitter::row_sweep(size_t number_of_sweep) {
  sweep_ = number_of_sweep;
  Type* type = index_type(p_.extent);
  bool reduces = !p_.sweeps[sweep_].empty();
  bool stores = sweep_ + 1 == p_.sweeps.size();
  if (p_.extent.is(0)) return set_results(identities(1), 1);
  Values totals;
  if (p_.phase == Phase::finish)
    totals = row_range(number(type, 0), size(ceil_div(p_.extent, kChunk), type));
  else if (reduces && bounds(p_.extent).hi > kChunk)
    totals = row_chunks();
  else
    totals = row_range(number(type, 0), size(p_.extent, type));
  if (reduces) set_results(totals, 1);
  if (p_.unrolled && stores) emit_stores(true, active_);
}

/// Loads what the first sweep needs: all of it is under way before anything waits for it.
void Emitter::load_row() {
  std::vector<bool> wanted(p_.kernel.values.size(), false);
  for (ValueId id : p_.sweeps[0]) wanted[size_t(p_.value(id).a)] = true;
  for (size_t i = wanted.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    loop::for_each_operand(p_.kernel, p_.kernel.values[i],
                           [&](ValueId id) { wanted[size_t(id)] = true; });
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const loop::Value& v = p_.kernel.values[i];
    if (!wanted[i] || v.op != loop::Op::load || p_.kernel.polys.has_values(v.index)) continue;
    for (size_t e = 0; e < at_.size(); ++e) value(ValueId(i), e);
  }
}

/// Folds a range, which lies in one chunk; by reduction and part.
Emitter::Values Emitter::row_range(Value* begin, Value* end) {
  size_t slots = p_.group > 32 ? 1 : size_t(kLanes / p_.group);
  bool stores = sweep_ + 1 == p_.sweeps.size() && p_.phase == Phase::whole;
  if (p_.unrolled) {
    if (sweep_ == 0) set_row(begin, end);
    if (p_.group > 32) {
      if (sweep_ == 0) load_row();
      return fold_block();
    }
    slots = p_.group == 1 ? std::min(at_.size(), size_t(kLanes)) : slots;
    Values accs = identities(slots);
    accumulate_sweep(accs, slots);
    return fold_group(accs);
  }
  set_elements(1);
  at_[0] = par_at_;
  hoist(sweep_);
  int64_t step = kLanes * p_.unroll;
  Values accs = loop(begin, end, step, identities(slots), [&](Value* i, const Values& now) {
    set_row(i, end);
    Values next = now;
    accumulate_sweep(next, slots);
    if (stores) emit_stores(true, active_);
    return next;
  });
  return fold_group(accs);
}

/// A row of any length: chunk by chunk, whose results have lanes of their own.
Emitter::Values Emitter::row_chunks() {
  Type* type = index_type(p_.extent);
  size_t slots = size_t(kLanes / p_.group);
  Value* extent = size(p_.extent, type);
  set_elements(1);
  at_[0] = par_at_;
  hoist(sweep_);
  Value* wide_lane = as(lane_, type);
  Values outer = loop(
      number(type, 0), extent, kChunk, identities(slots), [&](Value* begin, const Values& now) {
        Value* end = codegen::smaller(b_, b_.CreateAdd(begin, number(type, kChunk)), extent);
        Values totals = row_range(begin, end), next = now, here;
        Value* chunk = b_.CreateUDiv(begin, number(type, kChunk));
        Value* lane = b_.CreateURem(chunk, number(type, kLanes));
        for (size_t k = 0; k < slots; ++k) {
          int64_t vector = p_.vector, group = int64_t(k) / vector * p_.group * vector;
          Value* own = b_.CreateAdd(b_.CreateMul(wide_lane, number(type, vector)),
                                    number(type, group + int64_t(k) % vector));
          here.push_back(b_.CreateICmpEQ(lane, own));
        }
        add_chunk(next, totals, here);
        return next;
      });
  return fold_group(outer);
}

/// The elements of this thread from `base` on; those at `end` and beyond are not valid, and stand
/// at the beginning of the row.
void Emitter::set_row(Value* base, Value* end) {
  Type* type = base->getType();
  size_t vector = size_t(p_.vector);
  set_elements(row_elements());
  bool whole_steps = p_.phase == Phase::whole && divides(kLanes * p_.unroll, p_.extent);
  auto is_inside = [&](int64_t apart) {
    return p_.unrolled ? apart + int64_t{p_.group} * p_.vector <= p_.extent.value() : whole_steps;
  };
  Value* own = b_.CreateMul(as(lane_, type), number(type, p_.vector));
  for (size_t e = 0; e < at_.size(); ++e) {
    int64_t apart = p_.group == 1 ? int64_t(e) : int64_t(e / vector) * p_.group * p_.vector;
    if (e % vector == 0) {
      Value* i = b_.CreateAdd(base, number(type, apart));
      if (p_.group > 1) i = b_.CreateAdd(i, own);
      Value* valid = is_inside(apart) ? nullptr : b_.CreateICmpSLT(i, end);
      if (valid) i = b_.CreateSelect(valid, i, number(type, 0));
      inner_[e] = i, valid_[e] = valid;
      at_[e] = par_at_;
      if (p_.phase != Phase::finish) place(i, p_.inner, at_[e]);
    } else {
      size_t first = e - e % vector;
      Value* v = number(type, int64_t(e % vector));
      inner_[e] = b_.CreateAdd(inner_[first], v), valid_[e] = valid_[first];
      at_[e] = at_[first];
      Value*& along = at_[e][size_t(p_.vector_axis)];
      along = b_.CreateAdd(along, v);
    }
  }
  if (p_.phase != Phase::finish) return;
  Value* chunks = size(ceil_div(p_.extent, kChunk), b_.getInt64Ty());
  Value* row = b_.CreateMul(as(row_, b_.getInt64Ty()), chunks);
  for (Value*& i : inner_) i = b_.CreateAdd(row, as(i, b_.getInt64Ty()));
}

/// By reduction, by part: from the slots of the threads of a group.
Emitter::Values Emitter::fold_group(const Values& accs) {
  Values totals;
  size_t at = 0, all = 0;
  for (ValueId id : p_.sweeps[sweep_]) all += size_t(parts(id));
  size_t slots = all ? accs.size() / all : 0;
  for (ValueId id : p_.sweeps[sweep_]) {
    auto from = accs.begin() + static_cast<ptrdiff_t>(at);
    auto count = static_cast<ptrdiff_t>(slots);
    Values own(from, from + count), indices;
    if (is_indexed(id)) indices.assign(from + count, from + 2 * count);
    Values result = fold_group(id, std::move(own), std::move(indices));
    totals.insert(totals.end(), result.begin(), result.end());
    at += slots * size_t(parts(id));
  }
  return totals;
}

Emitter::Values Emitter::fold_group(ValueId id, Values slots, Values indices) {
  bool indexed = !indices.empty();
  auto pair = [&](size_t k) { return Pair{slots[k], indexed ? indices[k] : nullptr}; };
  auto set = [&](size_t k, Pair x) {
    slots[k] = x.x;
    if (indexed) indices[k] = x.index;
  };
  int64_t span = int64_t{p_.group} * p_.vector;  // lanes that lie in one vector of each thread
  for (int64_t half = kLanes / 2; half >= 1; half /= 2) {
    if (half >= p_.vector && half < span) {
      int mask = static_cast<int>(half / p_.vector);
      Value* lower =
          b_.CreateICmpEQ(b_.CreateAnd(lane_, b_.getInt32(uint32_t(mask))), b_.getInt32(0));
      for (size_t k = 0; k < std::min(slots.size(), size_t(p_.vector)); ++k)
        set(k, shuffle_joined(id, pair(k), mask, lower));
      continue;
    }
    auto apart = size_t(half >= span ? half / p_.group : half);
    for (size_t k = 0; k < apart && k + apart < slots.size(); ++k)
      set(k, joined(id, pair(k), pair(k + apart)));
  }
  Values result{slots[0]};
  if (indexed) result.push_back(indices[0]);
  return result;
}

Emitter::Values Emitter::fold_block() {
  Values totals;
  for (ValueId id : p_.sweeps[sweep_]) {
    Values result = fold_block(id);
    totals.insert(totals.end(), result.begin(), result.end());
  }
  return totals;
}

// Floats are folded in the order of the tree. The largest of them is the same in any order, but for
// the sign of a zero: it is looked for in the order of the tree only then.
Emitter::Values Emitter::fold_block(ValueId id) {
  loop::Monoid monoid = p_.value(id).monoid;
  bool real = is_float(part_type(id, 0));
  if (!real || is_indexed(id)) return fold_block_freely(id);
  if (monoid != loop::Monoid::max && monoid != loop::Monoid::min) {
    Values folded = fold_block_in_order(id);
    warps_are_read_ = false;  // all have met since
    return folded;
  }
  Values total = fold_block_freely(id);
  Value* zero = b_.CreateFCmpOEQ(total[0], llvm::Constant::getNullValue(total[0]->getType()));
  Made outside = made_;
  Values result = codegen::when(b_, zero, total, [&] { return fold_block_in_order(id); });
  made_ = std::move(outside);
  return result;
}

/// In any order: in threads, in warps, then over the warps.
Emitter::Values Emitter::fold_block_freely(ValueId id) {
  DType type = part_type(id, 0);
  bool indexed = is_indexed(id);
  Type* i32 = b_.getInt32Ty();
  // Apart from the lanes, which slower warps may still be reading.
  int64_t warps_at = p_.lanes_at + kLanes * 8, indices_at = warps_at + 32 * 8;
  Pair total = element(id, 0);
  for (size_t e = 1; e < at_.size(); ++e) total = joined_freely(id, total, element(id, e));
  for (int mask = 16; mask >= 1; mask /= 2) {
    Pair other{threads_.shuffled(total.x, mask),
               indexed ? threads_.shuffled(total.index, mask) : nullptr};
    total = joined_freely(id, total, other);
  }
  if (warps_are_read_) threads_.barrier();
  Value* first = b_.CreateICmpEQ(b_.CreateAnd(lane_, number(i32, 31)), number(i32, 0));
  when(first, [&] {
    Value* warp = b_.CreateLShr(lane_, 5);
    shared_store(warps_at, warp, type, total.x);
    if (indexed) shared_store(indices_at, warp, DType::i64, total.index);
  });
  threads_.barrier();
  for (int warp = 0; warp < p_.threads / 32; ++warp) {
    Value* at = number(i32, warp);
    Pair next{shared_load(warps_at, at, type),
              indexed ? shared_load(indices_at, at, DType::i64) : nullptr};
    total = warp == 0 ? next : joined_freely(id, total, next);
  }
  warps_are_read_ = true;
  Values result{total.x};
  if (indexed) result.push_back(total.index);
  return result;
}

/// The elements of one lane, which lie in shared memory. Some are under way while those before
/// them are added.
llvm::Value* Emitter::fold_lane(ValueId id) {
  DType type = part_type(id, 0);
  Type *i32 = b_.getInt32Ty(), *memory = ops_.memory_type(type);
  int64_t count = (p_.extent.value() + kLanes - 1) / kLanes, ahead = std::min(kAhead, count);
  auto load = [&](Value* j, int64_t some) {
    Value* at = b_.CreateAdd(b_.CreateMul(j, number(i32, kLanes)), lane_);
    Value* base = shared_place(0, at, type);
    Values xs;
    for (int64_t k = 0; k < some; ++k) {
      Value* place = b_.CreateGEP(memory, base, b_.getInt64(uint64_t(k * kLanes)));
      xs.push_back(ops_.from_memory(b_.CreateLoad(memory, place), type));
    }
    return xs;
  };
  auto fold = [&](Value* now, auto begin, auto end) {
    for (; begin != end; ++begin) now = joined(id, {now, nullptr}, {*begin, nullptr}).x;
    return now;
  };
  int64_t whole = count / ahead * ahead;
  Values carried = load(number(i32, 0), ahead);
  carried.push_back(identity(id, 0));
  carried = loop(number(i32, ahead), number(i32, whole), ahead, std::move(carried),
                 [&](Value* j, const Values& now) {
                   Values next = load(j, ahead);
                   next.push_back(fold(now.back(), now.begin(), now.end() - 1));
                   return next;
                 });
  Value* acc = fold(carried.back(), carried.begin(), carried.end() - 1);
  if (whole == count) return acc;
  Values rest = load(number(i32, whole), count - whole);
  return fold(acc, rest.begin(), rest.end());
}

Emitter::Values Emitter::fold_block_in_order(ValueId id) {
  DType type = part_type(id, 0);
  Type* i32 = b_.getInt32Ty();
  // One place and constants beside it: a place for each vector would take registers.
  Value* first = shared_place(0, b_.CreateMul(lane_, number(i32, p_.vector)), type);
  for (size_t e = 0; e < at_.size(); e += size_t(p_.vector)) {
    Values elements;
    for (size_t k = 0; k < size_t(p_.vector); ++k) elements.push_back(element(id, e + k).x);
    uint64_t apart = uint64_t(e) * uint64_t(p_.threads) * uint64_t(size_of(type));
    Value* place = b_.CreateGEP(b_.getInt8Ty(), first, b_.getInt64(apart));
    Values accesses = packed(elements, type);
    int64_t bytes = p_.vector * size_of(type) / int64_t(accesses.size());
    for (size_t k = 0; k < accesses.size(); ++k)
      b_.CreateAlignedStore(accesses[k],
                            b_.CreateGEP(b_.getInt8Ty(), place, b_.getInt64(k * uint64_t(bytes))),
                            llvm::Align(uint64_t(bytes)));
  }
  threads_.barrier();
  when(b_.CreateICmpULT(lane_, number(i32, kLanes)),
       [&] { shared_store(p_.lanes_at, lane_, type, fold_lane(id)); });
  threads_.barrier();
  Value* in_warp = b_.CreateAnd(lane_, number(i32, 31));
  Value* other = b_.CreateAdd(in_warp, number(i32, 32));
  Pair total = joined(id, {shared_load(p_.lanes_at, in_warp, type), nullptr},
                      {shared_load(p_.lanes_at, other, type), nullptr});
  for (int mask = 16; mask >= 1; mask /= 2) {
    Value* lower = b_.CreateICmpEQ(b_.CreateAnd(lane_, number(i32, mask)), number(i32, 0));
    total = shuffle_joined(id, total, mask, lower);
  }
  return {total.x};
}

}  // namespace tn::cuda
