// Loads and stores.
#include <algorithm>

#include "backend/cpu/codegen/emitter.h"
#include "base/error.h"

namespace tn::cpu {

using loop::Combine;
using loop::kNone;
using loop::Op;

// Results from this size on are written past the caches where the caller allows it: reading them
// back from memory costs less than what they would push out.
static constexpr int64_t kBypassBytes = 4 << 20;

// Operands that do not stay in the caches between calls.
static constexpr int64_t kFetchedBytes = 1 << 20;
static constexpr int64_t kLineBytes = 64;
// Elements up to this far apart are picked out of whole vectors; others are gathered.
static constexpr int64_t kMostShuffled = 4;

llvm::Value* Emitter::buffer(int number) {
  return once(kCall, Made::buffer, static_cast<uint64_t>(number), 0, [&]() -> Value* {
    Value* buffers = frame_field(0, "buffers");
    Value* at =
        b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, static_cast<uint64_t>(number));
    return b_.CreateLoad(b_.getPtrTy(), at, s_.kernel.buffers[static_cast<size_t>(number)].name);
  });
}

// As `position`: the part of each scope is added there.
llvm::Value* Emitter::pointer(int number, PolyId index) {
  llvm::Type* type = ops_.memory_type(s_.kernel.buffers[static_cast<size_t>(number)].type);
  const PolyTable& polys = s_.kernel.polys;
  uint64_t key = static_cast<uint64_t>(number) << 32 | index;
  Value* place = buffer(number);
  int64_t offset = polys.constant_of(index);
  for (int scope = kCall; scope < kScopes; ++scope) {
    bool here = scope == kCall && offset != 0;
    for (const Term& term : polys[index].terms) here |= scope_of(term) == scope;
    if (!here) continue;
    place = once(static_cast<Scope>(scope), Made::pointer, key, 0, [&] {
      Value* sum = b_.getInt64(scope == kCall ? static_cast<uint64_t>(offset) : 0);
      for (const Term& term : polys[index].terms)
        if (scope_of(term) == scope) sum = b_.CreateAdd(sum, term_value(term));
      return b_.CreateGEP(type, place, sum);
    });
  }
  return place;
}

std::optional<int64_t> Emitter::stride(PolyId poly) const {
  if (s_.lanes == 1) return 0;
  if (s_.spread)
    return axes_in(s_.kernel, poly) & s_.inner_axes ? std::nullopt : std::optional<int64_t>(0);
  return stride_along(s_.kernel, poly, s_.vector_axis);
}

llvm::Value* Emitter::distance(PolyId index, int axis, int64_t count) {
  if (std::optional<int64_t> stride = stride_along(s_.kernel, index, axis))
    return number(count * *stride);
  uint64_t key = static_cast<uint64_t>(axis) << 32 | index;
  return once(kCall, Made::distance, key, static_cast<int>(count),
              [&] { return b_.CreateMul(stride_value(index, axis), number(count)); });
}

llvm::Value* Emitter::copy_place(int buffer, PolyId index, int copy) {
  llvm::Type* type = ops_.memory_type(s_.kernel.buffers[static_cast<size_t>(buffer)].type);
  Value* offset = is_tiled() ? distance(index, s_.tile_axis, copy)
                             : number(copy * s_.lanes * stride(index).value_or(0));
  return b_.CreateGEP(type, pointer(buffer, index), offset);
}

/// Where each lane is.
llvm::Value* Emitter::places(int number, PolyId index, int copy) {
  llvm::Type* type = ops_.memory_type(s_.kernel.buffers[static_cast<size_t>(number)].type);
  std::optional<int64_t> step = stride(index);
  if (!step) {
    Value* apart = s_.spread ? nullptr : stride_value(index, s_.vector_axis);
    if (!apart) return b_.CreateGEP(type, buffer(number), positions(index, copy));
    int along = is_tiled() ? 0 : copy;
    Value* offsets = once(kCall, Made::apart, index, along, [&] {
      return b_.CreateMul(iota(b_.getInt64Ty(), along * s_.lanes, 1),
                          splat(stride_value(index, s_.vector_axis)));
    });
    return b_.CreateGEP(type, copy_place(number, index, copy), offsets);
  }
  bool is_short = s_.lanes * std::abs(*step) < INT32_MAX;
  llvm::Type* element = is_short ? b_.getInt32Ty() : b_.getInt64Ty();
  return b_.CreateGEP(type, copy_place(number, index, copy), iota(element, 0, *step));
}

llvm::Value* Emitter::both(Value* a, Value* b) {
  if (!a || !b) return a ? a : b;
  if (a->getType() != b->getType()) {
    a = widened(a);
    b = widened(b);
  }
  return b_.CreateAnd(a, b);
}

/// A bit, or one per lane; null where it always holds.
llvm::Value* Emitter::mask(loop::MaskId id, int copy) {
  if (id == kNone) return nullptr;
  Value* all = nullptr;
  for (PolyId poly : s_.kernel.masks[static_cast<size_t>(id)]) {
    bool wide = is_vector(axes_in(s_.kernel, poly));
    Scope scope = kCall;
    for (const Term& term : s_.kernel.polys[poly].terms) scope = std::max(scope, scope_of(term));
    Value* holds = once(scope, Made::condition, poly, wide ? copy : 0, [&] {
      Value* x = wide ? positions(poly, copy) : position(poly);
      return b_.CreateICmpSGE(x, llvm::Constant::getNullValue(x->getType()));
    });
    all = both(all, holds);
  }
  return all;
}

llvm::Value* Emitter::load_element(ValueId id, int copy) {
  const loop::Value& v = s_.value(id);
  llvm::Type* type = ops_.memory_type(v.type);
  llvm::Align align(static_cast<uint64_t>(size_of(v.type)));
  Value* where = mask(v.mask, copy);
  Value* place = is_tiled() ? copy_place(v.buffer, v.index, copy) : pointer(v.buffer, v.index);
  if (!where) return ops_.from_memory(b_.CreateAlignedLoad(type, place, align), v.type);
  auto* one = llvm::FixedVectorType::get(type, 1);
  Value* bit = b_.CreateVectorSplat(1, where);
  Value* x = b_.CreateMaskedLoad(one, place, align, bit, llvm::Constant::getNullValue(one));
  return ops_.from_memory(b_.CreateExtractElement(x, uint64_t{0}), v.type);
}

llvm::Value* Emitter::load(ValueId id, int copy) {
  const loop::Value& v = s_.value(id);
  if (!is_vector(id)) return load_element(id, copy);
  std::optional<int64_t> step = stride(v.index);
  if (is_tiled() && step != 1 && stride_along(s_.kernel, v.index, s_.tile_axis) == 1)
    return load_tile(id, copy);
  llvm::Type* type = ops_.memory_type(v.type);
  llvm::Align align(static_cast<uint64_t>(size_of(v.type)));
  Value* where = both(mask(v.mask, copy), masks_[static_cast<size_t>(copy)]);
  if (where) where = widened(where);
  auto* wide = llvm::cast<llvm::FixedVectorType>(vector_of(type));
  llvm::Constant* zero = llvm::Constant::getNullValue(wide);
  if (step == 1) {
    Value* place = copy_place(v.buffer, v.index, copy);
    Value* x = where ? b_.CreateMaskedLoad(wide, place, align, where, zero)
                     : static_cast<Value*>(b_.CreateAlignedLoad(wide, place, align));
    return ops_.from_memory(x, v.type);
  }
  if (!where && step &&
      (*step == -1 || (*step >= 2 && *step <= std::min(kMostShuffled, int64_t{s_.lanes}))))
    return ops_.from_memory(load_apart(v, copy, *step), v.type);
  if (!where) where = llvm::ConstantInt::getTrue(vector_of(b_.getInt1Ty()));
  Value* x = b_.CreateMaskedGather(wide, places(v.buffer, v.index, copy), align, where, zero);
  return ops_.from_memory(x, v.type);
}

// Every `step`-th element, out of contiguous loads that end with the last of them.
llvm::Value* Emitter::load_apart(const loop::Value& v, int copy, int64_t step) {
  llvm::Type* type = ops_.memory_type(v.type);
  int64_t lanes = s_.lanes, loads = std::max<int64_t>(step, 1), first = step < 0 ? 1 - lanes : 0;
  Value* base = copy_place(v.buffer, v.index, copy);
  auto begin = [&](int64_t k) { return k + 1 < loads ? k * lanes : (lanes - 1) * (loads - 1); };
  Value* result = nullptr;
  for (int64_t k = 0; k < loads; ++k) {
    Value* place = b_.CreateGEP(type, base, number(first + begin(k)));
    Value* next = b_.CreateAlignedLoad(vector_of(type), place,
                                       llvm::Align(static_cast<uint64_t>(size_of(v.type))));
    std::vector<int> order;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t element = step < 0 ? lanes - 1 - lane : lane * step;
      bool here = std::min(element / lanes, loads - 1) == k;
      order.push_back(static_cast<int>(here ? (k ? lanes : 0) + element - begin(k) : lane));
    }
    result = b_.CreateShuffleVector(result ? result : next, next, order);
  }
  return result;
}

// Row j of the tile is contiguous along the tile axis; the transposed tile is every copy at once.
llvm::Value* Emitter::load_tile(ValueId id, int copy) {
  const loop::Value& v = s_.value(id);
  llvm::Type* type = ops_.memory_type(v.type);
  llvm::Align align(static_cast<uint64_t>(size_of(v.type)));
  Values rows;
  for (int j = 0; j < s_.lanes; ++j) {
    Value* place =
        b_.CreateGEP(type, pointer(v.buffer, v.index), distance(v.index, s_.vector_axis, j));
    rows.push_back(b_.CreateAlignedLoad(vector_of(type), place, align));
  }
  for (int half = s_.lanes / 2; half >= 1; half /= 2) {
    // Exchanges the off-diagonal quarters of every square of 2 * half.
    std::vector<int> low, high;
    for (int k = 0; k < s_.lanes; ++k) {
      low.push_back(k & half ? s_.lanes + k - half : k);
      high.push_back(k & half ? s_.lanes + k : k + half);
    }
    for (int j = 0; j < s_.lanes; ++j) {
      if (j & half) continue;
      Value *&a = rows[static_cast<size_t>(j)], *&b = rows[static_cast<size_t>(j + half)];
      Value* first = b_.CreateShuffleVector(a, b, low);
      b = b_.CreateShuffleVector(a, b, high);
      a = first;
    }
  }
  Value* wanted = nullptr;
  for (int k = 0; k < s_.lanes; ++k) {
    Value* x = ops_.from_memory(rows[static_cast<size_t>(k)], v.type);
    if (k == copy)
      wanted = x;
    else
      once(scope_of(id), Made::value, static_cast<uint64_t>(id), k, [&] { return x; });
  }
  return wanted;
}

bool Emitter::may_bypass(const loop::Store& store) const {
  const loop::BufferParam& to = s_.kernel.buffers[static_cast<size_t>(store.buffer)];
  int64_t bytes = size_of(to.type);
  bool full = s_.inner.empty() || (axes_in(s_.kernel, store.index) & s_.inner_axes) != 0;
  if (s_.form == KernelForm::tile || !full || store.mask != kNone ||
      store.combine != Combine::set || store.scattered || stride(store.index) != 1)
    return false;
  // A range that was given counts whole: the call finds out how large the result is.
  int64_t most = bounds(to.size).hi;
  if (most >= Dim::kLargestSymbol) most = s_.likely(to.size);
  if (most * bytes < kBypassBytes) return false;
  // Each vector begins at a multiple of its size; what symbols decide, the call finds out.
  const PolyTable& polys = s_.kernel.polys;
  bool aligned = polys.constant_of(store.index) % s_.lanes == 0;
  for (const Term& term : polys[store.index].terms)
    aligned &= axes_in(s_.kernel, term) >> s_.vector_axis & 1 || term.coef % s_.lanes == 0 ||
               has_symbol(term);
  return aligned && s_.lanes * bytes >= 16;
}

bool Emitter::has_symbol(const Term& term) const {
  const PolyTable& polys = s_.kernel.polys;
  const std::vector<AtomId>& atoms = polys.atoms_of(term.mono);
  return std::any_of(atoms.begin(), atoms.end(),
                     [&](AtomId id) { return polys.atom(id).kind == AtomKind::symbol; });
}

Dim Emitter::bypassing_bytes() const {
  Dim bytes = 0;
  for (const loop::Store& store : s_.kernel.stores)
    if (may_bypass(store)) {
      const loop::BufferParam& to = s_.kernel.buffers[static_cast<size_t>(store.buffer)];
      bytes += to.size * size_of(to.type);
    }
  return bytes;
}

/// Whether this call stores past the caches.
void Emitter::allow_bypass() {
  bypass_ = nullptr;
  Dim bytes = bypassing_bytes();
  if (bytes.is(0)) return;
  const PolyTable& polys = s_.kernel.polys;
  Value *low = number(0), *apart = number(0);
  for (const loop::Store& store : s_.kernel.stores) {
    if (!may_bypass(store)) continue;
    low = b_.CreateOr(low, b_.CreatePtrToInt(buffer(store.buffer), b_.getInt64Ty()));
    for (const Term& term : polys[store.index].terms) {
      if (term.coef % s_.lanes == 0 || !has_symbol(term)) continue;
      Value* factor = number(term.coef);
      for (AtomId id : polys.atoms_of(term.mono))
        if (polys.atom(id).kind == AtomKind::symbol) factor = b_.CreateMul(factor, atom_value(id));
      apart = b_.CreateOr(apart, factor);
    }
  }
  low = b_.CreateOr(b_.CreateAnd(low, number(63)), b_.CreateAnd(apart, number(s_.lanes - 1)));
  Value* allowed = b_.CreatePtrToInt(frame_field(5, "bypass_cache"), b_.getInt64Ty());
  bypass_ = b_.CreateAnd(b_.CreateICmpNE(allowed, number(0)), b_.CreateICmpEQ(low, number(0)));
  if (!bytes.is_const())
    bypass_ = b_.CreateAnd(bypass_, b_.CreateICmpSGE(size(bytes), number(kBypassBytes)));
}

static constexpr Op kCombineOp[] = {Op::add, Op::add, Op::mul, Op::max, Op::min};

/// `x` combined with what is in memory there.
llvm::Value* Emitter::combined(const loop::Store& store, Value* old, Value* x) {
  DType dtype = s_.kernel.buffers[static_cast<size_t>(store.buffer)].type;
  Op op = kCombineOp[static_cast<int>(store.combine)];
  return ops_.binary(op, dtype, ops_.from_memory(old, dtype), x);
}

// Every load of the step comes before its stores: a result may lie where an operand did.
void Emitter::store(const loop::Store& store, int copy) {
  bool wide = is_vector(store.value) || is_vector(axes_in(s_.kernel, store.index));
  if (store.mask != kNone)
    for (PolyId poly : s_.kernel.masks[static_cast<size_t>(store.mask)])
      wide |= is_vector(axes_in(s_.kernel, poly));
  if (wide)
    store_vector(store, copy);
  else if (copy == 0 || s_.tile_axis >= 0)
    store_element(store, copy);
}

void Emitter::store_element(const loop::Store& store, int copy) {
  DType dtype = s_.kernel.buffers[static_cast<size_t>(store.buffer)].type;
  llvm::Align align(static_cast<uint64_t>(size_of(dtype)));
  auto* one = llvm::FixedVectorType::get(ops_.memory_type(dtype), 1);
  Value* where = mask(store.mask, 0);
  Value* bit = b_.CreateVectorSplat(1, where ? where : b_.getTrue());
  Value* place =
      is_tiled() ? copy_place(store.buffer, store.index, copy) : pointer(store.buffer, store.index);
  Value* x = value(store.value, copy);
  if (store.combine != Combine::set) {
    Value* old = b_.CreateMaskedLoad(one, place, align, bit, llvm::Constant::getNullValue(one));
    x = combined(store, b_.CreateExtractElement(old, uint64_t{0}), x);
  }
  x = ops_.to_memory(x, dtype);
  if (where)
    pending_.push_back({b_.CreateVectorSplat(1, x), place, bit, align, false});
  else
    pending_.push_back({x, place, nullptr, align, false});
}

void Emitter::store_vector(const loop::Store& store, int copy) {
  DType dtype = s_.kernel.buffers[static_cast<size_t>(store.buffer)].type;
  llvm::Type* type = ops_.memory_type(dtype);
  llvm::Align align(static_cast<uint64_t>(size_of(dtype)));
  auto* vectors = llvm::cast<llvm::FixedVectorType>(vector_of(type));
  llvm::Constant* zero = llvm::Constant::getNullValue(vectors);
  bool set = store.combine == Combine::set;
  Value* where = both(mask(store.mask, copy), masks_[static_cast<size_t>(copy)]);
  if (where) where = widened(where);
  Value* x = vector(store.value, copy);
  if (stride(store.index) == 1) {
    Value* place = copy_place(store.buffer, store.index, copy);
    if (!set) {
      Value* old = where ? b_.CreateMaskedLoad(vectors, place, align, where, zero)
                         : static_cast<Value*>(b_.CreateAlignedLoad(vectors, place, align));
      x = combined(store, old, x);
    }
    pending_.push_back({ops_.to_memory(x, dtype), place, where, align, may_bypass(store)});
    return;
  }
  if (store.scattered && !set) return store_lanes_in_order(store, copy, x, where);
  if (!where) where = llvm::ConstantInt::getTrue(vector_of(b_.getInt1Ty()));
  Value* at = places(store.buffer, store.index, copy);
  if (!set) x = combined(store, b_.CreateMaskedGather(vectors, at, align, where, zero), x);
  pending_.push_back({ops_.to_memory(x, dtype), at, where, align, false});
}

void Emitter::store_lanes_in_order(const loop::Store& store, int copy, Value* x, Value* where) {
  DType dtype = s_.kernel.buffers[static_cast<size_t>(store.buffer)].type;
  llvm::Align align(static_cast<uint64_t>(size_of(dtype)));
  auto* one = llvm::FixedVectorType::get(ops_.memory_type(dtype), 1);
  Value* at = places(store.buffer, store.index, copy);
  if (!at->getType()->isVectorTy()) at = splat(at);
  for (int lane = 0; lane < s_.lanes; ++lane) {
    uint64_t k = static_cast<uint64_t>(lane);
    Value* place = b_.CreateExtractElement(at, k);
    Value* bit = where ? b_.CreateExtractElement(where, k) : b_.getTrue();
    Value* bits = b_.CreateVectorSplat(1, bit);
    Value* old = b_.CreateMaskedLoad(one, place, align, bits, llvm::Constant::getNullValue(one));
    Value* next =
        combined(store, b_.CreateExtractElement(old, uint64_t{0}), b_.CreateExtractElement(x, k));
    b_.CreateMaskedStore(b_.CreateVectorSplat(1, ops_.to_memory(next, dtype)), place, align, bits);
  }
}

// Stores that may bypass the caches are there twice, behind one branch.
void Emitter::flush_stores() {
  std::vector<Pending> list;
  list.swap(pending_);
  auto plain = [&](const Pending& p) {
    if (p.place->getType()->isVectorTy())
      b_.CreateMaskedScatter(p.x, p.place, p.align, p.mask);
    else if (p.mask)
      b_.CreateMaskedStore(p.x, p.place, p.align, p.mask);
    else
      b_.CreateAlignedStore(p.x, p.place, p.align);
  };
  bool any = false;
  for (const Pending& p : list) any |= p.bypass && !p.mask;
  if (!any || !bypass_) {
    for (const Pending& p : list) plain(p);
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  auto* past = llvm::BasicBlock::Create(context, "past_caches", function_);
  auto* cached = llvm::BasicBlock::Create(context, "cached", function_);
  auto* done = llvm::BasicBlock::Create(context, "stored", function_);
  b_.CreateCondBr(bypass_, past, cached);
  auto* once = llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(b_.getInt32(1)));
  b_.SetInsertPoint(past);
  for (const Pending& p : list) {
    if (p.mask || !p.bypass) {
      plain(p);
      continue;
    }
    uint64_t bytes = p.x->getType()->getPrimitiveSizeInBits().getFixedValue() / 8;
    llvm::StoreInst* store =
        b_.CreateAlignedStore(p.x, p.place, llvm::Align(std::min<uint64_t>(bytes, 64)));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, once);
  }
  b_.CreateBr(done);
  b_.SetInsertPoint(cached);
  for (const Pending& p : list) plain(p);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

/// Asks for what the loads of this step read `ahead` places further along `axis`.
void Emitter::prefetch(int axis, int64_t ahead) {
  if (s_.spread || s_.lanes == 1) return;
  for (size_t i = 0; i < s_.kernel.values.size(); ++i) {
    const loop::Value& v = s_.kernel.values[i];
    if (v.op != Op::load || !s_.needed[i] || v.mask != kNone || stride(v.index) != 1) continue;
    Dim elements = s_.kernel.buffers[static_cast<size_t>(v.buffer)].size;
    int64_t width = size_of(v.type);
    Value* apart = stride_value(v.index, axis);
    if (!apart || s_.likely(elements) * width < kFetchedBytes) continue;
    if (std::optional<int64_t> step = known(apart); step && *step * width < kLineBytes) continue;
    int lines = static_cast<int>(std::max<int64_t>(kLineBytes / (s_.lanes * width), 1));
    Value* next = b_.CreateMul(apart, number(ahead));
    for (int copy = 0; copy < copies_; copy += lines) {
      Value* place = b_.CreateGEP(ops_.memory_type(v.type), pointer(v.buffer, v.index),
                                  b_.CreateAdd(next, number(copy * s_.lanes)));
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {place, b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
    }
  }
}

llvm::Value* Emitter::kept_place(ValueId id, int copy) {
  int64_t width = size_of(s_.value(id).type);
  std::optional<Dim>& at = kept_at_[static_cast<size_t>(id)];
  if (!at) at = take_scratch(ceil_div(s_.extent, 64) * 64 * width);
  Value* row = once(kCall, Made::kept, static_cast<uint64_t>(id), 0,
                    [&] { return b_.CreateGEP(b_.getInt8Ty(), scratch_base_, size(*at)); });
  Value* offset =
      b_.CreateAdd(b_.CreateMul(inner_, number(width)), number(copy * s_.lanes * width));
  return b_.CreateGEP(b_.getInt8Ty(), row, offset);
}

Dim Emitter::take_scratch(Dim bytes) {
  Dim at = scratch_;
  scratch_ += ceil_div(bytes, 64) * 64;
  return at;
}

}  // namespace tn::cpu
