// Conversions between element types.
#include <llvm/IR/PatternMatch.h>

#include <cmath>

#include "backend/llvm/llvm_ops.h"
#include "base/half.h"

namespace tn::codegen {

using llvm::Constant;
using llvm::ConstantFP;
using llvm::Type;
using llvm::Value;

static bool is_narrow_float(DType type) {
  return is_float(type) && type != DType::f32 && type != DType::f64;
}

// Narrow floats convert from and to f32, and long integers to them through a double rounded to
// odd, so that two roundings make one.
Value* Ops::cast(Value* a, DType from, DType to) {
  if (from == to) return a;
  if (is_narrow_float(from)) return cast(widen(a, from), DType::f32, to);
  if (is_narrow_float(to)) {
    if (from == DType::f32) return narrow(a, to);
    bool is_long = from == DType::f64 || (is_integer(from) && size_of(from) >= 4);
    return is_long ? narrow_odd(a, from, to) : narrow(cast(a, from, DType::f32), to);
  }
  Type* target = shaped(type(to), a);
  if (to == DType::b1)
    return is_float(from) ? b.CreateFCmpUNE(a, Constant::getNullValue(a->getType()))
                          : b.CreateICmpNE(a, Constant::getNullValue(a->getType()));
  if (is_float(from) && is_float(to))
    return to == DType::f64 ? b.CreateFPExt(a, target) : b.CreateFPTrunc(a, target);
  if (is_float(from)) return float_to_integer(a, to);
  if (is_float(to)) return is_signed(from) ? b.CreateSIToFP(a, target) : b.CreateUIToFP(a, target);
  return b.CreateIntCast(a, target, is_signed(from));
}

Value* Ops::truncated(Value* a, DType to) { return b.CreateFPToSI(a, shaped(type(to), a)); }

// Saturates, and takes NaN to 0. LLVM's own saturating conversion takes vectors apart.
Value* Ops::float_to_integer(Value* a, DType to) {
  bool sign = is_signed(to);
  unsigned bits = static_cast<unsigned>(size_of(to)) * 8;
  double top = std::ldexp(1.0, static_cast<int>(sign ? bits - 1 : bits)), low = sign ? -top : 0;
  Type* target = shaped(type(to), a);
  Constant* least = ConstantFP::get(a->getType(), low);
  Value* above = b.CreateSelect(b.CreateFCmpOGT(a, least), a, least);
  Value* too_large = b.CreateFCmpOGE(above, ConstantFP::get(a->getType(), top));
  Value* safe = b.CreateSelect(too_large, Constant::getNullValue(a->getType()), above);
  // Narrow results come by way of 32 bits, which machines convert to.
  bool narrow = bits < 32;
  Type* wide = narrow ? shaped(b.getInt32Ty(), a) : target;
  Value* whole = sign || narrow ? b.CreateFPToSI(safe, wide) : b.CreateFPToUI(safe, wide);
  if (narrow) whole = b.CreateTrunc(whole, target);
  using llvm::APInt;
  APInt most = sign ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits);
  Value* result = b.CreateSelect(too_large, llvm::ConstantInt::get(target, most), whole);
  return b.CreateSelect(b.CreateFCmpUNO(a, a), Constant::getNullValue(target), result);
}

Value* Ops::widen(Value* a, DType from) {
  if (from == DType::f16 && has_half_)
    return b.CreateFPExt(b.CreateBitCast(a, shaped(b.getHalfTy(), a)), shaped(b.getFloatTy(), a));
  if (from == DType::f16) return widen_bits<Float16Format>(a);
  if (from == DType::f8e4m3) return widen_bits<Float8E4M3Format>(a);
  if (from == DType::f8e5m2) return widen_bits<Float8E5M2Format>(a);
  Value* wide =
      b.CreateShl(b.CreateZExt(a, shaped(b.getInt32Ty(), a)),
                  Constant::getIntegerValue(shaped(b.getInt32Ty(), a), llvm::APInt(32, 16)));
  return b.CreateBitCast(wide, shaped(b.getFloatTy(), a));
}

/// The narrow number that `wide` was made of, of the type `narrow`; null where there is none.
static Value* narrow_source(llvm::IRBuilderBase& b, Value* wide, Type* narrow) {
  using namespace llvm::PatternMatch;
  if (auto* number = llvm::dyn_cast<ConstantFP>(wide)) {
    llvm::APFloat value = number->getValueAPF();
    bool loses = false;
    value.convert(narrow->getFltSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return loses || value.isNaN() ? nullptr : ConstantFP::get(narrow, value);
  }
  Value* from = nullptr;
  if (match(wide, m_FPExt(m_Value(from)))) return from->getType() == narrow ? from : nullptr;
  bool is_shifted = match(wide, m_BitCast(m_Shl(m_ZExt(m_Value(from)), m_SpecificInt(16))));
  bool is_bfloat = is_shifted && narrow->isBFloatTy() && from->getType()->isIntegerTy(16);
  return is_bfloat ? b.CreateBitCast(from, narrow) : nullptr;
}

/// Whether the product of any bf16 and this one is a number of f32. Other products may lie below
/// its smallest ones: then f32 rounds, and rounding again is not what rounding once gives.
static bool is_exact_factor(Value* x) {
  auto* number = llvm::dyn_cast<ConstantFP>(x);
  return number && !number->isZero() && number->getValueAPF().isFinite() &&
         ilogb(number->getValueAPF()) >= -8;
}

/// `wide`, a sum, difference or product of narrow numbers, computed in their type: f32 has more
/// than twice their digits, so to round it first changes nothing. Null: it is something else.
static Value* narrow_arithmetic(llvm::IRBuilderBase& b, Value* wide, Type* narrow) {
  auto* op = llvm::dyn_cast<llvm::BinaryOperator>(wide);
  if (!op || !op->getType()->isFloatTy()) return nullptr;
  auto code = op->getOpcode();
  if (code != llvm::Instruction::FAdd && code != llvm::Instruction::FSub &&
      code != llvm::Instruction::FMul)
    return nullptr;
  Value* x = narrow_source(b, op->getOperand(0), narrow);
  Value* y = x ? narrow_source(b, op->getOperand(1), narrow) : nullptr;
  bool may_round = code == llvm::Instruction::FMul && narrow->isBFloatTy();
  if (!y || (may_round && !is_exact_factor(x) && !is_exact_factor(y))) return nullptr;
  return b.CreateBinOp(code, x, y);
}

Value* Ops::narrow(Value* a, DType to) {
  if (has_narrow_math_ && (to == DType::f16 || to == DType::bf16)) {
    Type* type = to == DType::f16 ? b.getHalfTy() : b.getBFloatTy();
    if (Value* made = narrow_arithmetic(b, a, type)) return b.CreateBitCast(made, b.getInt16Ty());
  }
  if (to == DType::f16 && has_half_)
    return b.CreateBitCast(b.CreateFPTrunc(a, shaped(b.getHalfTy(), a)), shaped(b.getInt16Ty(), a));
  if (to == DType::f16) return narrow_bits<Float16Format>(a);
  if (to == DType::f8e4m3) return narrow_bits<Float8E4M3Format>(a);
  if (to == DType::f8e5m2) return narrow_bits<Float8E5M2Format>(a);
  if (has_bfloat_)
    return b.CreateBitCast(b.CreateFPTrunc(a, shaped(b.getBFloatTy(), a)),
                           shaped(b.getInt16Ty(), a));
  Value* bits = b.CreateBitCast(a, shaped(b.getInt32Ty(), a));
  Value* high = b.CreateLShr(bits, word(bits, 16));
  Value* odd = b.CreateAnd(high, word(bits, 1));
  Value* rounded =
      b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, word(bits, 0x7fff)), odd), word(bits, 16));
  Value* quiet = b.CreateOr(high, word(bits, 0x40));
  Value* result = b.CreateSelect(b.CreateFCmpUNO(a, a), quiet, rounded);
  return b.CreateTrunc(result, shaped(b.getInt16Ty(), a));
}

// See NarrowFormat::widen.
template <class F>
Value* Ops::widen_bits(Value* a) {
  Type* ints = shaped(b.getInt32Ty(), a);
  Value* bits = b.CreateZExt(a, ints);
  int bit_count = static_cast<int>(sizeof(typename F::Bits)) * 8;
  Value* magnitude = b.CreateAnd(bits, word(bits, F::kSign - 1));
  Value* sign = b.CreateShl(b.CreateAnd(bits, word(bits, F::kSign)),
                            word(bits, static_cast<uint64_t>(32 - bit_count)));
  Value* shifted = b.CreateShl(magnitude, word(bits, F::kShift));
  Value* normal = b.CreateAdd(shifted, word(bits, F::kRebias));
  constexpr uint32_t kMantissa = 23 - F::kShift;
  float step = std::bit_cast<float>(F::kLeastNormal - (kMantissa << 23));
  Value* count = b.CreateSIToFP(magnitude, shaped(b.getFloatTy(), a));
  Value* scaled = b.CreateFMul(count, ConstantFP::get(count->getType(), static_cast<double>(step)));
  Value* small = b.CreateBitCast(scaled, ints);
  Value* is_small = b.CreateICmpULT(magnitude, word(bits, 1u << kMantissa));
  Value* result = b.CreateSelect(is_small, small, normal);
  if (F::kNan != F::kSign - 1) {
    Value* special = b.CreateOr(shifted, word(bits, 0x7fc00000));
    result = b.CreateSelect(b.CreateICmpEQ(magnitude, word(bits, F::kTop)), word(bits, 0x7f800000),
                            result);
    result = b.CreateSelect(b.CreateICmpUGT(magnitude, word(bits, F::kTop)), special, result);
  } else {
    result = b.CreateSelect(b.CreateICmpEQ(magnitude, word(bits, F::kNan)), word(bits, 0x7fc00000),
                            result);
  }
  return b.CreateBitCast(b.CreateOr(sign, result), shaped(b.getFloatTy(), a));
}

// See NarrowFormat::narrow.
template <class F>
Value* Ops::narrow_bits(Value* a) {
  Type* ints = shaped(b.getInt32Ty(), a);
  Value* bits = b.CreateBitCast(a, ints);
  int bit_count = static_cast<int>(sizeof(typename F::Bits)) * 8;
  constexpr uint32_t kMantissa = 23 - F::kShift;
  constexpr bool kInfinities = F::kNan != F::kSign - 1;
  Value* magnitude = b.CreateAnd(bits, word(bits, 0x7fffffff));
  Value* sign = b.CreateLShr(b.CreateAnd(bits, word(bits, 0x80000000)),
                             word(bits, static_cast<uint64_t>(32 - bit_count)));
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, word(bits, F::kShift)), word(bits, 1));
  uint32_t half = (1u << (F::kShift - 1)) - 1 - F::kRebias;
  Value* normal = b.CreateLShr(b.CreateAdd(b.CreateAdd(magnitude, word(bits, half)), odd),
                               word(bits, F::kShift));
  constexpr uint32_t kMagic = F::kLeastNormal + (static_cast<uint32_t>(F::kShift) << 23);
  Value* absolute = b.CreateBitCast(magnitude, a->getType());
  Value* sum = b.CreateFAdd(
      absolute, ConstantFP::get(a->getType(), static_cast<double>(std::bit_cast<float>(kMagic))));
  Value* small = b.CreateSub(b.CreateBitCast(sum, ints), word(bits, kMagic));
  Value* result =
      b.CreateSelect(b.CreateICmpULT(magnitude, word(bits, F::kLeastNormal)), small, normal);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, word(bits, F::kOverflow)),
                          word(bits, kInfinities ? F::kTop : F::kNan), result);
  Value* nan = word(bits, F::kNan);
  if (kInfinities) {
    Value* payload = b.CreateAnd(b.CreateLShr(magnitude, word(bits, F::kShift)),
                                 word(bits, (1u << kMantissa) - 1));
    nan = b.CreateOr(nan, payload);
  }
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, word(bits, 0x7f800000)), nan, result);
  return b.CreateTrunc(b.CreateOr(sign, result),
                       shaped(b.getIntNTy(static_cast<unsigned>(bit_count)), a));
}

Value* Ops::narrow_odd(Value* a, DType from, DType to) {
  Value* wide = from == DType::f64 ? a : to_double_odd(a, from);
  return narrow(double_to_float_odd(wide), to);
}

// Long integers keep a multiple of 2^11 that is odd when bits were lost.
Value* Ops::to_double_odd(Value* a, DType from) {
  Type* doubles = shaped(b.getDoubleTy(), a);
  auto convert = [&](Value* x) {
    return is_signed(from) ? b.CreateSIToFP(x, doubles) : b.CreateUIToFP(x, doubles);
  };
  if (size_of(from) < 8) return convert(a);
  constexpr uint64_t kExact = uint64_t{1} << 53;
  Value* exact = is_signed(from)
                     ? b.CreateICmpULE(b.CreateAdd(a, word(a, kExact)), word(a, 2 * kExact))
                     : b.CreateICmpULE(a, word(a, kExact));
  Value* lost = b.CreateICmpNE(b.CreateAnd(a, word(a, 0x7ff)), word(a, 0));
  Value* sticky = b.CreateSelect(lost, word(a, 0x800), word(a, 0));
  Value* odd = b.CreateOr(b.CreateAnd(a, word(a, ~uint64_t{0x7ff})), sticky);
  return convert(b.CreateSelect(exact, a, odd));
}

// See double_to_float_odd of base/half.h.
Value* Ops::double_to_float_odd(Value* a) {
  Type *floats = shaped(b.getFloatTy(), a), *ints = shaped(b.getInt32Ty(), a);
  Value* near = b.CreateFPTrunc(a, floats);
  Value* bits = b.CreateBitCast(near, ints);
  Value* back = b.CreateFPExt(near, a->getType());
  Value* exact = b.CreateFCmpUEQ(back, a);
  Value* far = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back);
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
  Value* away = b.CreateZExt(b.CreateFCmpOGT(far, magnitude), ints);
  Value* odd = b.CreateOr(b.CreateSub(bits, away), word(bits, 1));
  return b.CreateBitCast(b.CreateSelect(exact, bits, odd), floats);
}

}  // namespace tn::codegen
