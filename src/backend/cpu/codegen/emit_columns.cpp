// Sweeps across rows: vectors hold columns, and a step is one point of the inner axes. The 64 lanes
// of the reduction tree lie in scratch, a row of columns each; what does not depend on the order of
// the elements is kept in registers.
#include <bit>

#include "backend/cpu/codegen/emitter.h"
#include "loop/reduction_tree.h"
namespace tn::cpu {

using loop::kChunk;
using loop::kLanes;
using loop::Monoid;
using loop::Op;

static constexpr int64_t kRowsAhead = 16;

bool Emitter::is_free(ValueId id) const { return parts(id) == 2 || !is_float(part_type(id, 0)); }

void Emitter::column_unit(Value* unit) {
  place_unit(unit);
  Dim extent = s_.vector_extent();
  Values masks(static_cast<size_t>(s_.copies), nullptr);
  if (s_.lanes > 1 && !divides(s_.block, extent)) {
    Value* rest = b_.CreateSub(size(extent), axis_[static_cast<size_t>(s_.vector_axis)]);
    if (!extent.is_const()) rest = smaller(rest, number(s_.block));
    for (int copy = 0; copy < s_.copies; ++copy)
      masks[static_cast<size_t>(copy)] = first_lanes(rest, copy * s_.lanes);
  }
  begin_step(nullptr, s_.copies, masks);
  for (size_t k = 0; k < s_.sweeps.size(); ++k) column_sweep(k);
  home_[kUnit] = nullptr;
  forget(kStep);
  emit_stores(false);
}

llvm::Value* Emitter::lane_place(Value* lanes_at, Value* lane, int copy, ValueId id) {
  int64_t size = size_of(part_type(id, 0)) * (is_vector(id) ? s_.lanes : 1);
  Value* offset = b_.CreateMul(lane, number(size * accumulators(id)));
  return b_.CreateGEP(b_.getInt8Ty(), lanes_at, b_.CreateAdd(offset, number(copy * size)));
}

llvm::Value* Emitter::load_lane(Value* place, ValueId id) {
  llvm::Type* type = ops_.type(part_type(id, 0));
  return b_.CreateAlignedLoad(is_vector(id) ? vector_of(type) : type, place,
                              llvm::Align(static_cast<uint64_t>(size_of(part_type(id, 0)))));
}

void Emitter::store_lane(Value* place, ValueId id, Value* x) {
  b_.CreateAlignedStore(x, place, llvm::Align(static_cast<uint64_t>(size_of(part_type(id, 0)))));
}

void Emitter::combine_lane(Value* lanes_at, Value* lane, int copy, ValueId id, Value* x) {
  Value* place = lane_place(lanes_at, lane, copy, id);
  Value* acc = load_lane(place, id);
  store_lane(place, id, ops_.combine(s_.value(id).monoid, part_type(id, 0), acc, x));
}

/// How many of the 64 lanes so many elements fill, up to a power of two.
llvm::Value* Emitter::lanes_for(Dim elements) {
  if (elements.is_const()) {
    uint64_t filled = std::bit_ceil(static_cast<uint64_t>(elements.value()));
    return number(std::min(static_cast<int64_t>(filled), kLanes));
  }
  Value* some = larger(smaller(size(elements), number(kLanes)), number(1));
  Value* zeros =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, b_.CreateSub(some, number(1)), b_.getFalse());
  return b_.CreateShl(number(1), b_.CreateSub(number(64), zeros));
}

llvm::Value* Emitter::lanes_in_scratch(ValueId id, Value* count) {
  int64_t bytes = size_of(part_type(id, 0)) * (is_vector(id) ? s_.lanes : 1) * accumulators(id);
  Dim at = take_scratch(bytes * known(count).value_or(kLanes));
  return b_.CreateGEP(b_.getInt8Ty(), scratch_base_, size(at));
}

void Emitter::fill_lanes(Value* lanes_at, Value* count, ValueId id) {
  Value* none = ops_.identity(s_.value(id).monoid, part_type(id, 0));
  if (is_vector(id)) none = splat(none);
  loop(number(0), count, 1, {}, true, [&](Value* lane, const Values&) {
    for (int copy = 0; copy < accumulators(id); ++copy)
      store_lane(lane_place(lanes_at, lane, copy, id), id, none);
    return Values{};
  });
}

/// Leaves the result in lane 0.
void Emitter::halve_lanes(Value* lanes_at, Value* count, ValueId id) {
  auto fold_half = [&](Value* half) {
    loop(number(0), half, 1, {}, true, [&](Value* lane, const Values&) {
      Value* other = b_.CreateAdd(lane, half);
      for (int copy = 0; copy < accumulators(id); ++copy)
        combine_lane(lanes_at, lane, copy, id,
                     load_lane(lane_place(lanes_at, other, copy, id), id));
      return Values{};
    });
  };
  if (std::optional<int64_t> fixed = known(count)) {
    for (int64_t half = *fixed / 2; half >= 1; half /= 2) fold_half(number(half));
    return;
  }
  Value* levels = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, count, b_.getTrue());
  loop(number(0), levels, 1, {}, false, [&](Value* level, const Values&) {
    fold_half(b_.CreateLShr(count, b_.CreateAdd(level, number(1))));
    return Values{};
  });
}

/// One point of the inner axes. Carried: the accumulators in registers, by reduction, part and
/// copy, then the scans'.
Emitter::Values Emitter::column_step(Value* i, const Values& now) {
  bool reverse = false;
  for (auto& [id, carry] : carries_) reverse |= s_.value(id).reverse;
  forget(kStep);
  place_inner(reverse ? b_.CreateSub(b_.CreateSub(size(s_.extent), number(1)), i) : i);
  Values next = now;
  size_t at = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions)
    if (is_free(id)) at += static_cast<size_t>(parts(id) * accumulators(id));
  for (auto& [id, carry] : carries_)
    for (Value*& x : carry) x = now[at++];
  at = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    for (int copy = 0; copy < accumulators(id); ++copy)
      accumulate_column(id, copy, i, next.data() + at);
    if (is_free(id)) at += static_cast<size_t>(accumulators(id) * parts(id));
  }
  if (sweep_ + 1 == s_.sweeps.size()) {
    for (auto& [id, carry] : carries_)
      for (size_t copy = 0; copy < carry.size(); ++copy) value(id, static_cast<int>(copy));
    emit_stores(true);
  }
  for (auto& [id, carry] : carries_)
    for (Value* x : carry) next[at++] = x;
  // Rows of columns are far apart: the machine does not see them coming.
  if (s_.sweeps.size() == 1 && !reverse && !s_.unrolled) prefetch(s_.inner.back(), kRowsAhead);
  return next;
}

/// `accs`: the registers of the reduction, by part and copy.
void Emitter::accumulate_column(ValueId id, int copy, Value* i, Value** accs) {
  const loop::Value& v = s_.value(id);
  bool wide = is_vector(id);
  Value* x = wide ? vector(v.a, copy) : value(v.a, 0);
  if (!is_free(id)) {
    if (s_.unrolled)
      lanes_[{id, copy}].push_back(x);
    else
      combine_lane(lanes_at_[id], b_.CreateAnd(i, number(kLanes - 1)), copy, id, x);
    return;
  }
  Value*& acc = accs[copy];
  if (parts(id) == 1) {
    acc = ops_.combine(v.monoid, part_type(id, 0), acc, x);
    return;
  }
  Value*& index = accs[accumulators(id) + copy];
  Ops::Best best = ops_.better(v.monoid, part_type(id, 0), {acc, index}, {x, wide ? splat(i) : i});
  acc = best.value;
  index = best.index;
}

/// Few points: every one has a lane of its own, in a register.
void Emitter::short_column_sweep() {
  lanes_.clear();
  Values carried = column_identities();
  for (int64_t i = 0; i < s_.extent.value(); ++i) carried = column_step(number(i), carried);
  for (auto& [at, lanes] : lanes_)
    for (size_t half = std::bit_ceil(lanes.size()) / 2; half >= 1; half /= 2)
      for (size_t k = 0; k < half && k + half < lanes.size(); ++k)
        lanes[k] = ops_.combine(s_.value(at.first).monoid, part_type(at.first, 0), lanes[k],
                                lanes[k + half]);
  set_column_results(carried);
}

/// What the carried registers of a sweep begin with.
Emitter::Values Emitter::column_identities() {
  Values first;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    if (!is_free(id)) continue;
    for (int part = 0; part < parts(id); ++part) {
      Value* none = identity(id, part);
      if (is_vector(id)) none = splat(none);
      first.insert(first.end(), static_cast<size_t>(accumulators(id)), none);
    }
  }
  carries_.clear();
  for (size_t i = 0; i < s_.kernel.values.size(); ++i) {
    const loop::Value& v = s_.kernel.values[i];
    ValueId id = static_cast<ValueId>(i);
    if (v.op != Op::scan || !s_.needed[i]) continue;
    // An exclusive scan shows its beginning, so there it is the plain zero.
    Value* none = v.exclusive ? ops_.empty(v.monoid, v.type) : ops_.identity(v.monoid, v.type);
    if (is_vector(id)) none = splat(none);
    carries_[id].assign(static_cast<size_t>(accumulators(id)), none);
  }
  for (auto& [id, carry] : carries_) first.insert(first.end(), carry.begin(), carry.end());
  return first;
}

void Emitter::set_column_results(const Values& carried) {
  size_t at = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    size_t count = static_cast<size_t>(accumulators(id));
    size_t part = static_cast<size_t>(parts(id)) - 1;
    for (size_t copy = 0; copy < count; ++copy) {
      Value* result;
      if (s_.extent.is(0)) {
        result = ops_.empty(s_.value(id).monoid, part_type(id, 0));
        if (is_vector(id)) result = splat(result);
      } else if (is_free(id)) {
        result = carried[at + part * count + copy];
      } else if (s_.unrolled) {
        result = lanes_[{id, static_cast<int>(copy)}][0];
      } else {
        result = load_lane(lane_place(lanes_at_[id], number(0), static_cast<int>(copy), id), id);
      }
      if (!s_.extent.is(0)) result = or_empty(id, result);
      once(scope_of(id), Made::value, static_cast<uint64_t>(id), static_cast<int>(copy),
           [&] { return result; });
    }
    if (is_free(id)) at += count * (part + 1);
  }
}

void Emitter::column_sweep(size_t number_of_sweep) {
  sweep_ = number_of_sweep;
  if (s_.extent.is(0)) return set_column_results({});
  if (s_.unrolled) return short_column_sweep();
  Dim chunks = ceil_div(s_.extent, kChunk);
  bool several = bounds(chunks).hi > 1, some = bounds(s_.extent).lo > 0;
  std::vector<ValueId> ordered;  // reductions whose lanes lie in scratch
  for (ValueId id : s_.sweeps[sweep_].reductions)
    if (!is_free(id)) ordered.push_back(id);
  Value *count = lanes_for(s_.extent), *chunk_count = lanes_for(chunks);
  std::unordered_map<ValueId, Value*> totals;
  for (ValueId id : ordered) {
    lanes_at_[id] = lanes_in_scratch(id, count);
    if (several) fill_lanes(totals[id] = lanes_in_scratch(id, chunk_count), chunk_count, id);
  }
  Values carried = column_identities();
  auto chunk = [&](Value* begin, Value* end, const Values& now, bool any) {
    for (ValueId id : ordered) fill_lanes(lanes_at_[id], count, id);
    if (!several) home_[kUnit] = b_.GetInsertBlock();
    Values next = loop(begin, end, 1, now, any, [&](Value* i, const Values& carried_in) {
      return column_step(i, carried_in);
    });
    for (ValueId id : ordered) halve_lanes(lanes_at_[id], count, id);
    return next;
  };
  if (!several) {
    carried = chunk(number(0), size(s_.extent), carried, some);
    home_[kUnit] = nullptr;
    return set_column_results(carried);
  }
  home_[kUnit] = b_.GetInsertBlock();
  carried = loop(number(0), size(chunks), 1, carried, some, [&](Value* c, const Values& now) {
    Value* begin = b_.CreateMul(c, number(kChunk));
    Value* end = smaller(b_.CreateAdd(begin, number(kChunk)), size(s_.extent));
    Values next = chunk(begin, end, now, true);
    for (ValueId id : ordered)
      for (int copy = 0; copy < accumulators(id); ++copy) {
        Value* result = load_lane(lane_place(lanes_at_[id], number(0), copy, id), id);
        combine_lane(totals[id], b_.CreateAnd(c, number(kLanes - 1)), copy, id, result);
      }
    return next;
  });
  home_[kUnit] = nullptr;
  for (ValueId id : ordered) {
    halve_lanes(totals[id], chunk_count, id);
    lanes_at_[id] = totals[id];
  }
  set_column_results(carried);
}

}  // namespace tn::cpu
