#include "backend/source/c_expressions.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "loop/interpreter_program.h"
#include "loop/kernel_names.h"

namespace tn::source {

using loop::Monoid;
using loop::Op;

std::string c_type(DType type) { return format("tn_{}", type); }

namespace {

bool is_narrow(DType type) { return is_float(type) && type != DType::f32 && type != DType::f64; }
std::string_view suffix(DType type) { return type == DType::f32 ? "f" : ""; }
/// The unsigned type in which integers of `type` wrap.
std::string_view wide(DType type) { return size_of(type) == 8 ? "uint64_t" : "uint32_t"; }

/// Hexadecimal digits say a float exactly; what has none is said by its bits.
std::string float_literal(double x, DType type, uint64_t bits) {
  if (!std::isfinite(x))
    return format("tn_from_bits_{}({:#x}u{})", type, bits, type == DType::f32 ? "" : "ll");
  // Some versions of fmt print 0 as if it were subnormal.
  std::string text = x == 0 ? format("{}0x0p+0{}", std::signbit(x) ? "-" : "", suffix(type))
                            : format("{:a}{}", x, suffix(type));
  return std::signbit(x) ? format("({})", text) : text;
}

std::string signed_literal(int64_t x) {
  if (x == INT64_MIN) return "INT64_MIN";
  std::string text = x == static_cast<int32_t>(x) ? format("{}", x) : format("INT64_C({})", x);
  return x < 0 ? format("({})", text) : text;
}

}  // namespace

std::string c_literal(const Scalar& value, DType type) {
  auto element = loop::machine::element_bits(value, type);
  auto as = [&]<class T>(T x) {
    std::memcpy(&x, element.data(), sizeof x);
    return x;
  };
  uint64_t bits = as(uint64_t{}) & (~uint64_t{0} >> (64 - 8 * size_of(type)));
  if (type == DType::f32) return float_literal(as(float{}), type, bits);
  if (type == DType::f64) return float_literal(as(double{}), type, bits);
  if (kind_of(type) != Kind::integer)
    return bits >> 31 ? format("UINT64_C({})", bits) : format("{}", bits);
  int unused = 64 - 8 * static_cast<int>(size_of(type));
  return signed_literal(static_cast<int64_t>(bits << unused) >> unused);
}

// Narrow floats convert from and to f32, from wider types by one rounding.
std::string c_cast(DType from, DType to, std::string_view x) {
  if (from == to) return std::string(x);
  if (is_narrow(from)) {
    std::string widened = format("tn_f32_from_{}({})", from, x);
    return c_cast(DType::f32, to, widened);
  }
  if (is_narrow(to)) {
    bool longs = is_integer(from) && size_of(from) == 8, doubles = from == DType::f64;
    bool wider = longs || doubles || (is_integer(from) && size_of(from) == 4);
    std::string near = longs ? format("tn_odd_from_{}({})", from, x) : std::string(x);
    return wider ? format("tn_{}_from_f32(tn_odd_from_f64({}))", to, near)
                 : format("tn_{}_from_f32({})", to, near);
  }
  if (to == DType::b1) return format("(tn_bool)({} != 0)", x);
  if (is_float(from) && is_integer(to)) return format("tn_{}_from_{}({})", to, from, x);
  return format("({})({})", c_type(to), x);
}

// Only f32 and f64 are anything but integers in C.
std::string c_bitcast(DType from, DType to, std::string_view x) {
  auto is_real = [](DType type) { return type == DType::f32 || type == DType::f64; };
  std::string bits = is_real(from) ? format("tn_bits_{}({})", from, x) : std::string(x);
  if (from == to) return std::string(x);
  if (is_real(to)) return format("tn_from_bits_{}(({}){})", to, wide(to), bits);
  return format("({})({})", c_type(to), bits);
}

static std::string builtin(std::string_view name, DType type, std::string_view args) {
  return format("__builtin_{}{}({})", name, suffix(type), args);
}

std::string c_unary(Op op, DType type, std::string_view a) {
  bool real = is_float(type);
  switch (op) {
    case Op::neg:
      return real ? format("-{}", a) : format("({})(0 - ({}){})", c_type(type), wide(type), a);
    case Op::abs:
      return real ? builtin("fabs", type, a) : format("tn_abs_{}({})", type, a);
    case Op::not_:
      return type == DType::b1 ? format("(tn_bool)({} ^ 1)", a)
                               : format("({})~{}", c_type(type), a);
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::sqrt:
      return builtin(loop::facts(op).name, type, a);
    case Op::round:
      return builtin("rint", type, a);
    case Op::is_nan:
      return format("(tn_bool)({} != {})", a, a);
    default:
      throw_internal(format("c source: no form of {}", loop::facts(op).name));
  }
}

std::string c_binary(Op op, DType type, std::string_view a, std::string_view b) {
  std::string_view name = loop::facts(op).name;
  auto infix = [&](std::string_view sign) {
    if (is_float(type)) return format("{} {} {}", a, sign, b);
    return format("({})(({}){} {} ({}){})", c_type(type), wide(type), a, sign, wide(type), b);
  };
  auto compare = [&](std::string_view sign) { return format("(tn_bool)({} {} {})", a, sign, b); };
  switch (op) {
    case Op::add:
      return infix("+");
    case Op::sub:
      return infix("-");
    case Op::mul:
      return infix("*");
    case Op::div:
      return is_float(type) ? infix("/") : format("tn_div_{}({}, {})", type, a, b);
    case Op::and_:
      return infix("&");
    case Op::or_:
      return infix("|");
    case Op::xor_:
      return infix("^");
    case Op::eq:
      return compare("==");
    case Op::ne:
      return compare("!=");
    case Op::lt:
    case Op::le:
      // As functions, integers may be compared with the ends of their types without a warning.
      if (is_float(type)) return compare(op == Op::lt ? "<" : "<=");
      return format("tn_{}_{}({}, {})", name, type, a, b);
    case Op::copysign:
      return builtin(name, type, format("{}, {}", a, b));
    case Op::rem:
    case Op::max:
    case Op::min:
    case Op::shl:
    case Op::shr:
      return format("tn_{}_{}({}, {})", name, type, a, b);
    default:
      throw_internal(format("c source: no form of {}", name));
  }
}

Op c_monoid(Monoid monoid) {
  static constexpr Op kOps[] = {Op::add, Op::mul, Op::max, Op::min, Op::and_, Op::or_};
  return kOps[static_cast<size_t>(monoid)];
}

std::string c_identity(Monoid monoid, DType type, bool shown) {
  switch (monoid) {
    case Monoid::add:
      return c_literal(is_float(type) && !shown ? Scalar(-0.0) : Scalar(0), type);
    case Monoid::mul:
      return c_literal(Scalar(1), type);
    case Monoid::or_:
      return "0";
    case Monoid::and_:
      return type == DType::b1 ? "1" : format("({})-1", c_type(type));
    default:
      break;
  }
  bool max = monoid == Monoid::max;
  if (is_float(type)) return c_literal(Scalar(max ? -INFINITY : INFINITY), type);
  if (type == DType::b1) return max ? "0" : "1";
  if (kind_of(type) == Kind::natural) return max ? "0" : format("({})-1", c_type(type));
  return format("INT{}_{}", 8 * size_of(type), max ? "MIN" : "MAX");
}

IndexPrinter::IndexPrinter(const loop::Kernel& kernel)
    : kernel_(kernel), names_(loop::axis_names(kernel.axes)) {}

std::string IndexPrinter::value(loop::ValueId id) const {
  const loop::Value& v = kernel_.values[static_cast<size_t>(id)];
  return v.op == loop::Op::constant ? c_literal(v.literal, v.type) : format("v{}", id);
}

std::string IndexPrinter::atom(AtomId id) const {
  const Atom& atom = kernel_.polys.atom(id);
  auto call = [&](std::string_view function) {
    return format("{}({}, {})", function, index(atom.a), index(atom.b));
  };
  switch (atom.kind) {
    case AtomKind::axis:
      return names_[atom.a];
    case AtomKind::value:
      return "(int64_t)" + value(static_cast<loop::ValueId>(atom.a));
    case AtomKind::div:
    case AtomKind::mod: {
      bool divides = atom.kind == AtomKind::div;
      bool plain = kernel_.polys.range(atom.a).lo >= 0 && kernel_.polys.is_constant(atom.b);
      if (!plain) return call(divides ? "tn_floor_div" : "tn_floor_mod");
      return format("(({}) {} {})", index(atom.a), divides ? "/" : "%", index(atom.b));
    }
    case AtomKind::min:
      return call("tn_min_i64");
    case AtomKind::max:
      return call("tn_max_i64");
    case AtomKind::symbol:
      break;
  }
  invariant(false, "c source: kernel {} has the size {}", kernel_.name,
            kernel_.polys.name_of(atom));
  return {};
}

std::string IndexPrinter::term(const Term& term) const {
  std::string text = term.coef == 1 ? "" : signed_literal(term.coef) + " * ";
  const char* times = "";
  for (AtomId id : kernel_.polys.atoms_of(term.mono)) {
    text += times + atom(id);
    times = " * ";
  }
  return text;
}

std::string IndexPrinter::index(PolyId id) const {
  const Poly& poly = kernel_.polys[id];
  std::vector<std::string> parts;
  for (const Term& t : poly.terms) parts.push_back(term(t));
  if (poly.c0 != 0 || parts.empty()) parts.push_back(signed_literal(poly.c0));
  return format("{}", join(parts, " + "));
}

std::string IndexPrinter::condition(loop::MaskId mask) const {
  if (mask == loop::kNone) return "";
  std::vector<std::string> parts;
  for (PolyId poly : kernel_.masks[static_cast<size_t>(mask)])
    parts.push_back(index(poly) + " >= 0");
  return parts.empty() ? "1" : format("{}", join(parts, " && "));
}

}  // namespace tn::source
