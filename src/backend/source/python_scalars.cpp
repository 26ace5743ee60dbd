#include "backend/source/python_scalars.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "loop/interpreter_program.h"

namespace tn::source {

using loop::Op;

namespace {

/// `{0!}`: a literal is given its type, since the function takes arrays only.
struct Form {
  Op op;
  std::string_view numpy, torch, jax;
  constexpr Form(Op o, std::string_view all) : op(o), numpy(all), torch(all), jax(all) {}
  constexpr Form(Op o, std::string_view n, std::string_view t, std::string_view j)
      : op(o), numpy(n), torch(t), jax(j) {}
};

// clang-format off
constexpr Form kForms[] = {
    {Op::neg, "-{0}"},
    {Op::abs, "{xp}.abs({0})"},
    {Op::not_, "~{0}"},
    {Op::floor, "{xp}.floor({0})"},
    {Op::ceil, "{xp}.ceil({0})"},
    {Op::round, "np.rint({0})", "torch.round({0})", "jnp.rint({0})"},
    {Op::trunc, "{xp}.trunc({0})"},
    {Op::sqrt, "{xp}.sqrt({0})"},
    {Op::is_nan, "{xp}.isnan({0})"},
    {Op::exp, "{xp}.exp({0})"},
    {Op::exp2, "{xp}.exp2({0})"},
    {Op::expm1, "{xp}.expm1({0})"},
    {Op::log, "{xp}.log({0})"},
    {Op::log2, "{xp}.log2({0})"},
    {Op::log10, "{xp}.log10({0})"},
    {Op::log1p, "{xp}.log1p({0})"},
    {Op::rsqrt, "1.0 / np.sqrt({0})", "torch.rsqrt({0})", "lax.rsqrt({0})"},
    {Op::cbrt, "np.cbrt({0})", "_cbrt({0})", "jnp.cbrt({0})"},
    {Op::sin, "{xp}.sin({0})"},
    {Op::cos, "{xp}.cos({0})"},
    {Op::tan, "{xp}.tan({0})"},
    {Op::asin, "np.arcsin({0})", "torch.asin({0})", "jnp.arcsin({0})"},
    {Op::acos, "np.arccos({0})", "torch.acos({0})", "jnp.arccos({0})"},
    {Op::atan, "np.arctan({0})", "torch.atan({0})", "jnp.arctan({0})"},
    {Op::sinh, "{xp}.sinh({0})"},
    {Op::cosh, "{xp}.cosh({0})"},
    {Op::tanh, "{xp}.tanh({0})"},
    {Op::asinh, "np.arcsinh({0})", "torch.asinh({0})", "jnp.arcsinh({0})"},
    {Op::acosh, "np.arccosh({0})", "torch.acosh({0})", "jnp.arccosh({0})"},
    {Op::atanh, "np.arctanh({0})", "torch.atanh({0})", "jnp.arctanh({0})"},
    {Op::erf, "_erf({0})", "torch.erf({0})", "lax.erf({0})"},
    {Op::erfc, "_erfc({0})", "torch.erfc({0})", "lax.erfc({0})"},
    {Op::erfinv, "_erfinv({0})", "torch.erfinv({0})", "lax.erf_inv({0})"},
    {Op::lgamma, "_lgamma({0})", "torch.lgamma({0})", "lax.lgamma({0})"},
    {Op::sigmoid, "1.0 / (1.0 + np.exp(-{0}))", "torch.sigmoid({0})", "jax.nn.sigmoid({0})"},
    {Op::gelu, "_gelu({0})", "torch.nn.functional.gelu({0})",
     "jax.nn.gelu({0}, approximate=False)"},
    {Op::gelu_slope, "_gelu_slope({0})"},
    {Op::add, "{0} + {1}"},
    {Op::sub, "{0} - {1}"},
    {Op::mul, "{0} * {1}"},
    {Op::div, "{0} / {1}"},
    {Op::rem, "{xp}.fmod({0}, {1})"},
    {Op::max, "np.maximum({0}, {1})", "torch.maximum({0}, {1})", "jnp.maximum({0}, {1})"},
    {Op::min, "np.minimum({0}, {1})", "torch.minimum({0}, {1})", "jnp.minimum({0}, {1})"},
    {Op::and_, "{0} & {1}"},
    {Op::or_, "{0} | {1}"},
    {Op::xor_, "{0} ^ {1}"},
    {Op::shl, "_shift_left({0!}, {1!})"},
    {Op::shr, "_shift_right({0!}, {1!})"},
    {Op::eq, "{0} == {1}"},
    {Op::ne, "{0} != {1}"},
    {Op::lt, "{0} < {1}"},
    {Op::le, "{0} <= {1}"},
    {Op::pow, "{0} ** {1}"},
    {Op::atan2, "np.arctan2({0}, {1})", "torch.atan2({0!}, {1!})", "jnp.arctan2({0}, {1})"},
    {Op::hypot, "{xp}.hypot({0!}, {1!})"},
    {Op::logaddexp, "{xp}.logaddexp({0!}, {1!})"},
    {Op::nextafter, "{xp}.nextafter({0!}, {1!})"},
    {Op::copysign, "{xp}.copysign({0!}, {1!})"},
    {Op::select, "{xp}.where({0}, {1}, {2})"},
    {Op::fma, "{0} * {1} + {2}"},
};
/// On integers.
constexpr Form kIntegerForms[] = {
    {Op::floor, "{0}"}, {Op::ceil, "{0}"}, {Op::round, "{0}"}, {Op::trunc, "{0}"},
    {Op::div, "_integer_quotient({0!}, {1!})"},
    {Op::rem, "_integer_remainder({0!}, {1!})"},
};
/// With a number as the second operand.
constexpr Form kNumberForms[] = {
    {Op::max, "np.maximum({0}, {1})", "torch.clamp({0}, min={1})", "jnp.maximum({0}, {1})"},
    {Op::min, "np.minimum({0}, {1})", "torch.clamp({0}, max={1})", "jnp.minimum({0}, {1})"},
    {Op::shl, "{0} << {1}"},
    {Op::shr, "{0} >> {1}"},
};
/// The same with the operands exchanged.
constexpr Form kMirrored[] = {
    {Op::lt, "{1} > {0}"}, {Op::le, "{1} >= {0}"}, {Op::eq, "{1} == {0}"}, {Op::ne, "{1} != {0}"},
    {Op::max, "np.maximum({1}, {0})", "torch.clamp({1}, min={0})", "jnp.maximum({1}, {0})"},
    {Op::min, "np.minimum({1}, {0})", "torch.clamp({1}, max={0})", "jnp.minimum({1}, {0})"},
};
// clang-format on

std::string_view text_for(std::string_view target, std::span<const Form> forms, Op op) {
  for (const Form& f : forms)
    if (f.op == op) return target == "numpy" ? f.numpy : target == "torch" ? f.torch : f.jax;
  return {};
}

std::string_view form_of(std::string_view target, Op op, DType in,
                         std::span<const Expression> operands) {
  bool two = operands.size() == 2;
  std::string_view text;
  if (two && operands[0].literal && !operands[1].literal) text = text_for(target, kMirrored, op);
  if (text.empty() && two && operands[1].literal && !operands[0].literal)
    text = text_for(target, kNumberForms, op);
  if (text.empty() && is_integer(in)) text = text_for(target, kIntegerForms, op);
  if (text.empty()) text = text_for(target, kForms, op);
  if (text.empty()) throw_internal(format("python source: no form of {}", loop::facts(op).name));
  return text;
}

std::string float_text(double x, DType type, std::string_view xp) {
  if (std::isnan(x)) return format("{}.nan", xp);
  if (std::isinf(x)) return format("{}{}.inf", x < 0 ? "-" : "", xp);
  auto narrow = static_cast<float>(x);
  bool exact = type == DType::f64 || type == DType::c128 || std::isinf(narrow);
  bool large = std::abs(x) > 1e38;  // the shortest text could be beyond the largest float
  std::string text = exact   ? format("{}", x)
                     : large ? format("{}", static_cast<double>(narrow))
                             : format("{}", narrow);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

/// What results of a carrier of unsigned integers are cut to; "" where nothing can be left over.
std::string_view cut(Op op, DType type) {
  bool grows = op == Op::add || op == Op::sub || op == Op::mul || op == Op::shl || op == Op::neg ||
               op == Op::not_;
  if (!grows || type == DType::u64) return "";  // int64 wraps as uint64 does
  return type == DType::u16 ? "0xFFFF" : "0xFFFFFFFF";
}

/// What differs between int64 and the uint64 that it holds.
void check_signed(const loop::Value& value, std::span<const Expression> operands) {
  bool ordered = value.op == Op::div || value.op == Op::rem || value.op == Op::lt ||
                 value.op == Op::le || value.op == Op::max || value.op == Op::min ||
                 (value.op == Op::shr && !operands[1].literal);
  if (ordered)
    unsupported({"compute in int64"}, "python source: torch has no {} of uint64",
                loop::facts(value.op).name);
}

}  // namespace

std::string_view module_of(std::string_view target) {
  return target == "numpy" ? "np" : target == "torch" ? "torch" : "jnp";
}

std::string dtype_text(std::string_view target, DType type) {
  bool missing = target == "numpy" && (type == DType::bf16 || is_storage_only(type));
  if (missing)
    unsupported({"compute in another type, or write it for another target"},
                "python source: {} does not compute with {}", target, name_of(type));
  std::string_view xp = module_of(target);
  if (type == DType::b1) return format("{}.bool{}", xp, target == "torch" ? "" : "_");
  if (type == DType::f8e4m3) return format("{}.float8_e4m3fn", xp);
  return format("{}.{}", xp, name_of(type));
}

DType carrier(std::string_view target, DType type) {
  bool held = target == "torch" && kind_of(type) == Kind::natural && type != DType::u8;
  return held ? DType::i64 : type;
}

Expression literal(std::string_view target, const Scalar& value, DType type) {
  std::string text;
  if (type == DType::b1) {
    bool holds = value.kind == Kind::floating ? value.real != 0 : value.integer != 0;
    text = holds ? "True" : "False";
  } else if (is_integer(type)) {
    auto element = element_bits(value, type);
    uint64_t bits;
    std::memcpy(&bits, element.data(), sizeof bits);
    int unused = 64 - 8 * static_cast<int>(size_of(type));
    bits <<= unused;
    text = kind_of(type) == Kind::natural ? format("{}", bits >> unused)
                                          : format("{}", static_cast<int64_t>(bits) >> unused);
  } else {
    std::string_view xp = module_of(target);
    bool integral = value.is_integral();
    double real = !integral ? value.real
                  : value.kind == Kind::natural
                      ? static_cast<double>(static_cast<uint64_t>(value.integer))
                      : static_cast<double>(value.integer);
    text = float_text(real, type, xp);
    if (is_complex(type))
      text = format("complex({}, {})", text, float_text(integral ? 0 : value.imag, type, xp));
  }
  return {text, binding_of(text), true};
}

std::string typed(std::string_view target, const Expression& x, DType type) {
  std::string dtype = dtype_text(target, carrier(target, type));
  if (target == "torch") return format("torch.tensor({}, dtype={})", x.text, dtype);
  return format("{}({})", dtype, x.text);
}

Expression cast_text(std::string_view target, const Expression& given, DType from, DType to) {
  Expression x = given;
  if (x.literal) x = expression(typed(target, x, from));
  DType held = carrier(target, to), now = carrier(target, from);
  std::string dtype = dtype_text(target, held);
  auto filled = [&](std::string_view text) {
    return expression(
        fill(text, [&](std::string_view key) { return key == "0" ? x : expression(dtype); }));
  };
  bool torch = target == "torch";
  std::string_view plain = torch ? "{0}.to({dtype})" : "{0}.astype({dtype})";
  if (to == DType::b1) return filled("{0} != 0");
  if (is_complex(from) && !is_complex(to)) x = filled("{0}.real"), now = real_of(from);
  if (is_float(now) && is_integer(to)) {
    if (held != to && to == DType::u64)
      unsupported({"convert to int64"}, "python source: torch converts no floats to uint64");
    std::string ends = dtype_text(target, to);
    return expression(held == to ? format("_to_integer({}, {})", x.text, ends)
                                 : format("_to_integer({}, {}).to({})", x.text, ends, dtype));
  }
  if (held != to) {  // wraps
    Expression wide = now == held ? x : filled(plain);
    if (to == DType::u64 || kind_of(from) == Kind::boolean ||
        (carrier(target, from) != from && size_of(from) <= size_of(to)))
      return wide;
    return expression(fill("{0} & {1}", [&](std::string_view key) {
      return key == "0" ? wide : expression(to == DType::u16 ? "0xFFFF" : "0xFFFFFFFF");
    }));
  }
  return now == held ? x : filled(plain);
}

Expression bitcast_text(std::string_view target, const Expression& given, DType from, DType to) {
  Expression x = given;
  if (x.literal) x = expression(typed(target, x, from));
  auto filled = [&](std::string_view text, DType type) {
    return expression(fill(text, [&](std::string_view key) {
      return key == "0" ? x : expression(dtype_text(target, type));
    }));
  };
  if (target == "numpy") return filled("{0}.view({dtype})", to);
  if (target == "jax") return filled("lax.bitcast_convert_type({0}, {dtype})", to);
  auto plain = [](DType type) { return type == DType::u16 ? DType::i16 : DType::i32; };
  if (carrier(target, from) != from) x = filled("{0}.to({dtype})", plain(from)), from = plain(from);
  bool held = carrier(target, to) != to;
  DType seen = held ? plain(to) : to;
  if (seen != from) x = filled("{0}.view({dtype})", seen);
  if (!held) return x;
  x = filled("{0}.to({dtype})", DType::i64);
  return filled(to == DType::u16 ? "{0} & 0xFFFF" : "{0} & 0xFFFFFFFF", to);
}

Expression operation(std::string_view target, const loop::Value& value, DType in,
                     std::span<const Expression> operands) {
  if (carrier(target, in) != in && in == DType::u64) check_signed(value, operands);
  if (value.op == Op::cast) return cast_text(target, operands[0], in, value.type);
  if (value.op == Op::bitcast) return bitcast_text(target, operands[0], in, value.type);
  std::string_view text = form_of(target, value.op, in, operands);
  bool all = true;  // of what decides the element type
  for (size_t i = value.op == Op::select ? 1 : 0; i < operands.size(); ++i)
    all &= operands[i].literal;
  size_t first = value.op == Op::select ? 1 : 0;
  Expression made = expression(fill(text, [&](std::string_view key) -> Expression {
    if (key == "xp") return {std::string(module_of(target))};
    size_t k = static_cast<size_t>(key[0] - '0');
    const Expression& x = operands[k];
    bool type = key.ends_with('!') || (all && k == first) || (value.op == Op::select && k == 0);
    if (!x.literal || !type) return x;
    return expression(typed(target, x, value.op == Op::select && k == 0 ? DType::b1 : in));
  }));
  if (carrier(target, in) != in && in == DType::u64 && value.op == Op::shr) {
    int64_t count = std::atoll(operands[1].text.c_str());  // the sign came in from the left
    if (count == 0) return made;
    return expression(fill("{0} & {1}", [&](std::string_view key) {
      return key == "0" ? made : Expression{format("{:#x}", ~uint64_t{0} >> count)};
    }));
  }
  if (carrier(target, in) != in && !facts(value.op).compares)
    if (std::string_view mask = cut(value.op, in); !mask.empty())
      return expression(fill("{0} & {1}", [&](std::string_view key) {
        return key == "0" ? made : Expression{std::string(mask)};
      }));
  return made;
}

bool takes_complex(Op op) {
  switch (op) {
    case Op::neg:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::eq:
    case Op::ne:
    case Op::select:
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::sinh:
    case Op::cosh:
    case Op::tanh:
    case Op::constant:
    case Op::argument:
      return true;
    default:
      return false;
  }
}

}  // namespace tn::source
