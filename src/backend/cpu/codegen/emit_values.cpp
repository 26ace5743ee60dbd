// Values on demand.
#include "backend/cpu/codegen/emitter.h"
#include "base/error.h"

namespace tn::cpu {

using loop::AxisSet;
using loop::Op;

Emitter::In::In(Emitter& emitter, Scope scope) : b_(emitter.b_), saved_(emitter.b_.saveIP()) {
  llvm::BasicBlock* home = emitter.home_[scope];
  if (!home) return;
  if (llvm::Instruction* end = home->getTerminator())
    b_.SetInsertPoint(end);
  else
    b_.SetInsertPoint(home);
}

llvm::Value* Emitter::once(Scope scope, Made what, uint64_t id, int copy,
                           const Callback<Value*()>& make) {
  uint64_t key = id << 16 | static_cast<uint64_t>(copy) << 4 | static_cast<uint64_t>(what);
  if (auto found = made_[scope].find(key); found != made_[scope].end()) return found->second;
  Value* result;
  {
    In home(*this, scope);
    result = make();
  }
  return made_[scope][key] = result;
}

Emitter::Scope Emitter::scope_of(AxisSet axes) const {
  AxisSet step = s_.inner_axes;
  if (s_.mode == Mode::flat && s_.vector_axis >= 0) step = AxisSet{1} << s_.vector_axis;
  return axes & step ? kStep : axes ? kUnit : kCall;
}

// Results of reductions exist in their unit only.
Emitter::Scope Emitter::scope_of(ValueId id) const {
  Scope scope = scope_of(s_.value(id).axes);
  return scope == kCall && s_.depth[static_cast<size_t>(id)] > 0 ? kUnit : scope;
}

bool Emitter::is_vector(AxisSet axes) const {
  if (s_.lanes == 1) return false;
  return s_.spread ? (axes & s_.inner_axes) != 0 : (axes >> s_.vector_axis & 1) != 0;
}

int Emitter::copy_of(AxisSet axes, int copy) const {
  bool varies = s_.tile_axis < 0 ? is_vector(axes) : (axes >> s_.tile_axis & 1) != 0;
  return varies ? copy : 0;
}

llvm::Type* Emitter::vector_of(llvm::Type* element) const {
  return s_.lanes > 1 ? llvm::FixedVectorType::get(element, lanes()) : element;
}

llvm::Value* Emitter::iota(llvm::Type* element, int64_t first, int64_t step) {
  std::vector<llvm::Constant*> numbers;
  for (int k = 0; k < s_.lanes; ++k)
    numbers.push_back(llvm::ConstantInt::getSigned(element, first + k * step));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* Emitter::first_lanes(Value* count, int64_t first) {
  Value* left = splat(b_.CreateTrunc(count, b_.getInt32Ty()));
  return b_.CreateICmpULT(iota(b_.getInt32Ty(), first, 1), left);
}

llvm::Value* Emitter::value(ValueId id, int copy) {
  const loop::Value& v = s_.value(id);
  if (v.op == Op::constant) return ops_.constant(v.literal, v.type);
  copy = copy_of(v.axes, copy);
  return once(scope_of(id), Made::value, static_cast<uint64_t>(id), copy,
              [&] { return compute(id, copy); });
}

llvm::Value* Emitter::vector(ValueId id, int copy) {
  Value* x = value(id, copy);
  if (s_.lanes == 1 || x->getType()->isVectorTy()) return x;
  if (llvm::isa<llvm::Constant>(x)) return splat(x);
  return once(scope_of(id), Made::splat, static_cast<uint64_t>(id),
              copy_of(s_.value(id).axes, copy), [&] { return splat(x); });
}

llvm::Value* Emitter::compute(ValueId id, int copy) {
  const loop::Value& v = s_.value(id);
  bool wide = is_vector(id);
  auto operand = [&](ValueId from) { return wide ? vector(from, copy) : value(from, copy); };
  llvm::Align align(static_cast<uint64_t>(size_of(v.type)));
  bool kept = s_.mode == Mode::rows && s_.kept[static_cast<size_t>(id)] >= 0;
  if (kept && kept_ready_[static_cast<size_t>(id)]) {
    llvm::Type* type = vector_of(ops_.memory_type(v.type));
    Value* raw = b_.CreateAlignedLoad(type, kept_place(id, copy), align);
    return ops_.from_memory(raw, v.type);
  }
  Value* result = nullptr;
  switch (v.op) {
    case Op::argument:
      return argument(v);
    case Op::index:
      return wide ? positions(v.index, copy) : position(v.index);
    case Op::load:
      result = load(id, copy);
      break;
    case Op::cast:
      result = s_.inside[static_cast<size_t>(id)]
                   ? ops_.truncated(operand(v.a), v.type)
                   : ops_.cast(operand(v.a), s_.value(v.a).type, v.type);
      break;
    case Op::bitcast:
      result = ops_.bitcast(operand(v.a), s_.value(v.a).type, v.type);
      break;
    case Op::select:
      result = ops_.select(operand(v.a), operand(v.b), operand(v.c));
      break;
    case Op::fma:
      result = ops_.fma(operand(v.a), operand(v.b), operand(v.c));
      break;
    case Op::scan:
      return compute_scan(id, copy);
    case Op::reduce:
      invariant(false, "kernel {}: v{} is used before it is reduced", s_.kernel.name, id);
      break;
    default: {
      Value* a = operand(v.a);
      DType type = s_.value(v.a).type;
      result = loop::facts(v.op).operands == 1 ? ops_.unary(v.op, type, a)
                                               : ops_.binary(v.op, type, a, operand(v.b));
    }
  }
  if (kept) b_.CreateAlignedStore(ops_.to_memory(result, v.type), kept_place(id, copy), align);
  return result;
}

// Each scan is computed once per step; the carry is what the next step begins with.
llvm::Value* Emitter::compute_scan(ValueId id, int copy) {
  const loop::Value& v = s_.value(id);
  Value*& carry = carries_.at(id)[static_cast<size_t>(copy)];
  Value* before = carry;
  Value* x = is_vector(id) ? vector(v.a, copy) : value(v.a, 0);
  carry = ops_.combine(v.monoid, v.type, before, x);
  return v.exclusive ? before : carry;
}

llvm::Value* Emitter::argument(const loop::Value& v) {
  Value* arguments = frame_field(1, "arguments");
  Value* at = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), arguments, static_cast<uint64_t>(v.a));
  return ops_.from_memory(b_.CreateLoad(ops_.memory_type(v.type), at), v.type);
}

}  // namespace tn::cpu
