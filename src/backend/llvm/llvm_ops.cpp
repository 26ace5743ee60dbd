#include "backend/llvm/llvm_ops.h"

#include <llvm/IR/Module.h>

#include <cstring>

#include "base/error.h"
#include "runtime/scalar_bits.h"

namespace tn::codegen {

using llvm::Constant;
using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;
using loop::Monoid;
using loop::Op;

static bool is_native_float(DType type) { return type == DType::f32 || type == DType::f64; }

Type* Ops::type(DType type) const {
  if (type == DType::b1) return b.getInt1Ty();
  if (type == DType::f32) return b.getFloatTy();
  if (type == DType::f64) return b.getDoubleTy();
  return b.getIntNTy(static_cast<unsigned>(size_of(type)) * 8);
}

Type* Ops::memory_type(DType dtype) const {
  return dtype == DType::b1 ? b.getInt8Ty() : type(dtype);
}

Constant* Ops::constant_bits(uint64_t bits, DType dtype) const {
  if (dtype == DType::b1) return b.getInt1(bits & 1);
  unsigned width = static_cast<unsigned>(size_of(dtype)) * 8;
  Constant* word = ConstantInt::get(b.getIntNTy(width), llvm::APInt(64, bits).trunc(width));
  return llvm::ConstantExpr::getBitCast(word, type(dtype));
}

Constant* Ops::constant(const Scalar& value, DType type) const {
  std::array<std::byte, 8> element = element_bits(value, type);
  uint64_t bits;
  std::memcpy(&bits, element.data(), 8);
  return constant_bits(bits, type);
}

Type* Ops::shaped(Type* element, Value* like) const {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

Constant* Ops::word(Value* like, uint64_t bits) const {
  unsigned width = like->getType()->getScalarSizeInBits();
  return ConstantInt::get(shaped(b.getIntNTy(width), like), llvm::APInt(64, bits).trunc(width));
}

Value* Ops::unary(Op op, DType dtype, Value* a) {
  bool real = is_float(dtype);
  auto call = [&](ID id) { return b.CreateUnaryIntrinsic(id, a); };
  switch (op) {
    case Op::neg:
      return real ? b.CreateFNeg(a) : b.CreateNeg(a);
    case Op::abs:
      if (real) return call(llvm::Intrinsic::fabs);
      if (!is_signed(dtype)) return a;
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b.getFalse());
    case Op::not_:
      return b.CreateNot(a);
    case Op::floor:
      return call(llvm::Intrinsic::floor);
    case Op::ceil:
      return call(llvm::Intrinsic::ceil);
    case Op::round:
      return call(llvm::Intrinsic::rint);
    case Op::trunc:
      return call(llvm::Intrinsic::trunc);
    case Op::sqrt:
      return call(llvm::Intrinsic::sqrt);
    case Op::is_nan:
      return b.CreateFCmpUNO(a, a);
    default:
      invariant(false, "no machine code for {}", loop::facts(op).name);
      return nullptr;
  }
}

Value* Ops::binary(Op op, DType dtype, Value* x, Value* y) {
  bool real = is_float(dtype);
  switch (op) {
    case Op::max:
    case Op::min:
      return extreme(op == Op::max, dtype, x, y);
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
      return compare(op, dtype, x, y);
    case Op::copysign:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, y);
    case Op::add:
      if (real) return b.CreateFAdd(x, y);
      break;
    case Op::sub:
      if (real) return b.CreateFSub(x, y);
      break;
    case Op::mul:
      if (real) return b.CreateFMul(x, y);
      break;
    case Op::div:
      if (real) return b.CreateFDiv(x, y);
      break;
    default:
      break;
  }
  return integer_binary(op, dtype, x, y);
}

Value* Ops::integer_binary(Op op, DType dtype, Value* x, Value* y) {
  switch (op) {
    case Op::add:
      return b.CreateAdd(x, y);
    case Op::sub:
      return b.CreateSub(x, y);
    case Op::mul:
      return b.CreateMul(x, y);
    case Op::div:
    case Op::rem:
      return quotient(op == Op::rem, is_signed(dtype), x, y);
    case Op::and_:
      return b.CreateAnd(x, y);
    case Op::or_:
      return b.CreateOr(x, y);
    case Op::xor_:
      return b.CreateXor(x, y);
    case Op::shl:
    case Op::shr:
      return shift(op == Op::shl, is_signed(dtype), x, y);
    default:
      invariant(false, "no machine code for {} of {}", loop::facts(op).name, dtype);
      return nullptr;
  }
}

Value* Ops::compare(Op op, DType dtype, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  int k = static_cast<int>(op) - static_cast<int>(Op::eq);
  static constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE};
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE};
  static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE};
  if (is_float(dtype)) return b.CreateFCmp(kFloat[k], x, y);
  return b.CreateICmp(is_signed(dtype) ? kSigned[k] : kUnsigned[k], x, y);
}

// A NaN operand is the result; of equals the second. The inner select is one machine instruction.
Value* Ops::extreme(bool max, DType dtype, Value* x, Value* y) {
  Value* first = max ? compare(Op::lt, dtype, y, x) : compare(Op::lt, dtype, x, y);
  if (!is_float(dtype)) return b.CreateSelect(first, x, y);
  first = max ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, b.CreateSelect(first, x, y));
}

// Division by 0 gives 0, and the least number by -1 wraps around: neither reaches the machine.
Value* Ops::quotient(bool remainder, bool is_signed, Value* x, Value* y) {
  Constant *zero = Constant::getNullValue(x->getType()), *one = word(x, 1);
  Value* by_zero = b.CreateICmpEQ(y, zero);
  Value* special = by_zero;
  Value* by_minus_one = nullptr;
  if (is_signed) {
    by_minus_one = b.CreateICmpEQ(y, Constant::getAllOnesValue(x->getType()));
    special = b.CreateOr(by_zero, by_minus_one);
  }
  Value* safe = b.CreateSelect(special, one, y);
  if (remainder)
    return b.CreateSelect(special, zero, is_signed ? b.CreateSRem(x, safe) : b.CreateURem(x, safe));
  Value* result = is_signed ? b.CreateSDiv(x, safe) : b.CreateUDiv(x, safe);
  if (is_signed) result = b.CreateSelect(by_minus_one, b.CreateNeg(x), result);
  return b.CreateSelect(by_zero, zero, result);
}

// A negative count is a large one: both shift everything out.
Value* Ops::shift(bool left, bool is_signed, Value* x, Value* count) {
  uint64_t bits = x->getType()->getScalarSizeInBits();
  Value* inside = b.CreateICmpULT(count, word(x, bits));
  Constant* zero = Constant::getNullValue(x->getType());
  Value* safe = b.CreateSelect(inside, count, zero);
  if (left) return b.CreateSelect(inside, b.CreateShl(x, safe), zero);
  if (!is_signed) return b.CreateSelect(inside, b.CreateLShr(x, safe), zero);
  return b.CreateAShr(x, b.CreateSelect(inside, count, word(x, bits - 1)));
}

/// x limited by a constant: `x < c ? c : x`, `c < x ? c : x` or `x < c ? x : c`. GPUs have one
/// instruction for each, which treats NaN alike: the first two keep it, the last gives c. Of zeros
/// `x < 0 ? -0 : x` is one, since -0 is less than 0 there. Null: it is something else.
static Value* limited(llvm::IRBuilderBase& b, Value* condition, Value* yes, Value* no) {
  auto* test = llvm::dyn_cast<llvm::FCmpInst>(condition);
  if (!test || test->getPredicate() != llvm::CmpInst::FCMP_OLT) return nullptr;
  Value *left = test->getOperand(0), *right = test->getOperand(1);
  bool below = llvm::isa<ConstantFP>(right);  // x < c
  auto* limit = llvm::dyn_cast<ConstantFP>(below ? right : left);
  Value* x = below ? left : right;
  if (!limit || limit->isNaN() || llvm::isa<ConstantFP>(x)) return nullptr;
  if (limit->isZero()) {
    auto* zero = llvm::dyn_cast<ConstantFP>(yes);
    bool is_limit = below && no == x && zero && zero->isZero() && zero->isNegative();
    return is_limit ? b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, zero) : nullptr;
  }
  ID keeping = below ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum;
  if (yes == limit && no == x) return b.CreateBinaryIntrinsic(keeping, x, limit);
  if (below && yes == x && no == limit)
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, x, limit);
  return nullptr;
}

Value* Ops::select(Value* condition, Value* yes, Value* no) {
  llvm::StringRef target = b.GetInsertBlock()->getModule()->getTargetTriple();
  bool gpu = target.starts_with("nvptx");
  Value* made = gpu ? limited(b, condition, yes, no) : nullptr;
  return made ? made : b.CreateSelect(condition, yes, no);
}

Value* Ops::fma(Value* x, Value* y, Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

Value* Ops::from_memory(Value* a, DType type) {
  if (type != DType::b1) return a;
  return b.CreateICmpNE(a, Constant::getNullValue(a->getType()));
}

Value* Ops::to_memory(Value* a, DType type) {
  return type == DType::b1 ? b.CreateZExt(a, shaped(b.getInt8Ty(), a)) : a;
}

Value* Ops::bitcast(Value* a, DType from, DType to) {
  if (from == to) return a;
  if (from == DType::b1) a = to_memory(a, from);
  if (to == DType::b1) return from_memory(a, to);
  return b.CreateBitCast(a, shaped(type(to), a));
}

Value* Ops::combine(Monoid monoid, DType type, Value* acc, Value* x) {
  static constexpr Op kOp[] = {Op::add, Op::mul, Op::max, Op::min, Op::and_, Op::or_};
  return binary(kOp[static_cast<int>(monoid)], type, acc, x);
}

// Of float sums it is -0, which changes no operand.
Constant* Ops::identity(Monoid monoid, DType dtype) const {
  if (monoid == Monoid::argmax) monoid = Monoid::max;
  if (monoid == Monoid::argmin) monoid = Monoid::min;
  Type* t = type(dtype);
  bool real = is_float(dtype);
  switch (monoid) {
    case Monoid::add:
      return real ? ConstantFP::getZero(t, true) : Constant::getNullValue(t);
    case Monoid::mul:
      return real ? ConstantFP::get(t, 1.0) : ConstantInt::get(t, 1);
    case Monoid::and_:
      return Constant::getAllOnesValue(t);
    case Monoid::or_:
      return Constant::getNullValue(t);
    default:
      break;
  }
  bool max = monoid == Monoid::max;
  if (real) return ConstantFP::getInfinity(t, max);
  unsigned bits = t->getScalarSizeInBits();
  if (!is_signed(dtype)) return max ? Constant::getNullValue(t) : Constant::getAllOnesValue(t);
  using llvm::APInt;
  return ConstantInt::get(t, max ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
}

Constant* Ops::empty(Monoid monoid, DType type) const {
  if (monoid >= Monoid::argmax) return b.getInt64(~uint64_t{0});
  if (monoid == Monoid::add) return Constant::getNullValue(this->type(type));
  return identity(monoid, type);
}

// "No element yet" is the identity at the largest unsigned index: any element is earlier.
Ops::Best Ops::better(Monoid monoid, DType type, Best x, Best y) {
  bool max = monoid == Monoid::argmax;
  Value* wins =
      max ? compare(Op::lt, type, x.value, y.value) : compare(Op::lt, type, y.value, x.value);
  Value* same = compare(Op::eq, type, x.value, y.value);
  if (is_native_float(type)) {
    Value *x_nan = b.CreateFCmpUNO(x.value, x.value), *y_nan = b.CreateFCmpUNO(y.value, y.value);
    wins = b.CreateOr(wins, b.CreateAnd(y_nan, b.CreateNot(x_nan)));
    same = b.CreateOr(same, b.CreateAnd(x_nan, y_nan));
  }
  Value* earlier = b.CreateICmpULT(y.index, x.index);
  Value* take = b.CreateOr(wins, b.CreateAnd(same, earlier));
  return {b.CreateSelect(take, y.value, x.value), b.CreateSelect(take, y.index, x.index)};
}

}  // namespace tn::codegen
