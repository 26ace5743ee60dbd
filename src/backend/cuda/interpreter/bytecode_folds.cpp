// Reductions of the interpreter: each thread folds four lanes of the tree, which are combined by
// halving (loop/reduction_tree.h).
#include <limits>

#include "backend/cuda/interpreter/bytecode_lowering.h"

namespace tn::cuda {

using bytecode::Code;
using loop::Monoid;
using loop::Op;
using loop::Value;

namespace {

bool is_arg(const Value& v) { return v.monoid == Monoid::argmax || v.monoid == Monoid::argmin; }

Op op_of(Monoid monoid) {
  constexpr Op kOps[] = {Op::add, Op::mul, Op::max, Op::min, Op::and_, Op::or_};
  return kOps[static_cast<size_t>(monoid)];
}

/// Of float sums it is -0, which changes no operand.
Scalar identity(Monoid monoid, DType type) {
  bool has_sign = class_of(type) == NumberClass::i32 || class_of(type) == NumberClass::i64;
  int bits = info(type).size * 8;
  auto lowest = static_cast<int64_t>(uint64_t{1} << (bits - 1)), highest = ~lowest;
  if (bits < 64) lowest = -(int64_t{1} << (bits - 1)), highest = -lowest - 1;
  if (!has_sign) lowest = 0, highest = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  if (type == DType::b1) highest = 1;
  double infinity = std::numeric_limits<double>::infinity();
  switch (monoid) {
    case Monoid::add:
      return is_float(type) ? Scalar(-0.0) : Scalar(int64_t{0});
    case Monoid::mul:
      return is_float(type) ? Scalar(1.0) : Scalar(int64_t{1});
    case Monoid::max:
      return is_float(type) ? Scalar(-infinity) : Scalar(lowest);
    case Monoid::min:
      return is_float(type) ? Scalar(infinity) : Scalar(highest);
    case Monoid::and_:
      return type == DType::b1 ? Scalar(int64_t{1}) : Scalar(int64_t{-1});
    default:
      return Scalar(int64_t{0});
  }
}

}  // namespace

/// Accumulators are written in place: no other instruction may share their constants.
BytecodeLowering::Fold BytecodeLowering::begin_fold(loop::ValueId id) {
  const Value& v = value_at(id);
  DType type = value_at(v.a).type;
  Scalar start = is_arg(v) ? Scalar(int64_t{0}) : identity(v.monoid, type);
  Register x = constant(start, type);
  auto copied = [&](Register from) {
    bool wide = code.is_wide(from);
    return emit(false, wide ? Code::turn64 : Code::turn32, wide, {.a = from, .immediate = 1});
  };
  Fold fold{id, copied(x)};
  if (is_arg(v)) fold.index = copied(number(~0u));
  return fold;
}

void BytecodeLowering::keep(Register into, Register from) {
  inner_.push_back(
      {.code = code.is_wide(into) ? Code::keep64 : Code::keep32, .dst = into, .a = from});
}

/// Whether x comes before what was best: the first NaN wins.
VirtualRegister BytecodeLowering::better(bool inner, const Value& v, Register x, Register best) {
  DType type = value_at(v.a).type;
  bool most = v.monoid == Monoid::argmax;
  Register more = applied(inner, Op::lt, type, most ? best : x, most ? x : best);
  if (!is_float(type)) return more;
  Register strange = applied(inner, Op::is_nan, type, x);
  Register usual = applied(inner, Op::eq, type, best, best);
  Register first = emit(inner, Code::and_32, false, {.a = strange, .b = usual});
  return emit(inner, Code::or_32, false, {.a = more, .b = first});
}

void BytecodeLowering::add(const Fold& fold) {
  const Value& v = value_at(fold.id);
  Register x = value(v.a);
  if (!is_arg(v))
    return keep(fold.best, applied(true, op_of(v.monoid), value_at(v.a).type, fold.best, x));
  Register none = emit(true, Code::lt_i32, false, {.a = fold.index, .b = number(0)});
  Register take = emit(true, Code::or_32, false, {.a = none, .b = better(true, v, x, fold.best)});
  auto& elements = inner_known_.coordinates;
  auto [at, added] = elements.try_emplace({-1, -1}, kNoRegister);
  if (added) at->second = emit(true, Code::elements, false);
  Register here = select(true, take, at->second, fold.index),
           best = select(true, take, x, fold.best);
  keep(fold.best, best);
  keep(fold.index, here);
}

/// The lower lane comes first.
VirtualRegister BytecodeLowering::merged(const Value& v, Register a, Register b) {
  return applied(false, op_of(v.monoid), value_at(v.a).type, a, b);
}

void BytecodeLowering::end(const Fold& fold) {
  const Value& v = value_at(fold.id);
  int64_t lanes = 4;
  while (lanes < 64 && lanes < extent_of(analysis_.inner_axes)) lanes *= 2;
  Register best = fold.best, index = fold.index;
  auto moved = [&](Register x, int64_t by) {
    bool wide = code.is_wide(x);
    if (by >= bytecode::kElements)
      return emit(false, Code::from_thread, wide,
                  {.a = x,
                   .immediate = static_cast<uint8_t>(by / bytecode::kElements),
                   .number = static_cast<uint8_t>(wide)});
    return emit(false, wide ? Code::turn64 : Code::turn32, wide,
                {.a = x, .immediate = static_cast<uint8_t>(by)});
  };
  for (int64_t by = lanes / 2; by >= 1; by /= 2) {
    Register other = moved(best, by);
    if (!is_arg(v)) {
      best = merged(v, best, other);
      continue;
    }
    Register place = moved(index, by), zero = number(0);
    auto both = [&](Register x, Register y) {
      return emit(false, Code::and_32, false, {.a = x, .b = y});
    };
    auto either = [&](Register x, Register y) {
      return emit(false, Code::or_32, false, {.a = x, .b = y});
    };
    Register there = emit(false, Code::le_i32, false, {.a = zero, .b = place});
    Register none = emit(false, Code::lt_i32, false, {.a = index, .b = zero});
    Register wins = better(false, v, other, best), loses = better(false, v, best, other);
    Register equal = emit(false, Code::xor_32, false, {.a = loses, .b = number(1)});
    Register sooner = emit(false, Code::lt_i32, false, {.a = place, .b = index});
    Register take = both(there, either(none, either(wins, both(equal, sooner))));
    best = select(false, take, other, best);
    index = select(false, take, place, index);
  }
  Register result = is_arg(v) ? index : best;
  bool wide = code.is_wide(result);
  result = emit(false, wide ? Code::broadcast64 : Code::broadcast32, wide, {.a = result});
  if (is_arg(v)) result = emit(false, Code::i32_to_64, true, {.a = result});
  outer_known_.values[fold.id] = result;
}

void BytecodeLowering::sweep(int level) {
  inner_.clear();
  inner_known_ = {};
  std::vector<Fold> folds;
  for (size_t i = 0; i < kernel_.values.size(); ++i)
    if (analysis_.needed[i] && kernel_.values[i].op == Op::reduce &&
        analysis_.level[i] == level + 1)
      folds.push_back(begin_fold(static_cast<loop::ValueId>(i)));
  for (const Fold& fold : folds) add(fold);
  bool stores = false;
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (analysis_.stores[i].level == level && is_inner(analysis_.stores[i].axes)) {
      prepare(i);
      stores = true;
    }
  if (folds.empty() && !stores) return;
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (analysis_.stores[i].level == level && is_inner(analysis_.stores[i].axes))
      store(i, bytecode::Where::element);
  code.list.push_back({.code = Code::sweep});
  code.list.insert(code.list.end(), inner_.begin(), inner_.end());
  code.list.push_back({.code = Code::again});
  for (const Fold& fold : folds) end(fold);
}

}  // namespace tn::cuda
