// Loads and stores: up to 16 bytes at a time.
#include <algorithm>

#include "backend/cuda/codegen/gpu_emitter.h"

namespace tn::cuda {

using loop::AxisSet;
using loop::Combine;
using loop::kNone;
using loop::Op;

static constexpr int64_t kAccessBytes = 16;

static llvm::Align align_of(int64_t bytes) { return llvm::Align(static_cast<uint64_t>(bytes)); }

/// What one access of `bytes` bytes loads: whole elements, or words that hold several.
static llvm::Type* access_type(llvm::IRBuilder<>& b, llvm::Type* element, int64_t size,
                               int64_t bytes) {
  if (size < 4 && bytes <= 4) return b.getIntNTy(static_cast<unsigned>(bytes) * 8);
  llvm::Type* word = size < 4 ? b.getInt32Ty() : element;
  int64_t words = bytes / std::max<int64_t>(size, 4);
  return words == 1 ? word : llvm::FixedVectorType::get(word, static_cast<unsigned>(words));
}

llvm::Value* Emitter::buffer(int number) {
  return threads_.param(size_t(buffer_param_[size_t(number)]));
}

llvm::Value* Emitter::pointer(int number, PolyId index, size_t e) {
  Type* type = ops_.memory_type(p_.kernel.buffers[size_t(number)].type);
  int64_t apart = 0;
  if (std::optional<int64_t> known = apart_from_first(index, e)) apart = *known, e = 0;
  Value* at = as(position(index, e), b_.getInt64Ty());
  Value* place = b_.CreateGEP(type, buffer(number), at);
  return apart ? b_.CreateGEP(type, place, b_.getInt64(uint64_t(apart))) : place;
}

/// How far an element lies behind the first of the thread, where that is a constant: one place and
/// constants need no registers.
std::optional<int64_t> Emitter::apart_from_first(PolyId index, size_t e) const {
  const std::vector<int>& axes = p_.mode == Mode::flat ? p_.par : p_.inner;
  bool row = p_.mode == Mode::rows && p_.phase == Phase::whole && p_.unrolled && p_.group > 1;
  bool one = axes.size() == 1 && axes[0] == p_.vector_axis;
  if ((p_.mode != Mode::flat && !row) || !one || p_.cut || valid_[0] || valid_[e]) return {};
  if (at_.size() == 1 || p_.kernel.polys.has_values(index)) return {};
  std::optional<int64_t> stride = loop::stride_along(p_.kernel, index, p_.vector_axis);
  if (!stride || !loop::is_linear_along(p_.kernel, index, p_.vector_axis)) return {};
  int64_t vector = p_.vector, at = static_cast<int64_t>(e);
  int64_t step = (p_.mode == Mode::flat ? p_.threads : p_.group) * vector;
  return *stride * (at / vector * step + at % vector);
}

bool Emitter::is_contiguous(PolyId index, loop::MaskId mask) const {
  return p_.vector > 1 && mask == kNone &&
         loop::stride_along(p_.kernel, index, p_.vector_axis) == 1;
}

/// A bit; null where it always holds.
llvm::Value* Emitter::mask(loop::MaskId id, size_t e) {
  Value* all = nullptr;
  if (id == kNone) return all;
  for (PolyId poly : p_.kernel.masks[size_t(id)]) {
    Value* x = position(poly, e);
    all = both(all, b_.CreateICmpSGE(x, number(x->getType(), 0)));
  }
  return all;
}

llvm::Value* Emitter::load(ValueId id, size_t e) {
  const loop::Value& v = p_.value(id);
  if (!is_contiguous(v.index, v.mask) || p_.cut) return load_element(v, e);
  size_t vector = static_cast<size_t>(p_.vector), first = e - e % vector;
  Values elements = load_vector(v, first, p_.streamed[size_t(id)]);
  for (size_t k = 0; k < vector; ++k)
    once(0, static_cast<uint64_t>(id), first + k, [&] { return elements[k]; });
  return elements[e % vector];
}

// What a false mask hides is read from the beginning of the buffer, so that there is no branch.
llvm::Value* Emitter::load_element(const loop::Value& v, size_t e) {
  Type* type = ops_.memory_type(v.type);
  Value* where = mask(v.mask, e);
  Value* zero = llvm::Constant::getNullValue(type);
  auto read = [&](Value* place) {
    threads_.touch(place, size_of(v.type), false);
    return b_.CreateAlignedLoad(type, place, align_of(size_of(v.type)));
  };
  if (!where) return ops_.from_memory(read(pointer(v.buffer, v.index, e)), v.type);
  Value* at = as(position(v.index, e), b_.getInt64Ty());
  if (bounds(p_.kernel.buffers[size_t(v.buffer)].size).lo < 1) {
    Made outside = made_;
    Value* x = codegen::when(b_, where, {zero}, [&] {
      return Values{read(b_.CreateGEP(type, buffer(v.buffer), at))};
    })[0];
    made_ = std::move(outside);
    return ops_.from_memory(x, v.type);
  }
  Value* place = b_.CreateGEP(type, buffer(v.buffer), b_.CreateSelect(where, at, b_.getInt64(0)));
  return ops_.from_memory(b_.CreateSelect(where, read(place), zero), v.type);
}

/// The elements from `e` on, which is the first of a vector.
Emitter::Values Emitter::load_vector(const loop::Value& v, size_t e, bool streamed) {
  int64_t size = size_of(v.type), piece = std::min<int64_t>(p_.vector, kAccessBytes / size);
  Type* element = ops_.memory_type(v.type);
  Type* type = access_type(b_, element, size, piece * size);
  Value* base = pointer(v.buffer, v.index, e);
  Values elements;
  for (int64_t k = 0; k < p_.vector; k += piece) {
    Value* place = b_.CreateGEP(element, base, b_.getInt64(uint64_t(k)));
    threads_.touch(place, piece * size, false);
    Value* all = streamed && piece * size == kAccessBytes
                     ? threads_.load_streamed(type, place)
                     : b_.CreateAlignedLoad(type, place, align_of(piece * size));
    for (int64_t j = 0; j < piece; ++j) {
      Value* x = all;
      int64_t in_word = size < 4 ? std::min<int64_t>(4 / size, piece) : 1;
      if (type->isVectorTy()) x = b_.CreateExtractElement(all, uint64_t(j / in_word));
      if (size < 4) {
        x = b_.CreateLShr(x, uint64_t(j % in_word * size * 8));
        x = b_.CreateTrunc(x, element);
      }
      elements.push_back(ops_.from_memory(x, v.type));
    }
  }
  return elements;
}

// Where the last vector may be cut, one branch for all loads chooses between vectors and elements;
// everything behind it is there once.
void Emitter::load_cut_vectors() {
  std::vector<ValueId> loads;
  for (size_t i = 0; i < p_.kernel.values.size(); ++i) {
    const loop::Value& v = p_.kernel.values[i];
    bool plain = p_.needed[i] && v.op == Op::load && is_contiguous(v.index, v.mask);
    if (plain) loop::for_each_value_in(p_.kernel, v.index, [&](ValueId) { plain = false; });
    if (plain) loads.push_back(ValueId(i));
  }
  if (loads.empty()) return;
  size_t vector = static_cast<size_t>(p_.vector);
  Made outside = made_;
  auto load_all = [&](bool whole) {
    made_ = outside;
    Values found;
    for (ValueId id : loads)
      for (size_t e = 0; e < at_.size(); e += vector) {
        Values elements;
        if (whole) elements = load_vector(p_.value(id), e, false);
        for (size_t j = 0; !whole && j < vector; ++j)
          elements.push_back(load_element(p_.value(id), e + j));
        found.insert(found.end(), elements.begin(), elements.end());
      }
    return found;
  };
  Values found =
      codegen::either(b_, full_, [&] { return load_all(true); }, [&] { return load_all(false); });
  made_ = std::move(outside);
  size_t next = 0;
  for (ValueId id : loads)
    for (size_t e = 0; e < at_.size(); ++e, ++next)
      once(0, static_cast<uint64_t>(id), e, [&] { return found[next]; });
}

/// All values first: a result may lie where an operand did.
void Emitter::emit_stores(bool inside, Value* guard) {
  for (size_t i = 0; i < p_.kernel.stores.size(); ++i) {
    if (!p_.inner.empty() && p_.stored_inside[i] != inside) continue;
    const loop::Store& to = p_.kernel.stores[i];
    store(to,
          p_.value(to.value).axes | loop::axes_in(p_.kernel, to.index) |
              loop::axes_in_mask(p_.kernel, to.mask),
          guard);
  }
  flush_stores();
}

void Emitter::emit_last_stores(int group, Value* guard) {
  bool meets = false;
  for (size_t i = 0; i < p_.kernel.stores.size(); ++i)
    meets |= !p_.stored_inside[i] && s_.is_overlaid(p_.kernel.stores[i].buffer);
  if (meets && group > 32)
    threads_.barrier();
  else if (meets && group > 1)
    threads_.warp_barrier();
  emit_stores(false, guard);
}

void Emitter::store(const loop::Store& to, AxisSet axes, Value* guard) {
  size_t vector = static_cast<size_t>(p_.vector);
  bool wide = is_contiguous(to.index, to.mask) && to.combine == Combine::set;
  for (size_t e = 0; e < at_.size(); ++e) {
    if (canonical(axes, e) != e) continue;
    if (!wide || e % vector) {
      if (!wide) store_element(to, e, both(guard, valid_[e]));
      continue;
    }
    if (!p_.cut) {
      store_vector(to, e);
      pending_.back().guard = both(guard, valid_[e]);
      continue;
    }
    store_vector(to, e);
    pending_.back().guard = full_;
    for (size_t k = 0; k < vector; ++k)
      store_element(to, e + k, both(b_.CreateNot(full_), valid_[e + k]));
  }
}

void Emitter::store_element(const loop::Store& to, size_t e, Value* guard) {
  static constexpr Op kCombineOp[] = {Op::add, Op::add, Op::mul, Op::max, Op::min};
  DType dtype = p_.kernel.buffers[size_t(to.buffer)].type;
  Value* x = value(to.value, e);
  guard = both(guard, mask(to.mask, e));
  Value* place = pointer(to.buffer, to.index, e);
  pending_.push_back({guard, [this, &to, dtype, x, place] {
                        int64_t size = size_of(dtype);
                        Value* result = x;
                        if (to.combine != Combine::set) {
                          threads_.touch(place, size, false);
                          Value* old =
                              b_.CreateAlignedLoad(ops_.memory_type(dtype), place, align_of(size));
                          result = ops_.binary(kCombineOp[int(to.combine)], dtype,
                                               ops_.from_memory(old, dtype), x);
                        }
                        threads_.touch(place, size, true);
                        b_.CreateAlignedStore(ops_.to_memory(result, dtype), place, align_of(size));
                      }});
}

/// Elements of `size` bytes side by side, the first in the lowest bits.
static llvm::Value* joined_word(llvm::IRBuilder<>& b, llvm::ArrayRef<llvm::Value*> parts,
                                llvm::Type* type, int64_t size) {
  llvm::Value* word = size < 4 ? b.CreateZExt(parts[0], type) : parts[0];
  for (size_t k = 1; k < parts.size(); ++k)
    word = b.CreateOr(word, b.CreateShl(b.CreateZExt(parts[k], type), k * uint64_t(size) * 8));
  return word;
}

/// Elements as the words of accesses.
Emitter::Values Emitter::packed(const Values& elements, DType dtype) {
  int64_t size = size_of(dtype), piece = std::min<int64_t>(p_.vector, kAccessBytes / size);
  Type* type = access_type(b_, ops_.memory_type(dtype), size, piece * size);
  int64_t in_word = size < 4 ? std::min<int64_t>(4 / size, piece) : 1;
  Values all;
  for (size_t first = 0; first < elements.size(); first += size_t(piece)) {
    Value* access = llvm::PoisonValue::get(type);
    for (int64_t j = 0; j < piece; j += in_word) {
      Type* word_type = type->isVectorTy() ? type->getScalarType() : type;
      Values parts;
      for (int64_t k = 0; k < in_word; ++k)
        parts.push_back(ops_.to_memory(elements[first + size_t(j + k)], dtype));
      Value* word = dtype == DType::bf16 ? threads_.packed_bf16(parts) : nullptr;
      if (!word) word = joined_word(b_, parts, word_type, size);
      access =
          type->isVectorTy() ? b_.CreateInsertElement(access, word, uint64_t(j / in_word)) : word;
    }
    all.push_back(access);
  }
  return all;
}

void Emitter::store_vector(const loop::Store& to, size_t e) {
  DType dtype = p_.kernel.buffers[size_t(to.buffer)].type;
  Values elements;
  for (size_t k = 0; k < size_t(p_.vector); ++k) elements.push_back(value(to.value, e + k));
  Values accesses = packed(elements, dtype);
  Value* base = pointer(to.buffer, to.index, e);
  pending_.push_back({nullptr, [this, dtype, accesses, base] {
                        int64_t bytes = p_.vector * size_of(dtype) / int64_t(accesses.size());
                        for (size_t k = 0; k < accesses.size(); ++k) {
                          Value* place =
                              b_.CreateGEP(b_.getInt8Ty(), base, b_.getInt64(k * uint64_t(bytes)));
                          threads_.touch(place, bytes, true);
                          if (p_.streams_results && bytes == kAccessBytes)
                            threads_.store_streamed(accesses[k], place);
                          else
                            b_.CreateAlignedStore(accesses[k], place, align_of(bytes));
                        }
                      }});
}

void Emitter::flush_stores() {
  for (size_t k = 0; k < pending_.size();) {
    Value* guard = pending_[k].guard;
    when(guard, [&] {
      for (; k < pending_.size() && pending_[k].guard == guard; ++k) pending_[k].emit();
    });
  }
  pending_.clear();
}

}  // namespace tn::cuda
