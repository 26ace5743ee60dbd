#include "backend/llvm/value_ranges.h"

#include <algorithm>
#include <cmath>

namespace tn::codegen {
namespace {

using loop::Op;
using loop::Value;
using loop::ValueId;

/// Every value is in [lo, hi], or NaN where `nan`.
struct Range {
  double lo = -INFINITY, hi = INFINITY;
  bool nan = true;
  bool bounded() const { return std::isfinite(lo) && std::isfinite(hi) && !nan; }
};

/// A little more than [lo, hi], for the rounding of the operation.
Range around(double lo, double hi) {
  double slack = std::max(std::abs(lo), std::abs(hi)) * 0x1p-20 + 0x1p-100;
  return {lo - slack, hi + slack, false};
}

Range either(Range a, Range b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.nan || b.nan};
}

Range product(Range a, Range b) {
  if (!a.bounded() || !b.bounded()) return {};
  auto [lo, hi] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
  return around(lo, hi);
}

Range sum(Range a, Range b) {
  return a.bounded() && b.bounded() ? around(a.lo + b.lo, a.hi + b.hi) : Range{};
}

class Ranges {
 public:
  explicit Ranges(const loop::Kernel& kernel) : k_(kernel) {
    for (const Value& v : k_.values) known_.push_back(find(v));
  }

  bool is_inside(const Value& cast) const {
    Range x = known_[static_cast<size_t>(cast.a)];
    double top = std::ldexp(1.0, static_cast<int>(size_of(cast.type)) * 8 - 1);
    return x.bounded() && x.lo > -top && x.hi < top * 0.99;
  }

  bool is_plain_reciprocal(const Value& v) const {
    Range one = known_[static_cast<size_t>(v.a)], by = known_[static_cast<size_t>(v.b)];
    if (one.lo != 1 || one.hi != 1 || !by.bounded()) return false;
    double least = by.lo > 0 ? by.lo : -by.hi, most = std::max(std::abs(by.lo), std::abs(by.hi));
    return least > 0x1p-100 && most < 0x1p100;
  }

 private:
  const Value& value(ValueId id) const { return k_.values[static_cast<size_t>(id)]; }
  Range range(ValueId id) const { return known_[static_cast<size_t>(id)]; }

  Range find(const Value& v) const {
    if (!is_float(v.type)) return {};
    switch (v.op) {
      case Op::constant: {
        double x =
            v.literal.is_integral() ? static_cast<double>(v.literal.integer) : v.literal.real;
        return std::isnan(x) ? Range{} : Range{x, x, false};
      }
      case Op::neg:
        return {-range(v.a).hi, -range(v.a).lo, range(v.a).nan};
      case Op::abs: {
        Range a = range(v.a);
        double far = std::max(std::abs(a.lo), std::abs(a.hi));
        return {a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, far, a.nan};
      }
      case Op::round:
      case Op::floor:
      case Op::ceil:
      case Op::trunc:
        return {range(v.a).lo - 1, range(v.a).hi + 1, range(v.a).nan};
      case Op::add:
        return sum(range(v.a), range(v.b));
      case Op::sub:
        return sum(range(v.a), {-range(v.b).hi, -range(v.b).lo, range(v.b).nan});
      case Op::mul:
        return product(range(v.a), range(v.b));
      case Op::fma:
        return sum(product(range(v.a), range(v.b)), range(v.c));
      case Op::select:
        return chosen(v, kMaxDepth);
      default:
        return {};
    }
  }

  /// What `x` is known to be in one branch of a select.
  struct Given {
    ValueId x = loop::kNone;
    Range range;
  };
  static constexpr int kMaxDepth = 3;

  Range under(ValueId id, const std::vector<Given>& given, int depth) const {
    Range result = range(id);
    for (const Given& g : given)
      if (g.x == id)
        result = {std::max(result.lo, g.range.lo), std::min(result.hi, g.range.hi),
                  result.nan && g.range.nan};
    if (value(id).op != Op::select || depth == 0) return result;
    return chosen(value(id), depth - 1, given);
  }

  // A comparison bounds its operand in the branch it guards; NaN is in the other.
  Range chosen(const Value& v, int depth, const std::vector<Given>& given = {}) const {
    const Value& test = value(v.a);
    if (test.op != Op::lt && test.op != Op::le) return either(range(v.b), range(v.c));
    bool left = value(test.b).op == Op::constant;
    ValueId x = left ? test.a : test.b;
    double limit = left ? range(test.b).hi : range(test.a).lo;
    if (!std::isfinite(limit)) return either(range(v.b), range(v.c));
    std::vector<Given> holds = given, fails = given;
    Range below{-INFINITY, limit, false}, above{limit, INFINITY, false};
    holds.push_back({x, left ? below : above});
    fails.push_back({x, left ? above : below});
    fails.back().range.nan = true;
    return either(under(v.b, holds, depth), under(v.c, fails, depth));
  }

  const loop::Kernel& k_;
  std::vector<Range> known_;
};

}  // namespace

std::vector<bool> plain_reciprocals(const loop::Kernel& kernel) {
  Ranges ranges(kernel);
  std::vector<bool> plain;
  for (const loop::Value& v : kernel.values)
    plain.push_back(v.op == Op::div && v.type == DType::f32 && ranges.is_plain_reciprocal(v));
  return plain;
}

std::vector<bool> casts_inside(const loop::Kernel& kernel) {
  Ranges ranges(kernel);
  std::vector<bool> inside;
  for (const loop::Value& v : kernel.values) {
    bool whole = v.op == Op::cast && (v.type == DType::i32 || v.type == DType::i64) &&
                 is_float(kernel.values[static_cast<size_t>(v.a)].type);
    inside.push_back(whole && ranges.is_inside(v));
  }
  return inside;
}

}  // namespace tn::codegen
