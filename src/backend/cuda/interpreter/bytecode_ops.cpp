#include "backend/cuda/interpreter/bytecode_ops.h"

#include <array>

namespace tn::cuda {

using bytecode::Code;
using bytecode::Narrow;
using bytecode::Small;
using loop::Op;

NumberClass class_of(DType type) {
  switch (type) {
    case DType::i8:
    case DType::i16:
    case DType::i32:
      return NumberClass::i32;
    case DType::i64:
      return NumberClass::i64;
    case DType::u64:
      return NumberClass::u64;
    case DType::f32:
      return NumberClass::f32;
    case DType::f64:
      return NumberClass::f64;
    default:
      return NumberClass::u32;
  }
}

std::optional<Small> small_of(DType type) {
  switch (type) {
    case DType::i8:
      return Small::i8;
    case DType::u8:
      return Small::u8;
    case DType::i16:
      return Small::i16;
    case DType::u16:
      return Small::u16;
    default:
      return {};
  }
}

std::optional<Narrow> narrow_of(DType type) {
  switch (type) {
    case DType::f16:
      return Narrow::f16;
    case DType::bf16:
      return Narrow::bf16;
    case DType::f8e4m3:
      return Narrow::f8e4m3;
    case DType::f8e5m2:
      return Narrow::f8e5m2;
    default:
      return {};
  }
}

namespace {

/// One operation of all classes; `end`: there is none.
struct Row {
  Op op;
  std::array<Code, 6> codes;  // i32, u32, i64, u64, f32, f64
};

#define TN_BITS(op) Code::op##_32, Code::op##_32, Code::op##_64, Code::op##_64
#define TN_SIGNS(op) Code::op##_i32, Code::op##_u32, Code::op##_i64, Code::op##_u64
#define TN_FLOATS(op) Code::op##_f32, Code::op##_f64
#define TN_NO_BITS Code::end, Code::end, Code::end, Code::end
#define TN_NO_FLOATS Code::end, Code::end

constexpr Row kRows[] = {
    {Op::neg, {TN_BITS(neg), TN_FLOATS(neg)}},
    {Op::abs, {TN_BITS(abs), TN_FLOATS(abs)}},
    {Op::not_, {TN_BITS(not), TN_NO_FLOATS}},
    {Op::floor, {TN_NO_BITS, TN_FLOATS(floor)}},
    {Op::ceil, {TN_NO_BITS, TN_FLOATS(ceil)}},
    {Op::round, {TN_NO_BITS, TN_FLOATS(round)}},
    {Op::trunc, {TN_NO_BITS, TN_FLOATS(trunc)}},
    {Op::sqrt, {TN_NO_BITS, TN_FLOATS(sqrt)}},
    {Op::is_nan, {TN_NO_BITS, TN_FLOATS(is_nan)}},
    {Op::add, {TN_BITS(add), TN_FLOATS(add)}},
    {Op::sub, {TN_BITS(sub), TN_FLOATS(sub)}},
    {Op::mul, {TN_BITS(mul), TN_FLOATS(mul)}},
    {Op::div, {TN_SIGNS(div), TN_FLOATS(div)}},
    {Op::rem, {TN_SIGNS(rem), TN_FLOATS(rem)}},
    {Op::max, {TN_SIGNS(max), TN_FLOATS(max)}},
    {Op::min, {TN_SIGNS(min), TN_FLOATS(min)}},
    {Op::and_, {TN_BITS(and), TN_NO_FLOATS}},
    {Op::or_, {TN_BITS(or), TN_NO_FLOATS}},
    {Op::xor_, {TN_BITS(xor), TN_NO_FLOATS}},
    {Op::shl, {TN_BITS(shl), TN_NO_FLOATS}},
    {Op::shr, {TN_SIGNS(shr), TN_NO_FLOATS}},
    {Op::eq, {TN_BITS(eq), TN_FLOATS(eq)}},
    {Op::ne, {TN_BITS(ne), TN_FLOATS(ne)}},
    {Op::lt, {TN_SIGNS(lt), TN_FLOATS(lt)}},
    {Op::le, {TN_SIGNS(le), TN_FLOATS(le)}},
    {Op::copysign, {TN_NO_BITS, TN_FLOATS(copysign)}},
    {Op::fma, {TN_NO_BITS, TN_FLOATS(fma)}},
    {Op::exp, {TN_NO_BITS, Code::exp, Code::end}},
    {Op::expm1, {TN_NO_BITS, Code::expm1, Code::end}},
    {Op::log, {TN_NO_BITS, Code::log, Code::end}},
    {Op::log1p, {TN_NO_BITS, Code::log1p, Code::end}},
    {Op::sin, {TN_NO_BITS, Code::sin, Code::end}},
    {Op::cos, {TN_NO_BITS, Code::cos, Code::end}},
    {Op::tanh, {TN_NO_BITS, Code::tanh, Code::end}},
    {Op::erf, {TN_NO_BITS, Code::erf, Code::end}},
    {Op::sigmoid, {TN_NO_BITS, Code::sigmoid, Code::end}},
};

}  // namespace

std::optional<Code> code_of(Op op, NumberClass operands) {
  for (const Row& row : kRows)
    if (row.op == op) {
      Code code = row.codes[static_cast<size_t>(operands)];
      return code == Code::end ? std::nullopt : std::optional(code);
    }
  return {};
}

bool has_function(Op op) { return code_of(op, NumberClass::f32).has_value(); }

Code load_of(DType type) {
  switch (info(type).size) {
    case 1:
      return type == DType::i8 ? Code::load_i8 : Code::load_u8;
    case 2:
      return type == DType::i16 ? Code::load_i16 : Code::load_u16;
    case 4:
      return Code::load_32;
    default:
      return Code::load_64;
  }
}

Code store_of(DType type) {
  switch (info(type).size) {
    case 1:
      return Code::store_8;
    case 2:
      return Code::store_16;
    case 4:
      return Code::store_32;
    default:
      return Code::store_64;
  }
}

Code truth_of(NumberClass from) {
  constexpr Code kCodes[] = {Code::truth_32, Code::truth_32,  Code::truth_64,
                             Code::truth_64, Code::truth_f32, Code::truth_f64};
  return kCodes[static_cast<size_t>(from)];
}

std::optional<Code> conversion(NumberClass from, NumberClass to) {
  constexpr Code kSame = Code::end;
  // By the class of the operand, then by that of the result: i32, u32, i64, u64, f32, f64.
  constexpr Code kCodes[6][6] = {
      {kSame, kSame, Code::i32_to_64, Code::i32_to_64, Code::i32_to_f32, Code::i32_to_f64},
      {kSame, kSame, Code::u32_to_64, Code::u32_to_64, Code::u32_to_f32, Code::u32_to_f64},
      {Code::i64_to_32, Code::i64_to_32, kSame, kSame, Code::i64_to_f32, Code::i64_to_f64},
      {Code::i64_to_32, Code::i64_to_32, kSame, kSame, Code::u64_to_f32, Code::u64_to_f64},
      {Code::f32_to_i32, Code::f32_to_u32, Code::f32_to_i64, Code::f32_to_u64, kSame,
       Code::f32_to_f64},
      {Code::f64_to_i32, Code::f64_to_u32, Code::f64_to_i64, Code::f64_to_u64, Code::f64_to_f32,
       kSame},
  };
  Code code = kCodes[static_cast<size_t>(from)][static_cast<size_t>(to)];
  return code == kSame ? std::nullopt : std::optional(code);
}

}  // namespace tn::cuda
