#include "loop/builder.h"

#include "base/error.h"
#include "loop/analysis.h"

namespace tn::loop {

DType S::type() const { return builder->value(*this).type; }

int Builder::add_axis(Dim extent, AxisKind kind) {
  kernel_.axes.push_back({extent, kind});
  return static_cast<int>(kernel_.axes.size()) - 1;
}

int Builder::add_buffer(std::string name, DType type, Dim size, bool written) {
  kernel_.buffers.push_back({std::move(name), type, size, written});
  return static_cast<int>(kernel_.buffers.size()) - 1;
}

PolyId Builder::axis(int k) {
  Dim extent = kernel_.axes[static_cast<size_t>(k)].extent;
  return kernel_.polys.axis(static_cast<uint32_t>(k), kernel_.polys.from_dim(extent));
}

PolyId Builder::value_index(S value, Dim extent) {
  int64_t last = bounds(extent).hi - 1;
  return kernel_.polys.value(static_cast<uint32_t>(value.id), 0, last < 0 ? 0 : last);
}

S Builder::push(Value value) {
  kernel_.values.push_back(value);
  return {this, static_cast<ValueId>(kernel_.values.size()) - 1};
}

S Builder::constant(const Scalar& value, DType type) {
  Value v{.op = Op::constant, .type = type};
  v.literal = value;
  return push(v);
}

S Builder::argument(int number, DType type) {
  return push({.op = Op::argument, .type = type, .a = number});
}

S Builder::index(PolyId poly) {
  Value v{.op = Op::index, .type = DType::i64, .axes = axes_in(kernel_, poly)};
  v.index = poly;
  return push(v);
}

S Builder::load(int buffer, PolyId index, MaskId mask) {
  Value v{.op = Op::load, .type = kernel_.buffers[static_cast<size_t>(buffer)].type};
  v.buffer = buffer;
  v.index = index;
  v.mask = mask;
  v.axes = axes_in(kernel_, index) | axes_in_mask(kernel_, mask);
  return push(v);
}

MaskId Builder::mask(std::span<const PolyId> at_least_zero) {
  if (at_least_zero.empty()) return kNone;
  Mask mask(at_least_zero.begin(), at_least_zero.end());
  for (size_t i = 0; i < kernel_.masks.size(); ++i)
    if (kernel_.masks[i] == mask) return static_cast<MaskId>(i);
  kernel_.masks.push_back(std::move(mask));
  return static_cast<MaskId>(kernel_.masks.size()) - 1;
}

S Builder::unary(Op op, S a) {
  DType type = facts(op).compares ? DType::b1 : value(a).type;
  bool narrow = narrow_ && facts(op).narrow && type == DType::f32;
  return push({.op = op, .type = type, .narrow = narrow, .axes = value(a).axes, .a = a.id});
}

S Builder::binary(Op op, S a, S b) {
  DType type = facts(op).compares ? DType::b1 : value(a).type;
  AxisSet axes = value(a).axes | value(b).axes;
  return push({.op = op, .type = type, .axes = axes, .a = a.id, .b = b.id});
}

S Builder::ternary(Op op, S a, S b, S c) {
  AxisSet axes = value(a).axes | value(b).axes | value(c).axes;
  return push({.op = op, .type = value(b).type, .axes = axes, .a = a.id, .b = b.id, .c = c.id});
}

S Builder::cast(S a, DType type) {
  if (value(a).type == type) return a;
  return push({.op = Op::cast, .type = type, .axes = value(a).axes, .a = a.id});
}

S Builder::rounded(S a, DType type) {
  const Value& wide = value(a);
  if (wide.op == Op::cast && is_float(type) && info(type).compute == wide.type) {
    const Value& before = value({this, wide.a});  // a NaN that is loaded may change its bits
    if (before.op == Op::cast && before.type == type) return {this, wide.a};
  }
  return cast(a, type);
}

S Builder::bitcast(S a, DType type) {
  if (value(a).type == type) return a;
  return push({.op = Op::bitcast, .type = type, .axes = value(a).axes, .a = a.id});
}

S Builder::reduce(Monoid monoid, S a, AxisSet over) {
  bool arg = monoid == Monoid::argmax || monoid == Monoid::argmin;
  return push({.op = Op::reduce,
               .type = arg ? DType::i64 : value(a).type,
               .monoid = monoid,
               .axes = value(a).axes & ~over,
               .over = over,
               .a = a.id});
}

S Builder::scan(Monoid monoid, S a, int axis, bool reverse, bool exclusive) {
  AxisSet over = AxisSet{1} << axis;
  return push({.op = Op::scan,
               .type = value(a).type,
               .monoid = monoid,
               .reverse = reverse,
               .exclusive = exclusive,
               .axes = value(a).axes | over,
               .over = over,
               .a = a.id});
}

void Builder::store(int buffer, PolyId index, S value, MaskId mask, Combine combine) {
  kernel_.buffers[static_cast<size_t>(buffer)].written = true;
  kernel_.stores.push_back(
      {buffer, index, value.id, mask, combine, kernel_.polys.has_values(index)});
}

Kernel Builder::finish() {
  verify(kernel_);
  return std::move(kernel_);
}

S constant_like(S like, double x) {
  DType type = like.type();
  if (is_float(type)) return like.builder->constant(x, type);
  return like.builder->constant(static_cast<int64_t>(x), type);
}

static S unary(Op op, S a) { return a.builder->unary(op, a); }
static S binary(Op op, S a, S b) { return a.builder->binary(op, a, b); }

S operator+(S a, S b) { return binary(Op::add, a, b); }
S operator-(S a, S b) { return binary(Op::sub, a, b); }
S operator*(S a, S b) { return binary(Op::mul, a, b); }
S operator/(S a, S b) { return binary(Op::div, a, b); }
S operator-(S a) { return unary(Op::neg, a); }
S operator&(S a, S b) { return binary(Op::and_, a, b); }
S operator|(S a, S b) { return binary(Op::or_, a, b); }
S operator^(S a, S b) { return binary(Op::xor_, a, b); }
S operator<<(S a, S b) { return binary(Op::shl, a, b); }
S operator>>(S a, S b) { return binary(Op::shr, a, b); }
S operator!(S a) { return unary(Op::not_, a); }
S operator==(S a, S b) { return binary(Op::eq, a, b); }
S operator!=(S a, S b) { return binary(Op::ne, a, b); }
S operator<(S a, S b) { return binary(Op::lt, a, b); }
S operator<=(S a, S b) { return binary(Op::le, a, b); }

namespace sc {
S abs(S a) { return unary(Op::abs, a); }
S floor(S a) { return unary(Op::floor, a); }
S ceil(S a) { return unary(Op::ceil, a); }
S round(S a) { return unary(Op::round, a); }
S trunc(S a) { return unary(Op::trunc, a); }
S sqrt(S a) { return unary(Op::sqrt, a); }
S is_nan(S a) { return unary(Op::is_nan, a); }
S exp(S a) { return unary(Op::exp, a); }
S exp2(S a) { return unary(Op::exp2, a); }
S expm1(S a) { return unary(Op::expm1, a); }
S log(S a) { return unary(Op::log, a); }
S log2(S a) { return unary(Op::log2, a); }
S log10(S a) { return unary(Op::log10, a); }
S log1p(S a) { return unary(Op::log1p, a); }
S rsqrt(S a) { return unary(Op::rsqrt, a); }
S cbrt(S a) { return unary(Op::cbrt, a); }
S sin(S a) { return unary(Op::sin, a); }
S cos(S a) { return unary(Op::cos, a); }
S tan(S a) { return unary(Op::tan, a); }
S asin(S a) { return unary(Op::asin, a); }
S acos(S a) { return unary(Op::acos, a); }
S atan(S a) { return unary(Op::atan, a); }
S sinh(S a) { return unary(Op::sinh, a); }
S cosh(S a) { return unary(Op::cosh, a); }
S tanh(S a) { return unary(Op::tanh, a); }
S asinh(S a) { return unary(Op::asinh, a); }
S acosh(S a) { return unary(Op::acosh, a); }
S atanh(S a) { return unary(Op::atanh, a); }
S erf(S a) { return unary(Op::erf, a); }
S erfc(S a) { return unary(Op::erfc, a); }
S erfinv(S a) { return unary(Op::erfinv, a); }
S lgamma(S a) { return unary(Op::lgamma, a); }
S sigmoid(S a) { return unary(Op::sigmoid, a); }
S gelu(S a) { return unary(Op::gelu, a); }
S gelu_slope(S a) { return unary(Op::gelu_slope, a); }
S rem(S a, S b) { return binary(Op::rem, a, b); }
S max(S a, S b) { return binary(Op::max, a, b); }
S min(S a, S b) { return binary(Op::min, a, b); }
S pow(S a, S b) { return binary(Op::pow, a, b); }
S atan2(S a, S b) { return binary(Op::atan2, a, b); }
S hypot(S a, S b) { return binary(Op::hypot, a, b); }
S logaddexp(S a, S b) { return binary(Op::logaddexp, a, b); }
S nextafter(S a, S b) { return binary(Op::nextafter, a, b); }
S copysign(S a, S b) { return binary(Op::copysign, a, b); }
S select(S condition, S yes, S no) {
  return condition.builder->ternary(Op::select, condition, yes, no);
}
S fma(S a, S b, S c) { return a.builder->ternary(Op::fma, a, b, c); }
S cast(S a, DType type) { return a.builder->cast(a, type); }
S bitcast(S a, DType type) { return a.builder->bitcast(a, type); }

}  // namespace sc

}  // namespace tn::loop
