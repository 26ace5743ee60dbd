// Values on demand.
#include "backend/cuda/codegen/gpu_emitter.h"
#include "base/error.h"

namespace tn::cuda {

using loop::AxisSet;
using loop::Op;

llvm::Value* Emitter::once(int what, uint64_t id, size_t e, const Callback<Value*()>& make) {
  uint64_t key = id << 20 | uint64_t{e} << 4 | static_cast<uint64_t>(what);
  if (auto found = made_.find(key); found != made_.end()) return found->second;
  Value* result = make();
  return made_[key] = result;
}

/// The element that computes a value over `axes` for `e`.
size_t Emitter::canonical(AxisSet axes, size_t e) const {
  size_t vector = static_cast<size_t>(p_.vector);
  if (axes & lane_axes_) return axes & group_axes_ ? e : e % vector;
  return axes & group_axes_ ? e - e % vector : 0;
}

llvm::Value* Emitter::value(ValueId id, size_t e) {
  const loop::Value& v = p_.value(id);
  if (v.op == Op::constant) return ops_.constant(v.literal, v.type);
  e = canonical(v.axes, e);
  return once(0, static_cast<uint64_t>(id), e, [&] { return compute(id, e); });
}

llvm::Value* Emitter::compute(ValueId id, size_t e) {
  const loop::Value& v = p_.value(id);
  auto operand = [&](ValueId from) { return value(from, e); };
  switch (v.op) {
    case Op::argument:
      return ops_.from_memory(threads_.param(size_t(argument_param_[size_t(v.a)])), v.type);
    case Op::index:
      return as(position(v.index, e), b_.getInt64Ty());
    case Op::load:
      return load(id, e);
    case Op::cast:
      return p_.inside[size_t(id)] ? ops_.truncated(operand(v.a), v.type)
                                   : ops_.cast(operand(v.a), p_.value(v.a).type, v.type);
    case Op::bitcast:
      return ops_.bitcast(operand(v.a), p_.value(v.a).type, v.type);
    case Op::select:
      return ops_.select(operand(v.a), operand(v.b), operand(v.c));
    case Op::fma:
      return ops_.fma(operand(v.a), operand(v.b), operand(v.c));
    case Op::scan:
      return compute_scan(id);
    case Op::reduce:
      invariant(false, "kernel {}: v{} is used before it is reduced", p_.kernel.name, id);
      return nullptr;
    default: {
      if (p_.reciprocal[size_t(id)]) return threads_.reciprocal(operand(v.b));
      if (is_share(v)) return share(id, e);
      Value* a = operand(v.a);
      DType type = p_.value(v.a).type;
      if (loop::facts(v.op).operands == 1) return ops_.unary(v.op, type, a);
      if (v.op == Op::rem && is_float(type)) return float_remainder(type, a, operand(v.b));
      return ops_.binary(v.op, type, a, operand(v.b));
    }
  }
}

/// Whether it is divided by the sum of its row, as in softmax: one divisor for all elements.
bool Emitter::is_share(const loop::Value& v) const {
  if (v.op != Op::div || v.type != DType::f32 || !p_.unrolled || p_.group == 1) return false;
  const loop::Value& by = p_.value(v.b);
  return by.op == Op::reduce && by.monoid == loop::Monoid::add && by.a == v.a;
}

/// Whether shares of the sum need a division: the least elements are looked at first.
llvm::Value* Emitter::needs_division(const Values& xs, Value* sum) {
  auto real = [&](double x) { return llvm::ConstantFP::get(b_.getFloatTy(), x); };
  auto size = [&](Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value* least = size(xs[0]);
  for (Value* x : xs) least = b_.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, least, size(x));
  Value* tiny = codegen::when(b_, b_.CreateFCmpOLT(least, real(0x1p-90)), {b_.getFalse()}, [&] {
    Value* any = b_.getFalse();
    for (Value* x : xs) {
      Value* zero = b_.CreateICmpEQ(b_.CreateBitCast(x, b_.getInt32Ty()), b_.getInt32(0));
      Value* small = b_.CreateFCmpOLT(size(x), real(0x1p-90));
      any = b_.CreateOr(any, b_.CreateAnd(small, b_.CreateNot(zero)));
    }
    return Values{any};
  })[0];
  Value* usual = b_.CreateAnd(b_.CreateFCmpOGE(sum, real(1)), b_.CreateFCmpOLT(sum, real(0x1p30)));
  return b_.CreateOr(tiny, b_.CreateNot(usual));
}

// With the rounded reciprocal z of the sum s, and what it lacks, q is next to x / s. Where x - q s
// is exact, q + (x - q s) z is rounded as the quotient is (Markstein's theorem): where x is +0 or
// not tiny, and 1 <= s < 2^30. No x is infinite or NaN where s is neither. Otherwise all elements
// of the thread are divided, in one branch, so that their stores stay together.
llvm::Value* Emitter::share(ValueId id, size_t e) {
  const loop::Value& v = p_.value(id);
  Value* sum = value(v.b, e);
  Values xs;
  for (size_t k = 0; k < at_.size(); ++k) xs.push_back(value(v.a, k));
  Value* divides = needs_division(xs, sum);
  Value* one = llvm::ConstantFP::get(b_.getFloatTy(), 1);
  Value* near = b_.CreateFDiv(one, sum);
  Value* rest = b_.CreateFMul(ops_.fma(b_.CreateFNeg(sum), near, one), near);
  auto divided = [&] {
    Values results;
    for (Value* x : xs) results.push_back(b_.CreateFDiv(x, sum));
    return results;
  };
  auto shared = [&] {
    Values results;
    for (Value* x : xs) {
      Value* about = ops_.fma(x, rest, b_.CreateFMul(x, near));
      Value* left = ops_.fma(b_.CreateFNeg(about), sum, x);
      results.push_back(ops_.fma(left, near, about));
    }
    return results;
  };
  Values shares = codegen::either(b_, divides, divided, shared);
  for (size_t k = 0; k < xs.size(); ++k)
    if (k != e) once(0, static_cast<uint64_t>(id), k, [&] { return shares[k]; });
  return shares[e];
}

// Computed once per step; the carry is what the next step begins with.
llvm::Value* Emitter::compute_scan(ValueId id) {
  const loop::Value& v = p_.value(id);
  Value* before = carry_.at(id);
  Value* after = ops_.combine(v.monoid, v.type, before, value(v.a, 0));
  carry_[id] = after;
  return v.exclusive ? before : after;
}

// As fmod: exact. Mantissas are divided as integers, a few bits of the quotient at a time.
llvm::Value* Emitter::float_remainder(DType dtype, Value* x, Value* y) {
  bool is_short = dtype == DType::f32;
  int digits = is_short ? 23 : 52, step = is_short ? 32 : 11;
  Type *wide = b_.getInt64Ty(), *type = x->getType();
  uint64_t sign = uint64_t{1} << (is_short ? 31 : 63), one = uint64_t{1} << digits;
  auto bits = [&](Value* a) {
    Type* same = b_.getIntNTy(is_short ? 32 : 64);
    return b_.CreateAnd(b_.CreateZExt(b_.CreateBitCast(a, same), wide), b_.getInt64(sign - 1));
  };
  Value *ux = bits(x), *uy = bits(y);
  auto exponent = [&](Value* u) {  // subnormals have that of the least normal number
    return codegen::larger(b_, b_.CreateLShr(u, uint64_t(digits)), b_.getInt64(1));
  };
  auto mantissa = [&](Value* u) {
    Value* low = b_.CreateAnd(u, b_.getInt64(one - 1));
    Value* normal = b_.CreateICmpUGE(u, b_.getInt64(one));
    return b_.CreateSelect(normal, b_.CreateOr(low, b_.getInt64(one)), low);
  };
  Value* infinity = b_.getInt64((sign - 1) & ~(one - 1));
  Value* fails =
      b_.CreateOr(b_.CreateICmpEQ(uy, b_.getInt64(0)),
                  b_.CreateOr(b_.CreateICmpUGE(ux, infinity), b_.CreateICmpUGT(uy, infinity)));
  Value* by = b_.CreateSelect(fails, b_.getInt64(1), mantissa(uy));
  Value* ey = exponent(uy);
  Value* rounds = b_.CreateSelect(fails, b_.getInt64(0), b_.CreateSub(exponent(ux), ey));
  Value* rest = b_.CreateURem(mantissa(ux), by);
  // Counts down to 0: the shift of each round is what is left, at most `step`.
  Values left = codegen::loop(
      b_, b_.getInt64(0), rounds, step, {rest}, false, [&](Value* i, const Values& now) {
        Value* shift = codegen::smaller(b_, b_.CreateSub(rounds, i), b_.getInt64(uint64_t(step)));
        return Values{b_.CreateURem(b_.CreateShl(now[0], shift), by)};
      });
  // The unit of y's last place: a power of two, itself subnormal for small y.
  Value* small = b_.CreateShl(b_.getInt64(1), codegen::smaller(b_, b_.CreateSub(ey, b_.getInt64(1)),
                                                               b_.getInt64(uint64_t(digits))));
  Value* large = b_.CreateShl(b_.CreateSub(ey, b_.getInt64(uint64_t(digits))), uint64_t(digits));
  Value* is_small = b_.CreateICmpSLE(ey, b_.getInt64(uint64_t(digits)));
  Value* unit =
      b_.CreateTrunc(b_.CreateSelect(is_small, small, large), b_.getIntNTy(is_short ? 32 : 64));
  Value* result = b_.CreateFMul(b_.CreateUIToFP(left[0], type), b_.CreateBitCast(unit, type));
  result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
  result = b_.CreateSelect(b_.CreateICmpULT(ux, uy), x, result);
  return b_.CreateSelect(fails, llvm::ConstantFP::getNaN(type), result);
}

}  // namespace tn::cuda
