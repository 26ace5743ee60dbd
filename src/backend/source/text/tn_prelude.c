//// C that printed functions need. A section of text begins below lines with four slashes. In it `$`
//// is an element type, @T its type in C.

//// section base
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define TN_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TN_INDEPENDENT
#endif
#if defined(_OPENMP) /* not for little work: threads take a while to meet */
#define TN_PRAGMA(TEXT) _Pragma(#TEXT)
#define TN_PARALLEL(WORK) TN_PRAGMA(omp parallel for if ((WORK) > 32768))
#define TN_THREADS(WORK) TN_PRAGMA(omp parallel if ((WORK) > 32768)) /* who share loops */
#define TN_SHARED TN_PRAGMA(omp for)
#else
#define TN_PARALLEL(WORK)
#define TN_THREADS(WORK)
#define TN_SHARED
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "float and double must be computed in their own precision"
#endif
#if defined(__GNUC__) /* memory is reused for elements of other types */
#define TN_ELEMENT __attribute__((may_alias))
#define TN_FN static inline __attribute__((unused))
#else
#include <math.h>
#define TN_ELEMENT
#define TN_FN static inline
@#endif

//// section bits
TN_FN void *tn_at(void *base, int64_t bytes) { return (char *)base + bytes; }
TN_FN const void *tn_read_at(const void *base, int64_t bytes) { return (const char *)base + bytes; }
TN_FN uint32_t tn_bits_f32(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
TN_FN uint64_t tn_bits_f64(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
TN_FN float tn_from_bits_f32(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
TN_FN double tn_from_bits_f64(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

//// section floor
TN_FN int64_t tn_floor_div(int64_t x, int64_t d) {
  if (d < 1) d = 1;
  return x / d - (x % d < 0);
}
TN_FN int64_t tn_floor_mod(int64_t x, int64_t d) {
  if (d < 1) d = 1;
  return x % d + (x % d < 0 ? d : 0);
}

//// section ordered
//// Of every type: @T, the unsigned @U of its size, and @W, in which arithmetic wraps.
TN_FN tn_bool tn_lt_$(@T a, @T b) { return a < b; }
TN_FN tn_bool tn_le_$(@T a, @T b) { return a <= b; }
TN_FN @T tn_max_$(@T a, @T b) { return a > b ? a : b; }
TN_FN @T tn_min_$(@T a, @T b) { return a < b ? a : b; }

//// section signed
//// Division by zero gives 0, shifts by the width or more shift everything out.
TN_FN @T tn_shl_$(@T a, @T b) {
  const @U bits = 8 * sizeof(@T), count = (@U)b;
  return count < bits ? (@T)((@W)a << (count & (bits - 1))) : 0;
}
TN_FN @T tn_div_$(@T a, @T b) { return b == 0 ? 0 : b == -1 ? (@T)(0 - (@W)a) : (@T)(a / b); }
TN_FN @T tn_rem_$(@T a, @T b) { return b == 0 || b == -1 ? 0 : (@T)(a % b); }
TN_FN @T tn_abs_$(@T a) { return a < 0 ? (@T)(0 - (@W)a) : a; }
TN_FN @T tn_shr_$(@T a, @T b) {
  const @U bits = 8 * sizeof(@T), count = (@U)b;
  return count < bits ? (@T)(a >> (count & (bits - 1))) : (@T)(a < 0 ? -1 : 0);
}

//// section unsigned
TN_FN @T tn_shl_$(@T a, @T b) {
  const @T bits = 8 * sizeof(@T);
  return b < bits ? (@T)((@W)a << (b & (bits - 1))) : 0;
}
TN_FN @T tn_div_$(@T a, @T b) { return b == 0 ? 0 : (@T)(a / b); }
TN_FN @T tn_rem_$(@T a, @T b) { return b == 0 ? 0 : (@T)(a % b); }
TN_FN @T tn_abs_$(@T a) { return a; }
TN_FN @T tn_shr_$(@T a, @T b) {
  const @T bits = 8 * sizeof(@T);
  return b < bits ? (@T)(a >> (b & (bits - 1))) : 0;
}

//// section floats
//// A NaN operand is the result.
TN_FN @T tn_max_$(@T a, @T b) { return ((a > b) | (a != a)) ? a : b; }
TN_FN @T tn_min_$(@T a, @T b) { return ((a < b) | (a != a)) ? a : b; }

//// section saturate
/* Conversions to integers saturate and take NaN to 0: HIGH is the first number too large,
   LOW the first too small or, when CLOSED, the last that fits. */
#define TN_SATURATE(N, T, F, FT, VIA, LOW, CLOSED, HIGH, LEAST, MOST) \
  TN_FN T tn_##N##_from_##F(FT x) { \
    const int inside = (CLOSED ? x >= (FT)(LOW) : x > (FT)(LOW)) & (x < (FT)(HIGH)); \
    const T outside = x >= (FT)(HIGH) ? (T)(MOST) : x < 0 ? (T)(LEAST) : (T)0; \
    const T result = (T)(VIA)(inside ? x : 0); \
    return inside ? result : outside; \
  }
#define TN_SATURATE_FROM(F, FT, WIDE) \
  TN_SATURATE(i8, int8_t, F, FT, int32_t, -129.0, 0, 128.0, INT8_MIN, INT8_MAX) \
  TN_SATURATE(i16, int16_t, F, FT, int32_t, -32769.0, 0, 32768.0, INT16_MIN, INT16_MAX) \
  TN_SATURATE(i32, int32_t, F, FT, int32_t, -2147483648.0 - WIDE, !WIDE, 2147483648.0, \
              INT32_MIN, INT32_MAX) \
  TN_SATURATE(i64, int64_t, F, FT, int64_t, -0x1p63, 1, 0x1p63, INT64_MIN, INT64_MAX) \
  TN_SATURATE(u8, uint8_t, F, FT, int32_t, -1.0, 0, 256.0, 0, UINT8_MAX) \
  TN_SATURATE(u16, uint16_t, F, FT, int32_t, -1.0, 0, 65536.0, 0, UINT16_MAX) \
  TN_SATURATE(u32, uint32_t, F, FT, int64_t, -1.0, 0, 4294967296.0, 0, UINT32_MAX) \
  TN_SATURATE(u64, uint64_t, F, FT, uint64_t, 0.0, 1, 0x1p64, 0, UINT64_MAX)

//// section remainder
/* The remainder of the truncating division, exact: long division of the significands. */
TN_FN double tn_rem_f64(double a, double b) {
  const uint64_t sign = tn_bits_f64(a) & UINT64_C(1) << 63, one = UINT64_C(1) << 52;
  uint64_t x = tn_bits_f64(a) & ~(UINT64_C(1) << 63), y = tn_bits_f64(b) & ~(UINT64_C(1) << 63);
  int64_t ex = (int64_t)(x >> 52), ey = (int64_t)(y >> 52);
  if (y == 0 || ex == 2047 || y > UINT64_C(2047) << 52) return a * b / (a * b);
  if (x < y) return a;
  x = ex ? (x & (one - 1)) | one : x, ex += !ex;
  y = ey ? (y & (one - 1)) | one : y, ey += !ey;
  for (; x < one; x <<= 1) --ex;
  for (; y < one; y <<= 1) --ey;
  for (; ex > ey; --ex) x = (x >= y ? x - y : x) << 1;
  x = x >= y ? x - y : x;
  if (x == 0) return tn_from_bits_f64(sign);
  for (; x < one; x <<= 1) --ey;
  x = ey > 0 ? (x & (one - 1)) | (uint64_t)ey << 52 : x >> (1 - ey);
  return tn_from_bits_f64(sign | x);
}
TN_FN float tn_rem_f32(float a, float b) { return (float)tn_rem_f64(a, b); }


//// section narrow
/* Floats of E exponent and M mantissa bits; without infinities, all ones is NaN. */
#define TN_NARROW(N, B, E, M, INF) \
  TN_FN float tn_f32_from_##N(B bits) { \
    const uint32_t sign = 1u << (E + M), rebias = (128u - (1u << (E - 1))) << 23; \
    const uint32_t top = ((1u << E) - 1) << M, nan = INF ? top + 1 : sign - 1; \
    const uint32_t x = bits & (sign - 1), special = 0x7fc00000u | (INF ? x << (23 - M) : 0); \
    const float step = tn_from_bits_f32(rebias - ((uint32_t)(M - 1) << 23)); \
    uint32_t r = x < 1u << M ? tn_bits_f32((float)(int32_t)x * step) : (x << (23 - M)) + rebias; \
    r = INF && x == top ? 0x7f800000u : x >= nan ? special : r; \
    return tn_from_bits_f32(r | (uint32_t)(bits & sign) << (31 - E - M)); \
  } \
  TN_FN B tn_##N##_from_f32(float value) { \
    const uint32_t sign = 1u << (E + M), rebias = (128u - (1u << (E - 1))) << 23; \
    const uint32_t top = ((1u << E) - 1) << M, nan = INF ? top | 1u << (M - 1) : sign - 1; \
    const uint32_t half = 1u << (22 - M), magic = rebias + ((uint32_t)(24 - M) << 23); \
    const uint32_t over = ((INF ? top : nan) << (23 - M)) + rebias - half + !INF; \
    const uint32_t bits = tn_bits_f32(value), x = bits & 0x7fffffffu, odd = x >> (23 - M) & 1; \
    const uint32_t small = tn_bits_f32(tn_from_bits_f32(x) + tn_from_bits_f32(magic)) - magic; \
    uint32_t r = x < rebias + (1u << 23) ? small : (x - rebias + half - 1 + odd) >> (23 - M); \
    r = x >= over ? (INF ? top : nan) : r; \
    r = x > 0x7f800000u ? nan | (INF ? x >> (23 - M) & ((1u << M) - 1) : 0) : r; \
    return (B)(r | (bits & 0x80000000u) >> (31 - E - M)); \
  }

//// section bf16
TN_FN float tn_f32_from_bf16(uint16_t bits) {
  const uint32_t x = (uint32_t)bits << 16;
  return tn_from_bits_f32((x & 0x7fffffffu) > 0x7f800000u ? x | 0x00400000u : x);
}
TN_FN uint16_t tn_bf16_from_f32(float value) {
  const uint32_t x = tn_bits_f32(value), rounded = (x + 0x7fffu + (x >> 16 & 1)) >> 16;
  return (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? x >> 16 | 0x40u : rounded);
}

//// section math
//// They are inlined, so that loops over them vectorise.
#if defined(__GNUC__)
#define TN_MATH static inline __attribute__((always_inline, unused))
#else
#define TN_MATH static inline
#endif

//// section odd
/* Rounded to odd, so that a second rounding to fewer bits makes the two one. */
TN_FN float tn_odd_from_f64(double x) {
  const float near = (float)x;
  const uint32_t bits = tn_bits_f32(near), away = __builtin_fabs((double)near) > __builtin_fabs(x);
  return tn_from_bits_f32((double)near == x || x != x ? bits : (bits - away) | 1u);
}
TN_FN double tn_odd_from_u64(uint64_t x) {
  const uint64_t odd = (x & ~UINT64_C(0x7ff)) | (x & 0x7ff ? 0x800 : 0);
  return (double)(x <= UINT64_C(1) << 53 ? x : odd);
}
TN_FN double tn_odd_from_i64(int64_t x) {
  const uint64_t bits = (uint64_t)x, odd = (bits & ~UINT64_C(0x7ff)) | (bits & 0x7ff ? 0x800 : 0);
  return (double)(int64_t)(bits + (UINT64_C(1) << 53) <= UINT64_C(1) << 54 ? bits : odd);
}
