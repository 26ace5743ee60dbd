// Arithmetic, comparisons and selection over blocks.
#include "loop/interpreter_ops.h"
#include "loop/interpreter_scalar.h"

namespace tn::TN_LEVEL {
namespace {

using loop::BlockOps;
using loop::Op;

// Two places for one loop body: `dst` may equal an operand, so the loops are marked free of
// dependences between elements instead of restrict.
template <class F, class T, class R = T>
void unary(void* dst, const void* a, const void*, const void*, int64_t n) {
  R* out = static_cast<R*>(dst);
  const T* x = static_cast<const T*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = F::apply(x[i]);
}

template <class F, class T, class R = T>
void binary(void* dst, const void* a, const void* b, const void*, int64_t n) {
  R* out = static_cast<R*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = F::apply(x[i], y[i]);
}

template <class T>
void select(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  T* out = static_cast<T*>(dst);
  const uint8_t* condition = static_cast<const uint8_t*>(a);
  const T* x = static_cast<const T*>(b);
  const T* y = static_cast<const T*>(c);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T yes = x[i], no = y[i];
    out[i] = condition[i] ? yes : no;
  }
}

template <class T>
void fma(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  T* out = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T* z = static_cast<const T*>(c);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(T) == 4)
      out[i] = __builtin_fmaf(x[i], y[i], z[i]);
    else
      out[i] = __builtin_fma(x[i], y[i], z[i]);
  }
}

struct Neg {
  template <class T>
  [[gnu::always_inline]] static T apply(T a) {
    return static_cast<T>(-static_cast<Wide<T>>(a));
  }
};
struct Abs {
  template <class T>
  [[gnu::always_inline]] static T apply(T a) {
    if constexpr (kFloat<T>)
      return sizeof(T) == 4 ? static_cast<T>(__builtin_fabsf(static_cast<float>(a)))
                            : static_cast<T>(__builtin_fabs(a));
    else if constexpr (kSigned<T>)
      return a < 0 ? Neg::apply(a) : a;
    else
      return a;
  }
};
struct Not {
  template <class T>
  [[gnu::always_inline]] static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct NotBool {
  [[gnu::always_inline]] static uint8_t apply(uint8_t a) { return a ^ 1; }
};
struct Floor {
  [[gnu::always_inline]] static float apply(float a) { return __builtin_floorf(a); }
  [[gnu::always_inline]] static double apply(double a) { return __builtin_floor(a); }
};
struct Ceil {
  [[gnu::always_inline]] static float apply(float a) { return __builtin_ceilf(a); }
  [[gnu::always_inline]] static double apply(double a) { return __builtin_ceil(a); }
};
struct Round {
  [[gnu::always_inline]] static float apply(float a) { return __builtin_rintf(a); }
  [[gnu::always_inline]] static double apply(double a) { return __builtin_rint(a); }
};
struct Trunc {
  [[gnu::always_inline]] static float apply(float a) { return __builtin_truncf(a); }
  [[gnu::always_inline]] static double apply(double a) { return __builtin_trunc(a); }
};
struct Sqrt {
  [[gnu::always_inline]] static float apply(float a) { return __builtin_sqrtf(a); }
  [[gnu::always_inline]] static double apply(double a) { return __builtin_sqrt(a); }
};
struct CopySign {
  [[gnu::always_inline]] static float apply(float a, float b) { return __builtin_copysignf(a, b); }
  [[gnu::always_inline]] static double apply(double a, double b) {
    return __builtin_copysign(a, b);
  }
};
struct IsNan {
  template <class T>
  [[gnu::always_inline]] static uint8_t apply(T a) {
    return a != a;
  }
};
struct Eq {
  template <class T>
  [[gnu::always_inline]] static uint8_t apply(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  [[gnu::always_inline]] static uint8_t apply(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  [[gnu::always_inline]] static uint8_t apply(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  [[gnu::always_inline]] static uint8_t apply(T a, T b) {
    return a <= b;
  }
};

struct Filler {
  BlockOps& ops;
  int type;
  void set(Op op, loop::BlockFn fn) { ops.op[static_cast<int>(op)][type] = fn; }
};

template <class T>
void fill_comparisons(Filler& f) {
  f.set(Op::eq, binary<Eq, T, uint8_t>);
  f.set(Op::ne, binary<Ne, T, uint8_t>);
  f.set(Op::lt, binary<Lt, T, uint8_t>);
  f.set(Op::le, binary<Le, T, uint8_t>);
  f.set(Op::max, binary<Max, T>);
  f.set(Op::min, binary<Min, T>);
}

// Where the sign makes no difference, the unsigned loop serves both.
template <class T>
void fill_integer(BlockOps& ops, DType type) {
  using U = std::make_unsigned_t<T>;
  Filler f{ops, static_cast<int>(type)};
  fill_comparisons<T>(f);
  f.set(Op::add, binary<Add, U>);
  f.set(Op::sub, binary<Sub, U>);
  f.set(Op::mul, binary<Mul, U>);
  f.set(Op::div, binary<Div, T>);
  f.set(Op::rem, binary<Rem, T>);
  f.set(Op::and_, binary<And, U>);
  f.set(Op::or_, binary<Or, U>);
  f.set(Op::xor_, binary<Xor, U>);
  f.set(Op::shl, binary<Shl, U>);
  f.set(Op::shr, binary<Shr, T>);
  f.set(Op::neg, unary<Neg, U>);
  f.set(Op::abs, unary<Abs, T>);
  f.set(Op::not_, unary<Not, U>);
  f.set(Op::select, select<U>);
}

template <class T>
void fill_float(BlockOps& ops, DType type) {
  Filler f{ops, static_cast<int>(type)};
  fill_comparisons<T>(f);
  f.set(Op::add, binary<Add, T>);
  f.set(Op::sub, binary<Sub, T>);
  f.set(Op::mul, binary<Mul, T>);
  f.set(Op::div, binary<Div, T>);
  f.set(Op::rem, binary<Rem, T>);
  f.set(Op::copysign, binary<CopySign, T>);
  f.set(Op::neg, unary<Neg, T>);
  f.set(Op::abs, unary<Abs, T>);
  f.set(Op::floor, unary<Floor, T>);
  f.set(Op::ceil, unary<Ceil, T>);
  f.set(Op::round, unary<Round, T>);
  f.set(Op::trunc, unary<Trunc, T>);
  f.set(Op::sqrt, unary<Sqrt, T>);
  f.set(Op::is_nan, unary<IsNan, T, uint8_t>);
  f.set(Op::fma, fma<T>);
  f.set(Op::select, select<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>);
}

void fill_bool(BlockOps& ops) {
  Filler f{ops, static_cast<int>(DType::b1)};
  fill_comparisons<uint8_t>(f);
  f.set(Op::and_, binary<And, uint8_t>);
  f.set(Op::or_, binary<Or, uint8_t>);
  f.set(Op::xor_, binary<Xor, uint8_t>);
  f.set(Op::not_, unary<NotBool, uint8_t>);
  f.set(Op::select, select<uint8_t>);
}

}  // namespace

void fill_arithmetic(BlockOps& ops) {
  fill_integer<int8_t>(ops, DType::i8);
  fill_integer<int16_t>(ops, DType::i16);
  fill_integer<int32_t>(ops, DType::i32);
  fill_integer<int64_t>(ops, DType::i64);
  fill_integer<uint8_t>(ops, DType::u8);
  fill_integer<uint16_t>(ops, DType::u16);
  fill_integer<uint32_t>(ops, DType::u32);
  fill_integer<uint64_t>(ops, DType::u64);
  fill_float<float>(ops, DType::f32);
  fill_float<double>(ops, DType::f64);
  fill_bool(ops);
  // Narrow floats are moved, not computed with: choosing between two is moving.
  for (DType type : {DType::f16, DType::bf16})
    ops.op[static_cast<int>(Op::select)][static_cast<int>(type)] = select<uint16_t>;
  for (DType type : {DType::f8e4m3, DType::f8e5m2})
    ops.op[static_cast<int>(Op::select)][static_cast<int>(type)] = select<uint8_t>;
}

}  // namespace tn::TN_LEVEL
