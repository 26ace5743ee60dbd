// Conversions between element types over blocks.
#include "base/half.h"
#include "loop/interpreter_ops.h"
#include "loop/interpreter_scalar.h"

namespace tn::TN_LEVEL {
namespace {

using loop::BlockOps;

struct Bool {
  uint8_t bits;
};

template <class To, class From>
[[gnu::always_inline]] inline To convert(From x) {
  if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<To>(x.bits);
  } else if constexpr (kFloat<From> && !kFloat<To>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void cast(void* dst, const void* a, const void*, const void*, int64_t n) {
  To* out = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, Bool>)
      out[i].bits = x[i] != From{0};
    else
      out[i] = convert<To>(x[i]);
  }
}

template <class Bits, float (*widen)(Bits)>
void from_narrow(void* dst, const void* a, const void*, const void*, int64_t n) {
  float* out = static_cast<float*>(dst);
  const Bits* x = static_cast<const Bits*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = widen(x[i]);
}

template <class Bits, Bits (*narrow)(float)>
void to_narrow(void* dst, const void* a, const void*, const void*, int64_t n) {
  Bits* out = static_cast<Bits*>(dst);
  const float* x = static_cast<const float*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = narrow(x[i]);
}

template <class Bits, Bits (*narrow)(float)>
void double_to_narrow(void* dst, const void* a, const void*, const void*, int64_t n) {
  Bits* out = static_cast<Bits*>(dst);
  const double* x = static_cast<const double*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = narrow(double_to_float_odd(x[i]));
}

template <class T, class Bits, Bits (*narrow)(float)>
void integer_to_narrow(void* dst, const void* a, const void*, const void*, int64_t n) {
  Bits* out = static_cast<Bits*>(dst);
  const T* x = static_cast<const T*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = narrow(double_to_float_odd(to_double_odd(x[i])));
}

template <class Bits, float (*widen)(Bits), Bits (*narrow)(float)>
void fill_narrow(BlockOps& ops, DType type) {
  int t = static_cast<int>(type), f32 = static_cast<int>(DType::f32);
  ops.cast[t][f32] = from_narrow<Bits, widen>;
  ops.cast[f32][t] = to_narrow<Bits, narrow>;
  ops.cast[static_cast<int>(DType::f64)][t] = double_to_narrow<Bits, narrow>;
  ops.cast[static_cast<int>(DType::i32)][t] = integer_to_narrow<int32_t, Bits, narrow>;
  ops.cast[static_cast<int>(DType::u32)][t] = integer_to_narrow<uint32_t, Bits, narrow>;
  ops.cast[static_cast<int>(DType::i64)][t] = integer_to_narrow<int64_t, Bits, narrow>;
  ops.cast[static_cast<int>(DType::u64)][t] = integer_to_narrow<uint64_t, Bits, narrow>;
}

template <class From>
void fill_from(BlockOps& ops, DType from) {
  auto set = [&](DType to, loop::BlockFn fn) {
    ops.cast[static_cast<int>(from)][static_cast<int>(to)] = fn;
  };
  if constexpr (!std::is_same_v<From, Bool>) set(DType::b1, cast<From, Bool>);
  set(DType::i8, cast<From, int8_t>);
  set(DType::i16, cast<From, int16_t>);
  set(DType::i32, cast<From, int32_t>);
  set(DType::i64, cast<From, int64_t>);
  set(DType::u8, cast<From, uint8_t>);
  set(DType::u16, cast<From, uint16_t>);
  set(DType::u32, cast<From, uint32_t>);
  set(DType::u64, cast<From, uint64_t>);
  set(DType::f32, cast<From, float>);
  set(DType::f64, cast<From, double>);
}

}  // namespace

void fill_casts(BlockOps& ops) {
  fill_from<Bool>(ops, DType::b1);
  fill_from<int8_t>(ops, DType::i8);
  fill_from<int16_t>(ops, DType::i16);
  fill_from<int32_t>(ops, DType::i32);
  fill_from<int64_t>(ops, DType::i64);
  fill_from<uint8_t>(ops, DType::u8);
  fill_from<uint16_t>(ops, DType::u16);
  fill_from<uint32_t>(ops, DType::u32);
  fill_from<uint64_t>(ops, DType::u64);
  fill_from<float>(ops, DType::f32);
  fill_from<double>(ops, DType::f64);
  fill_narrow<uint16_t, float16_to_float, float_to_float16>(ops, DType::f16);
  fill_narrow<uint16_t, bfloat16_to_float, float_to_bfloat16>(ops, DType::bf16);
  fill_narrow<uint8_t, float8_e4m3fn_to_float, float_to_float8_e4m3fn>(ops, DType::f8e4m3);
  fill_narrow<uint8_t, float8_e5m2_to_float, float_to_float8_e5m2>(ops, DType::f8e5m2);
}

}  // namespace tn::TN_LEVEL
