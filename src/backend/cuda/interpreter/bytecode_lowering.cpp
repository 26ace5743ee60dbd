#include "backend/cuda/interpreter/bytecode_lowering.h"

#include <bit>
#include <cstring>

#include "runtime/scalar_bits.h"

namespace tn::cuda {

using bytecode::Code;
using loop::Op;
using loop::Value;
using loop::ValueId;

BytecodeLowering::BytecodeLowering(const loop::Kernel& kernel, const loop::Analysis& analysis)
    : kernel_(kernel), analysis_(analysis) {
  for (const loop::KernelAxis& axis : kernel.axes) extents_.push_back(axis.extent.value());
}

int64_t BytecodeLowering::extent_of(const std::vector<int>& axes) const {
  int64_t product = 1;
  for (int k : axes) product *= extents_[static_cast<size_t>(k)];
  return product;
}

VirtualRegister BytecodeLowering::emit(bool inner, Code what, bool wide,
                                       VirtualInstruction operands) {
  operands.code = what;
  operands.dst = code.add_register(wide);
  stream(inner).push_back(std::move(operands));
  return stream(inner).back().dst;
}

static bool is_wide_type(DType type) { return info(type).size == 8; }

VirtualRegister BytecodeLowering::constant(const Scalar& literal, DType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, element_bits(literal, type).data(), sizeof bits);
  if (type == DType::i8) bits = static_cast<uint32_t>(static_cast<int8_t>(bits));
  if (type == DType::i16) bits = static_cast<uint32_t>(static_cast<int16_t>(bits));
  if (!is_wide_type(type)) return number(static_cast<uint32_t>(bits));
  return emit(false, Code::constant64, true, {.words = {bits}});
}

VirtualRegister BytecodeLowering::value(ValueId id) {
  const Value& v = value_at(id);
  bool inner = is_inner(v.axes);
  auto& values = known(inner).values;
  if (auto at = values.find(id); at != values.end()) return at->second;
  Register made_now = made(v, inner);
  return known(inner).values[id] = made_now;
}

VirtualRegister BytecodeLowering::made(const Value& v, bool inner) {
  switch (v.op) {
    case Op::constant:
      return constant(v.literal, v.type);
    case Op::argument:
      return argument(v, inner);
    case Op::index:
      if (!fits_index(v.index)) fits = false;
      return emit(inner, Code::i32_to_64, true, {.a = poly(v.index)});
    case Op::load:
      return loaded(v, inner);
    case Op::cast:
      return cast(inner, value(v.a), value_at(v.a).type, v.type);
    case Op::bitcast:
      return wrapped(inner, value(v.a), v.type);
    case Op::select: {
      Register condition = value(v.a), yes = value(v.b), no = value(v.c);
      return select(inner, condition, yes, no);
    }
    case Op::reduce:  // of a later sweep
    case Op::scan:
      fits = false;
      return number(0);
    default: {
      int operands = loop::facts(v.op).operands;
      Register a = value(v.a), b = operands > 1 ? value(v.b) : kNoRegister;
      Register c = operands > 2 ? value(v.c) : kNoRegister;
      return applied(inner, v.op, value_at(v.a).type, a, b, c);
    }
  }
}

VirtualRegister BytecodeLowering::argument(const Value& v, bool inner) {
  auto number_of = static_cast<size_t>(v.a) + kernel_.buffers.size();
  if (number_of > 0xff) fits = false;
  bool wide = is_wide_type(v.type);
  Register x = emit(false, wide ? Code::argument64 : Code::argument32, wide,
                    {.number = static_cast<uint8_t>(number_of)});
  return wrapped(inner, x, v.type);
}

VirtualRegister BytecodeLowering::loaded(const Value& v, bool inner) {
  if (v.mask == loop::kNone && !fits_index(v.index)) fits = false;
  Register holds = mask(v.mask), index = poly(v.index);
  return emit(inner, load_of(v.type), is_wide_type(v.type),
              {.a = index, .c = holds, .number = static_cast<uint8_t>(v.buffer)});
}

VirtualRegister BytecodeLowering::wrapped(bool inner, Register x, DType type) {
  std::optional<bytecode::Small> small = small_of(type);
  if (!small) return x;
  return emit(inner, Code::wrap, false, {.a = x, .immediate = static_cast<uint8_t>(*small)});
}

VirtualRegister BytecodeLowering::select(bool inner, Register condition, Register a, Register b) {
  bool wide = code.is_wide(a);
  return emit(inner, wide ? Code::select64 : Code::select32, wide,
              {.a = condition, .b = a, .c = b});
}

VirtualRegister BytecodeLowering::applied(bool inner, Op op, DType operands, Register a, Register b,
                                          Register c) {
  if (op == Op::not_ && operands == DType::b1)
    return emit(inner, Code::xor_32, false, {.a = a, .b = number(1)});
  NumberClass its = class_of(operands);
  bool has_sign = its == NumberClass::i32 || its == NumberClass::i64;
  if (op == Op::abs && !has_sign && !is_float(operands)) return a;
  if (op == Op::is_nan && !is_float(operands)) return number(0);
  std::optional<Code> found = code_of(op, its);
  if (!found) return fits = false, number(0);
  bool compares = loop::facts(op).compares;
  Register x = emit(inner, *found, !compares && is_wide_type(operands), {.a = a, .b = b, .c = c});
  return compares ? x : wrapped(inner, x, operands);
}

/// Rounded once: what is lost on the way to float leaves an odd last bit.
VirtualRegister BytecodeLowering::narrowed(bool inner, Register x, DType from,
                                           bytecode::Narrow to) {
  if (from == DType::i64 || from == DType::u64)
    x = emit(inner, from == DType::i64 ? Code::i64_to_f64_odd : Code::u64_to_f64_odd, true,
             {.a = x}),
    from = DType::f64;
  if (is_integer(from) && info(from).size == 4)
    x = cast(inner, x, from, DType::f64), from = DType::f64;
  if (from == DType::f64)
    x = emit(inner, Code::f64_to_f32_odd, false, {.a = x});
  else
    x = cast(inner, x, from, DType::f32);
  return emit(inner, Code::narrow, false, {.a = x, .immediate = static_cast<uint8_t>(to)});
}

VirtualRegister BytecodeLowering::cast(bool inner, Register x, DType from, DType to) {
  if (from == to) return x;
  if (auto narrow = narrow_of(from)) {
    x = emit(inner, Code::widen, false, {.a = x, .immediate = static_cast<uint8_t>(*narrow)});
    return cast(inner, x, DType::f32, to);
  }
  if (auto narrow = narrow_of(to)) return narrowed(inner, x, from, *narrow);
  NumberClass its = class_of(from);
  if (to == DType::b1) return emit(inner, truth_of(its), false, {.a = x});
  std::optional<bytecode::Small> small = small_of(to);
  NumberClass wanted = small && is_float(from) ? NumberClass::i32 : class_of(to);
  if (auto found = conversion(its, wanted)) x = emit(inner, *found, is_wide_type(to), {.a = x});
  if (!small || !is_float(from)) return wrapped(inner, x, to);
  return emit(inner, Code::clamp, false, {.a = x, .immediate = static_cast<uint8_t>(*small)});
}

void BytecodeLowering::prepare(size_t number_of) {
  const loop::Store& store = kernel_.stores[number_of];
  value(store.value);
  loop::for_each_value_in(kernel_, store.index, store.mask, [&](ValueId id) { value(id); });
}

void BytecodeLowering::store(size_t number_of, bytecode::Where where) {
  const loop::Store& store = kernel_.stores[number_of];
  if (store.mask == loop::kNone && !fits_index(store.index)) fits = false;
  Register x = value(store.value), holds = mask(store.mask), index = poly(store.index);
  stream(where == bytecode::Where::element)
      .push_back({.code = store_of(value_at(store.value).type),
                  .dst = index,
                  .a = x,
                  .c = holds,
                  .immediate = static_cast<uint8_t>(where),
                  .number = static_cast<uint8_t>(store.buffer)});
}

}  // namespace tn::cuda
