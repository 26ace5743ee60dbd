// Sweeps along rows. The reduction tree depends on the extent alone: element i of a chunk goes to
// lane i % 64, the lanes are halved, and the results of the chunks are reduced in the same way.
#include <algorithm>

#include "backend/cpu/codegen/emitter.h"
#include "base/error.h"
#include "loop/reduction_tree.h"

namespace tn::cpu {

using loop::kChunk;
using loop::kLanes;
using loop::Monoid;

// Vectors at the end of a row that have code of their own: a loop over them costs more to compile.
static constexpr int kRestVectors = 8;

static bool has_index(Monoid monoid) {
  return monoid == Monoid::argmax || monoid == Monoid::argmin;
}

int Emitter::parts(ValueId id) const { return has_index(s_.value(id).monoid) ? 2 : 1; }

DType Emitter::part_type(ValueId id, int part) const {
  return part == 0 ? s_.value(s_.value(id).a).type : DType::i64;
}

llvm::Constant* Emitter::identity(ValueId id, int part) const {
  return part == 0 ? ops_.identity(s_.value(id).monoid, part_type(id, 0))
                   : ops_.constant_bits(~uint64_t{0}, DType::i64);
}

/// The accumulators of the sweep: by reduction, by part, by vector of the lanes.
Emitter::Values Emitter::identities() {
  Values accs;
  for (ValueId id : s_.sweeps[sweep_].reductions)
    for (int part = 0; part < parts(id); ++part)
      accs.insert(accs.end(), static_cast<size_t>(kLanes / s_.lanes), splat(identity(id, part)));
  return accs;
}

/// `accs`: the vectors of all lanes, by part.
void Emitter::accumulate(ValueId id, int copy, Value** accs) {
  const loop::Value& v = s_.value(id);
  DType type = part_type(id, 0);
  int vectors = static_cast<int>(kLanes) / s_.lanes;
  Value*& acc = accs[copy % vectors];
  Value* x = vector(v.a, copy);
  Value* cut = masks_[static_cast<size_t>(copy)];
  Value* none = splat(ops_.identity(v.monoid, type));
  if (cut) x = b_.CreateSelect(cut, x, none);
  if (!has_index(v.monoid)) {
    acc = llvm::isa<llvm::Constant>(acc) && acc == none ? x : ops_.combine(v.monoid, type, acc, x);
    return;
  }
  Value*& index = accs[vectors + copy % vectors];
  Value* here = b_.CreateAdd(splat(inner_), iota(b_.getInt64Ty(), copy * s_.lanes, 1));
  if (cut) here = b_.CreateSelect(cut, here, llvm::Constant::getAllOnesValue(here->getType()));
  Ops::Best best = ops_.better(v.monoid, type, {acc, index}, {x, here});
  acc = best.value;
  index = best.index;
}

void Emitter::place_inner(Value* flat) {
  inner_ = flat;
  if (s_.spread) return;
  Value* rest = flat;
  for (size_t k = s_.inner.size(); k-- > 0;) {
    Dim extent = max(s_.extents[static_cast<size_t>(s_.inner[k])], 1);
    Value*& at = axis_[static_cast<size_t>(s_.inner[k])];
    if (!s_.is_wide(s_.inner[k])) {
      at = number(0);
    } else if (k == 0) {
      at = rest;
    } else {
      at = b_.CreateURem(rest, size(extent));
      rest = b_.CreateUDiv(rest, size(extent));
    }
  }
}

/// `count` elements from `base` on, which is a multiple of the lanes.
Emitter::Values Emitter::row_step(Value* base, int64_t count, const Values& accs) {
  int copies = static_cast<int>((count + s_.lanes - 1) / s_.lanes);
  Values masks(static_cast<size_t>(copies), nullptr);
  if (int64_t rest = count % s_.lanes) {
    std::vector<llvm::Constant*> bits;
    for (int64_t k = 0; k < s_.lanes; ++k) bits.push_back(b_.getInt1(k < rest));
    masks.back() = llvm::ConstantVector::get(bits);
  }
  if (!s_.unrolled || sweep_ == 0) begin_step(nullptr, copies, masks);
  place_inner(base);
  Values next = accs;
  size_t vectors = static_cast<size_t>(kLanes / s_.lanes), at = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    for (int copy = 0; copy < copies; ++copy) accumulate(id, copy, &next[at]);
    at += vectors * static_cast<size_t>(parts(id));
  }
  if (sweep_ + 1 < s_.sweeps.size() || s_.two_phases) return next;
  emit_stores(true);
  // While the last sweep of a row computes, the next row comes from memory.
  if (s_.sweeps.size() > 1 && !s_.unrolled && !s_.par.empty()) prefetch(s_.par.back(), 1);
  return next;
}

Emitter::Values Emitter::row_chunk(Value* begin, Value* length, Values accs) {
  std::optional<int64_t> fixed = known(length);
  if (s_.unrolled) return row_step(begin, *fixed, accs);
  Value* whole = b_.CreateAnd(length, number(-kLanes));
  Value* rest = b_.CreateAdd(begin, whole);
  if (!fixed || *fixed >= kLanes)
    accs = loop(begin, rest, kLanes, accs, fixed.has_value(),
                [&](Value* i, const Values& carried) { return row_step(i, kLanes, carried); });
  if (!fixed) return row_rest(rest, b_.CreateSub(length, whole), accs);
  return *fixed % kLanes ? row_step(rest, *fixed % kLanes, accs) : accs;
}

// The accumulators of every part move on, so that those of the next vectors come first.
static void take_turns(std::vector<llvm::Value*>& accs, ptrdiff_t vectors, ptrdiff_t step) {
  for (auto at = accs.begin(); at != accs.end(); at += vectors)
    std::rotate(at, at + step, at + vectors);
}

/// Fewer than 64 elements, their number found at run time: vectors beyond them are jumped over.
Emitter::Values Emitter::row_rest(Value* base, Value* count, Values accs) {
  if (divides(kLanes, s_.extent)) return accs;
  int vectors = static_cast<int>(kLanes) / s_.lanes, together = std::min(vectors, kRestVectors);
  auto step = [&](Value* i, Values now, int first) {
    begin_step(nullptr, 1, {first_lanes(b_.CreateSub(count, i), 0)});
    place_inner(b_.CreateAdd(base, i));
    Value** at = now.data() + first;
    for (ValueId id : s_.sweeps[sweep_].reductions) {
      accumulate(id, 0, at);
      at += vectors * parts(id);
    }
    if (sweep_ + 1 == s_.sweeps.size() && !s_.two_phases) emit_stores(true);
    return now;
  };
  if (accs.empty())
    return loop(number(0), count, s_.lanes, accs, false,
                [&](Value* i, const Values& none) { return step(i, none, 0); });
  auto steps = [&](Value* begin, Values now) {
    for (int k = 0; k < together; ++k) {
      Value* i = b_.CreateAdd(begin, number(k * s_.lanes));
      now = when(b_.CreateICmpSLT(i, count), now, [&] { return step(i, now, k); });
    }
    return now;
  };
  if (together == vectors) return steps(number(0), accs);
  return loop(number(0), number(kLanes), together * s_.lanes, accs, true,
              [&](Value* i, const Values& now) {
                Values next = steps(i, now);
                take_turns(next, vectors, together);
                return next;
              });
}

/// One value per part of the reduction, from its 64 lanes.
Emitter::Values Emitter::fold_lanes(ValueId id, Values lanes) {
  const loop::Value& v = s_.value(id);
  DType type = part_type(id, 0);
  size_t vectors = static_cast<size_t>(kLanes / s_.lanes);
  bool indexed = has_index(v.monoid);
  auto join = [&](Value*& a, Value*& index, Value* other, Value* other_index) {
    if (indexed) {
      Ops::Best best = ops_.better(v.monoid, type, {a, index}, {other, other_index});
      a = best.value;
      index = best.index;
    } else {
      a = ops_.combine(v.monoid, type, a, other);
    }
  };
  Value* none = nullptr;
  for (size_t half = vectors / 2; half >= 1; half /= 2)
    for (size_t k = 0; k < half; ++k)
      join(lanes[k], indexed ? lanes[vectors + k] : none, lanes[k + half],
           indexed ? lanes[vectors + k + half] : nullptr);
  Value* x = lanes[0];
  Value* index = indexed ? lanes[vectors] : nullptr;
  for (int half = s_.lanes / 2; half >= 1; half /= 2) {
    std::vector<int> low, high;
    for (int k = 0; k < half; ++k) {
      low.push_back(k);
      high.push_back(half + k);
    }
    Value* other = b_.CreateShuffleVector(x, high);
    x = b_.CreateShuffleVector(x, low);
    Value* other_index = indexed ? b_.CreateShuffleVector(index, high) : nullptr;
    if (indexed) index = b_.CreateShuffleVector(index, low);
    join(x, index, other, other_index);
  }
  Values result{b_.CreateExtractElement(x, uint64_t{0})};
  if (indexed) result.push_back(b_.CreateExtractElement(index, uint64_t{0}));
  return result;
}

/// By reduction, by part.
Emitter::Values Emitter::fold(const Values& accs) {
  Values totals;
  size_t at = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    size_t count = static_cast<size_t>(parts(id) * kLanes / s_.lanes);
    Values own(accs.begin() + static_cast<ptrdiff_t>(at),
               accs.begin() + static_cast<ptrdiff_t>(at + count));
    Values result = fold_lanes(id, own);
    totals.insert(totals.end(), result.begin(), result.end());
    at += count;
  }
  return totals;
}

/// The results of `count` chunks, which lie side by side, one array per part.
Emitter::Values Emitter::fold_array(ValueId id, const Values& arrays, Value* count) {
  Monoid monoid = s_.value(id).monoid;
  size_t vectors = static_cast<size_t>(kLanes / s_.lanes);
  Values accs;
  for (int part = 0; part < parts(id); ++part)
    accs.insert(accs.end(), vectors, splat(identity(id, part)));
  Value* end = b_.CreateAnd(b_.CreateAdd(count, number(kLanes - 1)), number(-kLanes));
  auto step = [&](Value* i, Values now) {
    Value* here = first_lanes(larger(b_.CreateSub(count, i), number(0)), 0);
    Value* x[2] = {};
    for (int part = 0; part < parts(id); ++part) {
      DType type = part_type(id, part);
      llvm::Type* memory = ops_.memory_type(type);
      Value* place = b_.CreateGEP(memory, arrays[static_cast<size_t>(part)], i);
      Value* raw = b_.CreateMaskedLoad(vector_of(memory), place, llvm::Align(1), here);
      x[part] = b_.CreateSelect(here, ops_.from_memory(raw, type), splat(identity(id, part)));
    }
    if (has_index(monoid)) {
      Ops::Best best = ops_.better(monoid, part_type(id, 0), {now[0], now[vectors]}, {x[0], x[1]});
      now[0] = best.value;
      now[vectors] = best.index;
    } else {
      now[0] = ops_.combine(monoid, part_type(id, 0), now[0], x[0]);
    }
    take_turns(now, static_cast<ptrdiff_t>(vectors), 1);
    return now;
  };
  return fold_lanes(id, loop(number(0), end, s_.lanes, accs, known(count).has_value(), step));
}

/// Reductions over no element have their own result.
llvm::Value* Emitter::or_empty(ValueId id, Value* result) {
  if (bounds(s_.extent).lo > 0) return result;
  Value* none = ops_.empty(s_.value(id).monoid, part_type(id, 0));
  if (result->getType()->isVectorTy()) none = splat(none);
  return b_.CreateSelect(b_.CreateICmpEQ(size(s_.extent), number(0)), none, result);
}

void Emitter::set_reduced(const Values& totals) {
  size_t at = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    Value* result = or_empty(id, totals[at + static_cast<size_t>(parts(id)) - 1]);
    once(scope_of(id), Made::value, static_cast<uint64_t>(id), 0, [&] { return result; });
    at += static_cast<size_t>(parts(id));
  }
}

/// Where the results of the chunks of a row lie: arrays behind `base`, in the order of the parts.
llvm::Value* Emitter::chunk_array(ValueId id, int part, Value* base, Value* count) {
  int64_t offset = 0;
  for (ValueId other : s_.sweeps[sweep_].reductions)
    for (int k = 0; k < parts(other); ++k) {
      if (other == id && k == part)
        return b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(count, number(offset)));
      offset += 8;
    }
  return nullptr;
}

/// The results of one chunk, at place `at` of the arrays over `count` chunks behind `base`.
void Emitter::store_results(const Values& results, Value* base, Value* count, Value* at) {
  size_t k = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions)
    for (int part = 0; part < parts(id); ++part) {
      DType type = part_type(id, part);
      Value* array = chunk_array(id, part, base, count);
      Value* place = b_.CreateGEP(ops_.memory_type(type), array, at);
      b_.CreateAlignedStore(ops_.to_memory(results[k++], type), place, llvm::Align(1));
    }
}

/// `count` chunks from place `first` on, of arrays over `all` chunks.
Emitter::Values Emitter::fold_arrays(Value* base, Value* all, Value* first, Value* count) {
  Values totals;
  for (ValueId id : s_.sweeps[sweep_].reductions) {
    Values arrays;
    for (int part = 0; part < parts(id); ++part)
      arrays.push_back(b_.CreateGEP(ops_.memory_type(part_type(id, part)),
                                    chunk_array(id, part, base, all), first));
    Values result = fold_array(id, arrays, count);
    totals.insert(totals.end(), result.begin(), result.end());
  }
  return totals;
}

/// The results of the chunk at `begin`, the last of which may be cut.
Emitter::Values Emitter::chunk_totals(Value* begin) {
  Value* length = smaller(number(kChunk), b_.CreateSub(size(s_.extent), begin));
  return fold(row_chunk(begin, length, identities()));
}

int64_t Emitter::record_bytes() const {
  int64_t bytes = 0;
  for (ValueId id : s_.sweeps[sweep_].reductions) bytes += 8 * parts(id);
  return bytes;
}

/// The totals of a row of several chunks; their results wait in scratch.
Emitter::Values Emitter::cut_row() {
  Dim chunks = ceil_div(s_.extent, kChunk);
  Value* count = size(chunks);
  Dim place = take_scratch(chunks * record_bytes());
  Value* base = b_.CreateGEP(b_.getInt8Ty(), scratch_base_, size(place));
  Values totals;
  if (!s_.extent.is_const()) {
    for (ValueId id : s_.sweeps[sweep_].reductions)
      for (int part = 0; part < parts(id); ++part) totals.push_back(identity(id, part));
    totals =
        loop(number(0), count, 1, totals, bounds(s_.extent).lo > 0, [&](Value* c, const Values&) {
          Values results = chunk_totals(b_.CreateMul(c, number(kChunk)));
          store_results(results, base, count, c);
          return results;
        });
    home_[kUnit] = nullptr;
    return when(b_.CreateICmpSGT(count, number(1)), totals,
                [&] { return fold_arrays(base, count, number(0), count); });
  }
  auto chunk = [&](Value* c, int64_t length) {
    Value* begin = b_.CreateMul(c, number(kChunk));
    store_results(fold(row_chunk(begin, number(length), identities())), base, count, c);
  };
  int64_t whole = s_.extent.value() / kChunk, rest = s_.extent.value() % kChunk;
  loop(number(0), number(whole), 1, {}, true, [&](Value* c, const Values&) {
    chunk(c, kChunk);
    return Values{};
  });
  if (rest) chunk(number(whole), rest);
  home_[kUnit] = nullptr;
  return fold_arrays(base, count, number(0), count);
}

void Emitter::row_sweep(size_t number_of_sweep) {
  sweep_ = number_of_sweep;
  const Sweep& sweep = s_.sweeps[sweep_];
  Values totals;
  home_[kUnit] = s_.unrolled || s_.extent.is(0) ? nullptr : b_.GetInsertBlock();
  if (s_.extent.is(0)) {
    for (ValueId id : sweep.reductions)
      for (int part = 0; part < parts(id); ++part) totals.push_back(identity(id, part));
  } else if (bounds(s_.extent).hi <= kChunk || sweep.reductions.empty()) {
    Values accs = row_chunk(number(0), size(s_.extent), identities());
    home_[kUnit] = nullptr;
    totals = fold(accs);
  } else {
    totals = cut_row();
  }
  set_reduced(totals);
  for (size_t i = 0; i < kept_ready_.size(); ++i) kept_ready_[i] = kept_at_[i].has_value();
}

/// One chunk of one row: its results go to the partials, of each part an array over all units.
void Emitter::row_partials(Value* unit) {
  sweep_ = 0;
  partials_ = record_bytes();
  Value *chunks = size(s_.chunk_units), *units = size(s_.points * s_.chunk_units);
  place_unit(b_.CreateUDiv(unit, chunks));
  Value* chunk = b_.CreateURem(unit, chunks);
  Value* begin = b_.CreateMul(chunk, number(kChunk));
  home_[kUnit] = b_.GetInsertBlock();
  if (!s_.extent.is_const()) return store_results(chunk_totals(begin), partial_base_, units, unit);
  auto emit = [&](int64_t length) {
    Values results = fold(row_chunk(begin, number(length), identities()));
    store_results(results, partial_base_, units, unit);
  };
  int64_t rest = s_.extent.value() % kChunk;
  if (!rest) return emit(kChunk);
  llvm::LLVMContext& context = module_.getContext();
  auto* whole = llvm::BasicBlock::Create(context, "whole", function_);
  auto* last = llvm::BasicBlock::Create(context, "last", function_);
  auto* done = llvm::BasicBlock::Create(context, "chunk_done", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(chunk, b_.CreateSub(chunks, number(1))), whole, last);
  b_.SetInsertPoint(whole);
  emit(kChunk);
  b_.CreateBr(done);
  b_.SetInsertPoint(last);
  emit(rest);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

void Emitter::finish_row(Value* row) {
  sweep_ = 0;
  place_unit(row);
  Value *chunks = size(s_.chunk_units), *units = size(s_.points * s_.chunk_units);
  set_reduced(fold_arrays(partial_base_, units, b_.CreateMul(row, chunks), chunks));
  begin_step(nullptr, 1, {});
  emit_stores(false);
}

}  // namespace tn::cpu
