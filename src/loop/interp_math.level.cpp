// The elementary functions over blocks of f32 and f64.
#include "loop/interpreter_ops.h"
#include "loop/math_block.h"
#include "loop/math_narrow.h"

namespace tn::TN_LEVEL {
namespace {

using loop::BlockOps;
using loop::Op;

template <class F, class T>
void unary(void* dst, const void* a, const void*, const void*, int64_t n) {
  math::block(F{}, static_cast<const T*>(a), static_cast<T*>(dst), n);
}
template <class F, class T>
void binary(void* dst, const void* a, const void* b, const void*, int64_t n) {
  math::block(F{}, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(dst), n);
}

template <class T>
struct Filler {
  BlockOps& ops;
  loop::BlockFn& at(Op op) {
    return ops.op[static_cast<int>(op)][static_cast<int>(sizeof(T) == 4 ? DType::f32 : DType::f64)];
  }
  template <class F>
  void one(Op op, F) {
    at(op) = unary<F, T>;
  }
  template <class F>
  void two(Op op, F) {
    at(op) = binary<F, T>;
  }
};

template <class T>
void fill(BlockOps& ops) {
  Filler<T> f{ops};
  f.one(Op::exp, [](auto x) { return math::exp(x); });
  f.one(Op::exp2, [](auto x) { return math::exp2(x); });
  f.one(Op::expm1, [](auto x) { return math::expm1(x); });
  f.one(Op::log, [](auto x) { return math::log(x); });
  f.one(Op::log2, [](auto x) { return math::log2(x); });
  f.one(Op::log10, [](auto x) { return math::log10(x); });
  f.one(Op::log1p, [](auto x) { return math::log1p(x); });
  f.one(Op::rsqrt, [](auto x) { return math::rsqrt(x); });
  f.one(Op::cbrt, [](auto x) { return math::cbrt(x); });
  f.one(Op::sin, math::Sin{});
  f.one(Op::cos, math::Cos{});
  f.one(Op::tan, math::Tan{});
  f.one(Op::asin, [](auto x) { return math::asin(x); });
  f.one(Op::acos, [](auto x) { return math::acos(x); });
  f.one(Op::atan, [](auto x) { return math::atan(x); });
  f.one(Op::sinh, [](auto x) { return math::sinh(x); });
  f.one(Op::cosh, [](auto x) { return math::cosh(x); });
  f.one(Op::tanh, [](auto x) { return math::tanh(x); });
  f.one(Op::asinh, [](auto x) { return math::asinh(x); });
  f.one(Op::acosh, [](auto x) { return math::acosh(x); });
  f.one(Op::atanh, [](auto x) { return math::atanh(x); });
  f.one(Op::erf, [](auto x) { return math::erf(x); });
  f.one(Op::erfc, [](auto x) { return math::erfc(x); });
  f.one(Op::erfinv, [](auto x) { return math::erfinv(x); });
  f.one(Op::lgamma, [](auto x) { return math::lgamma(x); });
  f.one(Op::sigmoid, [](auto x) { return math::sigmoid(x); });
  f.one(Op::gelu, [](auto x) { return math::gelu(x); });
  f.one(Op::gelu_slope, [](auto x) { return math::gelu_slope(x); });
  f.two(Op::pow, [](auto x, auto y) { return math::pow(x, y); });
  f.two(Op::atan2, [](auto x, auto y) { return math::atan2(x, y); });
  f.two(Op::hypot, [](auto x, auto y) { return math::hypot(x, y); });
  f.two(Op::logaddexp, [](auto x, auto y) { return math::logaddexp(x, y); });
  f.two(Op::nextafter, [](auto x, auto y) { return math::nextafter(x, y); });
}

}  // namespace

void fill_math(BlockOps& ops) {
  fill<float>(ops);
  fill<double>(ops);
  math::visit_narrow([&](Op op, auto f) {
    ops.op[static_cast<int>(op)][static_cast<int>(DType::bf16)] = unary<decltype(f), float>;
  });
}

}  // namespace tn::TN_LEVEL
