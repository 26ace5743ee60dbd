/* C11 without dependencies. Compile with
   -std=c11 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math
   and -fopenmp to use several threads. */
#ifndef CNN_H
#define CNN_H

#ifdef __cplusplus
extern "C" {
#endif
/* cnn
   inputs[0]: f32[2,3,19,18] x
   inputs[1]: f32[20,3,3,3] w1
   inputs[2]: f32[1,20,1,1] scale
   inputs[3]: f32[1,20,1,1] shift
   inputs[4]: f32[17,20,3,3] w2
   inputs[5]: f32[10,17] w3
   inputs[6]: f32[10] b3
   outputs[0]: f32[2,10]
   arena: aligned to 64 bytes; calls at the same time need one each. */
#define CNN_ARENA_BYTES 178240
int cnn_run(const void *const *inputs, void *const *outputs, void *arena);

#ifdef __cplusplus
}
#endif
#endif

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
#define __builtin_fma fma
#define __builtin_fabsf fabsf
#define __builtin_floorf floorf
#define __builtin_rint rint
#define __builtin_sqrtf sqrtf
#endif
typedef uint8_t TN_ELEMENT tn_bool;
typedef int32_t TN_ELEMENT tn_i32;
typedef int64_t TN_ELEMENT tn_i64;
typedef uint64_t TN_ELEMENT tn_u64;
typedef float TN_ELEMENT tn_f32;
typedef double TN_ELEMENT tn_f64;
TN_FN void *tn_at(void *base, int64_t bytes) { return (char *)base + bytes; }
TN_FN uint32_t tn_bits_f32(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
TN_FN uint64_t tn_bits_f64(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
TN_FN float tn_from_bits_f32(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
TN_FN double tn_from_bits_f64(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }
TN_FN int64_t tn_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
TN_FN int64_t tn_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
TN_FN int64_t tn_shl_i64(int64_t a, int64_t b) {
  const uint64_t bits = 8 * sizeof(int64_t), count = (uint64_t)b;
  return count < bits ? (int64_t)((uint64_t)a << (count & (bits - 1))) : 0;
}
TN_FN uint64_t tn_shr_u64(uint64_t a, uint64_t b) {
  const uint64_t bits = 8 * sizeof(uint64_t);
  return b < bits ? (uint64_t)(a >> (b & (bits - 1))) : 0;
}
TN_FN float tn_max_f32(float a, float b) { return ((a > b) | (a != a)) ? a : b; }
#if defined(__GNUC__)
#define TN_MATH static inline __attribute__((always_inline, unused))
#else
#define TN_MATH static inline
#endif
TN_MATH tn_f32 tn_rsqrt_f32(tn_f32 a) {
  const tn_f32 v0 = a;
  const tn_f32 v2 = __builtin_sqrtf(v0);
  const tn_f32 v3 = 0x1p+0f / v2;
  return v3;
}
TN_MATH tn_f32 tn_pow_f32(tn_f32 a, tn_f32 b) {
  const tn_f32 v0 = a;
  const tn_f32 v1 = b;
  const tn_bool v3 = (tn_bool)(v1 == 0x0p+0f);
  const tn_bool v5 = (tn_bool)(v0 == 0x1p+0f);
  const tn_bool v6 = (tn_bool)((uint32_t)v3 | (uint32_t)v5);
  const tn_bool v7 = (tn_bool)(v0 != v0);
  const tn_bool v8 = (tn_bool)(v1 != v1);
  const tn_bool v9 = (tn_bool)((uint32_t)v7 | (uint32_t)v8);
  const tn_f32 v10 = v0 + v1;
  const tn_bool v11 = (tn_bool)(v0 < 0x0p+0f);
  const tn_f32 v12 = __builtin_fabsf(v0);
  const tn_bool v14 = (tn_bool)(v12 < tn_from_bits_f32(0x7f800000u));
  const tn_bool v15 = (tn_bool)((uint32_t)v11 & (uint32_t)v14);
  const tn_f32 v16 = __builtin_floorf(v1);
  const tn_bool v17 = (tn_bool)(v16 == v1);
  const tn_bool v18 = (tn_bool)(v17 ^ 1);
  const tn_bool v19 = (tn_bool)((uint32_t)v15 & (uint32_t)v18);
  const tn_f32 v22 = v1 * 0x1p-1f;
  const tn_f32 v23 = __builtin_floorf(v22);
  const tn_bool v24 = (tn_bool)(v23 != v22);
  const tn_bool v25 = (tn_bool)((uint32_t)v17 & (uint32_t)v24);
  const tn_bool v26 = (tn_bool)(0x0p+0f < v12);
  const tn_bool v27 = (tn_bool)((uint32_t)v26 & (uint32_t)v14);
  const tn_f32 v29 = v27 ? v12 : 0x1p+0f;
  const tn_f64 v30 = (tn_f64)(v29);
  const tn_i64 v31 = (tn_i64)(tn_bits_f64(v30));
  const tn_i64 v33 = (tn_i64)((uint64_t)v31 + (uint64_t)INT64_C(2638147582215219));
  const tn_u64 v34 = (tn_u64)(v33);
  const tn_u64 v36 = tn_shr_u64(v34, 52);
  const tn_i64 v37 = (tn_i64)(v36);
  const tn_i64 v39 = (tn_i64)((uint64_t)v37 + (uint64_t)INT64_C(4843621399236968448));
  const tn_f64 v40 = tn_from_bits_f64((uint64_t)v39);
  const tn_f64 v42 = v40 - 0x1.8p+52;
  const tn_f64 v44 = v42 - 0x1.ff8p+9;
  const tn_bool v47 = (tn_bool)(v44 == 0x0p+0);
  const tn_f64 v49 = v30 - 0x1p+0;
  const tn_i64 v51 = (tn_i64)((uint64_t)v33 & (uint64_t)INT64_C(4503599627370495));
  const tn_i64 v53 = (tn_i64)((uint64_t)v51 + (uint64_t)INT64_C(4604544271217802189));
  const tn_f64 v54 = tn_from_bits_f64((uint64_t)v53);
  const tn_f64 v55 = v54 - 0x1p+0;
  const tn_f64 v56 = v47 ? v49 : v55;
  const tn_f64 v58 = 0x1p+1 + v56;
  const tn_f64 v59 = v56 / v58;
  const tn_f64 v60 = v59 + v59;
  const tn_f64 v61 = v59 * v59;
  const tn_f64 v64 = __builtin_fma(0x1.8ec0aa70d7e6ep-4, v61, 0x1.c658a157c5ef2p-4);
  const tn_f64 v66 = __builtin_fma(v64, v61, 0x1.2493759832406p-3);
  const tn_f64 v68 = __builtin_fma(v66, v61, 0x1.9999985dcd324p-3);
  const tn_f64 v70 = __builtin_fma(v61, v68, 0x1.5555555555555p-2);
  const tn_f64 v71 = v61 * v70;
  const tn_f64 v72 = __builtin_fma(v60, v71, v60);
  const tn_f64 v73 = __builtin_fma(v44, 0x1.62e42fefa39efp-1, v72);
  const tn_bool v76 = (tn_bool)(v1 < 0x1p+60f);
  const tn_f32 v77 = v76 ? v1 : 0x1p+60f;
  const tn_bool v78 = (tn_bool)((-0x1p+60f) < v77);
  const tn_f32 v79 = v78 ? v77 : (-0x1p+60f);
  const tn_f64 v80 = (tn_f64)(v79);
  const tn_f64 v81 = v73 * v80;
  const tn_bool v83 = (tn_bool)(v81 < 0x1.9p+7);
  const tn_f64 v84 = v83 ? v81 : 0x1.9p+7;
  const tn_bool v85 = (tn_bool)((-0x1.9p+7) < v84);
  const tn_f64 v86 = v85 ? v84 : (-0x1.9p+7);
  const tn_f64 v88 = v86 * 0x1.71547652b82fep+0;
  const tn_f64 v89 = __builtin_rint(v88);
  const tn_f64 v90 = v89 + 0x1.8p+52;
  const tn_i64 v91 = (tn_i64)(tn_bits_f64(v90));
  const tn_i64 v92 = (tn_i64)((uint64_t)v91 - (uint64_t)INT64_C(4843621399236968448));
  const tn_i64 v94 = (tn_i64)((uint64_t)v92 + (uint64_t)1023);
  const tn_i64 v96 = tn_shl_i64(v94, 52);
  const tn_f64 v97 = tn_from_bits_f64((uint64_t)v96);
  const tn_f64 v98 = -v89;
  const tn_f64 v99 = __builtin_fma(v98, 0x1.62e42fefa39efp-1, v86);
  const tn_f64 v100 = v99 * v99;
  const tn_f64 v103 = __builtin_fma(0x1.9e87a5522326dp-16, v99, 0x1.a18550b2a6ddp-13);
  const tn_f64 v105 = __builtin_fma(v103, v99, 0x1.6c18d45f43accp-10);
  const tn_f64 v107 = __builtin_fma(v105, v99, 0x1.1110a269a134p-7);
  const tn_f64 v109 = __builtin_fma(v107, v99, 0x1.5555541ddc7p-5);
  const tn_f64 v111 = __builtin_fma(v109, v99, 0x1.5555557dcd3a3p-3);
  const tn_f64 v113 = __builtin_fma(v111, v99, 0x1.000000005e00bp-1);
  const tn_f64 v114 = __builtin_fma(v100, v113, v99);
  const tn_f64 v115 = __builtin_fma(v97, v114, v97);
  const tn_f32 v116 = (tn_f32)(v115);
  const tn_bool v117 = (tn_bool)(v12 == 0x0p+0f);
  const tn_bool v118 = (tn_bool)(0x0p+0f < v1);
  const tn_f32 v119 = v118 ? 0x0p+0f : tn_from_bits_f32(0x7f800000u);
  const tn_f32 v120 = v118 ? tn_from_bits_f32(0x7f800000u) : 0x0p+0f;
  const tn_f32 v121 = v117 ? v119 : v120;
  const tn_f32 v122 = v27 ? v116 : v121;
  const tn_f32 v123 = __builtin_fabsf(v122);
  const tn_i32 v124 = (tn_i32)(tn_bits_f32(v123));
  const tn_i32 v125 = (tn_i32)(tn_bits_f32(v0));
  const tn_i32 v127 = (tn_i32)((uint32_t)v125 & (uint32_t)(-2147483648));
  const tn_i32 v128 = (tn_i32)((uint32_t)v124 | (uint32_t)v127);
  const tn_f32 v129 = tn_from_bits_f32((uint32_t)v128);
  const tn_f32 v130 = v25 ? v129 : v122;
  const tn_f32 v131 = v19 ? tn_from_bits_f32(0x7fc00000u) : v130;
  const tn_f32 v132 = v9 ? v10 : v131;
  const tn_f32 v133 = v6 ? 0x1p+0f : v132;
  return v133;
}

/* Sums of products lie in registers: TN_ROWS rows of two vectors. TN_MADD is a number times a
   vector plus a vector, fused where the machine can. */
#if defined(__GNUC__) && !defined(TN_PLAIN)
#if defined(__AVX512F__)
#include <immintrin.h>
#define TN_VECTOR 64
#define TN_ROWS 12
#define TN_MADD_f32(x, y, z) _mm512_fmadd_ps(_mm512_set1_ps(x), y, z)
#define TN_MADD_f64(x, y, z) _mm512_fmadd_pd(_mm512_set1_pd(x), y, z)
#elif defined(__AVX__) && defined(__FMA__)
#include <immintrin.h>
#define TN_VECTOR 32
#define TN_ROWS 6
#define TN_MADD_f32(x, y, z) _mm256_fmadd_ps(_mm256_set1_ps(x), y, z)
#define TN_MADD_f64(x, y, z) _mm256_fmadd_pd(_mm256_set1_pd(x), y, z)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define TN_VECTOR 16
#define TN_ROWS 12
#define TN_MADD_f32(x, y, z) vfmaq_n_f32(z, y, x)
#define TN_MADD_f64(x, y, z) vfmaq_n_f64(z, y, x)
#else
#define TN_VECTOR 16
#define TN_ROWS 6
#define TN_MADD_f32(x, y, z) ((x) * (y) + (z))
#define TN_MADD_f64(x, y, z) ((x) * (y) + (z))
#endif
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TN_SHUFFLE __builtin_shufflevector
#endif
#endif
typedef float tn_vector_f32 __attribute__((vector_size(TN_VECTOR), aligned(4), may_alias));
typedef double tn_vector_f64 __attribute__((vector_size(TN_VECTOR), aligned(8), may_alias));
#else
#define TN_ROWS 6
#define TN_MADD_f32(x, y, z) ((x) * (y) + (z))
#define TN_MADD_f64(x, y, z) ((x) * (y) + (z))
typedef float tn_vector_f32;
typedef double tn_vector_f64;
#endif
enum { TN_LANES_f32 = sizeof(tn_vector_f32) / 4, TN_COLUMNS_f32 = 2 * TN_LANES_f32 };
enum { TN_LANES_f64 = sizeof(tn_vector_f64) / 8, TN_COLUMNS_f64 = 2 * TN_LANES_f64 };

/* sums[r, j] = a[t, k, r] * b[b_at[t] + k * b_row + j], summed over taps and depth in order. Few
   rows are summed one by one. */
TN_FN void tn_tile_f32(int64_t rows, int64_t taps, int64_t depth, const tn_f32 *a, const tn_f32 *b,
                     const int64_t *b_at, int64_t b_row, tn_f32 *sums) {
  if (rows < 3) {
    for (int64_t r = 0; r < rows; ++r) {
      tn_vector_f32 sum0 = (tn_vector_f32){0}, sum1 = (tn_vector_f32){0};
      const tn_f32 *x = a + r;
      for (int64_t t = 0; t < taps; ++t) {
        const tn_f32 *y = b + b_at[t];
        for (int64_t k = 0; k < depth; ++k, x += TN_ROWS, y += b_row) {
          sum0 = TN_MADD_f32(*x, *(const tn_vector_f32 *)y, sum0);
          sum1 = TN_MADD_f32(*x, *(const tn_vector_f32 *)(y + TN_LANES_f32), sum1);
        }
      }
      *(tn_vector_f32 *)(sums + r * TN_COLUMNS_f32) = sum0;
      *(tn_vector_f32 *)(sums + r * TN_COLUMNS_f32 + TN_LANES_f32) = sum1;
    }
    return;
  }
  tn_vector_f32 sum[TN_ROWS][2];
  for (int r = 0; r < TN_ROWS; ++r) sum[r][0] = sum[r][1] = (tn_vector_f32){0};
  for (int64_t t = 0; t < taps; ++t) {
    const tn_f32 *y = b + b_at[t];
    for (int64_t k = 0; k < depth; ++k, a += TN_ROWS, y += b_row) {
      const tn_vector_f32 y0 = *(const tn_vector_f32 *)y;
      const tn_vector_f32 y1 = *(const tn_vector_f32 *)(y + TN_LANES_f32);
      for (int r = 0; r < TN_ROWS; ++r) {
        sum[r][0] = TN_MADD_f32(a[r], y0, sum[r][0]);
        sum[r][1] = TN_MADD_f32(a[r], y1, sum[r][1]);
      }
    }
  }
  for (int r = 0; r < TN_ROWS; ++r) {
    *(tn_vector_f32 *)(sums + r * TN_COLUMNS_f32) = sum[r][0];
    *(tn_vector_f32 *)(sums + r * TN_COLUMNS_f32 + TN_LANES_f32) = sum[r][1];
  }
}

/* Four rows of four, `step` apart, become columns. */
#if defined(TN_SHUFFLE)
TN_FN void tn_turn_f32(const tn_f32 *from, int64_t step, tn_f32 *to) {
  enum { kBytes = 4 * sizeof(tn_f32) };
  typedef tn_f32 four __attribute__((vector_size(kBytes), aligned(sizeof(tn_f32)), may_alias));
  const four a = *(const four *)from, b = *(const four *)(from + step);
  const four c = *(const four *)(from + 2 * step), d = *(const four *)(from + 3 * step);
  const four ab = TN_SHUFFLE(a, b, 0, 4, 1, 5), ab2 = TN_SHUFFLE(a, b, 2, 6, 3, 7);
  const four cd = TN_SHUFFLE(c, d, 0, 4, 1, 5), cd2 = TN_SHUFFLE(c, d, 2, 6, 3, 7);
  *(four *)to = TN_SHUFFLE(ab, cd, 0, 1, 4, 5);
  *(four *)(to + TN_COLUMNS_f32) = TN_SHUFFLE(ab, cd, 2, 3, 6, 7);
  *(four *)(to + 2 * TN_COLUMNS_f32) = TN_SHUFFLE(ab2, cd2, 0, 1, 4, 5);
  *(four *)(to + 3 * TN_COLUMNS_f32) = TN_SHUFFLE(ab2, cd2, 2, 3, 6, 7);
}
#else
TN_FN void tn_turn_f32(const tn_f32 *from, int64_t step, tn_f32 *to) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) to[i * TN_COLUMNS_f32 + j] = from[j * step + i];
}
#endif

/* TN_COLUMNS columns side by side; those that are not there are 0. */
TN_FN void tn_pack_f32(int64_t deep, int64_t columns, const tn_f32 *b, int64_t b_row, int64_t b_col,
                     tn_f32 *to) {
  const int64_t whole = b_row == 1 ? columns / 4 * 4 : 0, rest = deep / 4 * 4;
  for (int64_t j = 0; j < whole; j += 4)
    for (int64_t i = 0; i < rest; i += 4)
      tn_turn_f32(b + j * b_col + i, b_col, to + i * TN_COLUMNS_f32 + j);
  for (int64_t i = 0; i < deep; ++i)
    for (int64_t j = i < rest ? whole : 0; j < TN_COLUMNS_f32; ++j)
      to[i * TN_COLUMNS_f32 + j] = j < columns ? b[i * b_row + j * b_col] : 0;
}

/* c (m x n) = a * b. Each sum is a chain along k, begun anew every `depth` (at most 1024). `packed`
   holds up to 960 rows of a, `depth` deep, in blocks of TN_ROWS. */
static void tn_product_f32(int64_t m, int64_t n, int64_t k, int64_t depth, const tn_f32 *a,
                         int64_t a_row, int64_t a_col, const tn_f32 *b, int64_t b_row, int64_t b_col,
                         tn_f32 *c, tn_f32 *packed) {
  enum { kBlock = 960, kPart = 240 };
  const int64_t panels = (n + TN_COLUMNS_f32 - 1) / TN_COLUMNS_f32, zero = 0;
  TN_THREADS(m * n * k / 8)
  for (int64_t k0 = 0; k0 < k; k0 += depth) {
    const int64_t deep = tn_min_i64(depth, k - k0);
    for (int64_t m0 = 0; m0 < m; m0 += kBlock) {
      const int64_t rows = tn_min_i64(kBlock, m - m0), parts = (rows + kPart - 1) / kPart;
      TN_SHARED
      for (int64_t i0 = 0; i0 < rows; i0 += TN_ROWS)
        for (int r = 0; r < TN_ROWS; ++r) {
          const tn_f32 *from = a + (m0 + i0 + r) * a_row + k0 * a_col;
          tn_f32 *to = packed + i0 * deep + r;
          for (int64_t i = 0; i < deep; ++i)
            to[i * TN_ROWS] = i0 + r < rows ? from[i * a_col] : 0;
        }
      TN_SHARED
      for (int64_t item = 0; item < panels * parts; ++item) {
        const int64_t j0 = item / parts * TN_COLUMNS_f32, i1 = item % parts * kPart;
        const int64_t columns = tn_min_i64(TN_COLUMNS_f32, n - j0);
        tn_f32 panel[1024 * TN_COLUMNS_f32], sums[TN_ROWS * TN_COLUMNS_f32];
        const tn_f32 *y = b + k0 * b_row + j0 * b_col;
        const int in_place = b_col == 1 && columns == TN_COLUMNS_f32 && m < 96;
        if (!in_place) tn_pack_f32(deep, columns, y, b_row, b_col, panel);
        for (int64_t i0 = i1; i0 < tn_min_i64(i1 + kPart, rows); i0 += TN_ROWS) {
          const int64_t count = tn_min_i64(TN_ROWS, rows - i0);
          tn_tile_f32(count, 1, deep, packed + i0 * deep, in_place ? y : panel, &zero,
                    in_place ? b_row : TN_COLUMNS_f32, sums);
          for (int64_t r = 0; r < count; ++r) {
            tn_f32 *to = c + (m0 + i0 + r) * n + j0;
            const tn_f32 *sum = sums + r * TN_COLUMNS_f32;
            for (int64_t j = 0; j < columns; ++j) to[j] = k0 == 0 ? sum[j] : to[j] + sum[j];
          }
        }
      }
    }
  }
}

/* A convolution. Result y and tap k of an axis meet at x[(y * stride + k * kernel_dilation - low) /
   dilation], which counts as 0 where it is not there. Channels are those of one group, steps lead
   from one element of x, w and y to the next. */
typedef struct {
  int64_t in, taps, out, stride, low, dilation, kernel_dilation, x_step, w_step, y_step;
} tn_axis;
typedef struct {
  int64_t images, groups, channels_in, channels_out;
  int64_t x_image, x_channel, w_out, w_in, y_image, y_channel;
  tn_axis axes[3];
} tn_conv;

/* How x is copied: for each axis the remainders of places by the stride, and the extent of each. */
typedef struct {
  int64_t phases[3], extent[3], plane, taps;
} tn_planes;
TN_FN tn_planes tn_planes_of(const tn_conv *s) {
  tn_planes p = {{0}, {0}, 1, 1};
  for (int i = 0; i < 3; ++i) {
    const tn_axis *x = &s->axes[i];
    const int64_t reach = (x->out - 1) * x->stride + (x->taps - 1) * x->kernel_dilation;
    p.phases[i] = x->kernel_dilation == 1 ? tn_min_i64(x->stride, x->taps) : x->stride;
    p.extent[i] = reach / x->stride + 1;
    p.plane *= p.extent[i], p.taps *= x->taps;
  }
  return p;
}
/* Where tap t lies in w. */
TN_FN int64_t tn_weight_at(const tn_conv *s, int64_t t) {
  const tn_axis *const axes = s->axes;
  const int64_t k2 = t % axes[2].taps, k1 = t / axes[2].taps % axes[1].taps;
  const int64_t k0 = t / axes[2].taps / axes[1].taps;
  return k0 * axes[0].w_step + k1 * axes[1].w_step + k2 * axes[2].w_step;
}
/* Where the place that tap t of result 0 meets lies: the number of its plane, and where in it. */
TN_FN void tn_tap_at(const tn_conv *s, const tn_planes *p, int64_t t, int64_t *plane, int64_t *at) {
  int64_t k[3];
  k[2] = t % s->axes[2].taps, t /= s->axes[2].taps;
  k[1] = t % s->axes[1].taps, k[0] = t / s->axes[1].taps;
  *plane = *at = 0;
  for (int i = 0; i < 3; ++i) {
    const int64_t place = k[i] * s->axes[i].kernel_dilation;
    *plane = *plane * p->phases[i] + place % s->axes[i].stride;
    *at = *at * p->extent[i] + place / s->axes[i].stride;
  }
}

/* Plane after plane of one channel, every element `step` behind the one before. */
TN_FN void tn_copy_planes_f32(const tn_conv *s, const tn_planes *p, const tn_f32 *x, tn_f32 *to,
                            int64_t step) {
  const tn_axis *const axes = s->axes;
  const int64_t lines = p->phases[0] * p->phases[1] * p->phases[2] * p->extent[0] * p->extent[1];
  for (int64_t line = 0; line < lines; ++line, to += p->extent[2] * step) {
    const int64_t q1 = line % p->extent[1], q0 = line / p->extent[1] % p->extent[0];
    int64_t phase = line / (p->extent[1] * p->extent[0]);
    const int64_t f2 = phase % p->phases[2], f1 = phase / p->phases[2] % p->phases[1];
    const int64_t f0 = phase / (p->phases[2] * p->phases[1]);
    const int64_t at[2] = {q0 * axes[0].stride + f0 - axes[0].low,
                           q1 * axes[1].stride + f1 - axes[1].low};
    const tn_f32 *from = x;
    int inside = 1;
    for (int i = 0; i < 2; ++i) {
      const int64_t place = at[i] / axes[i].dilation;
      inside &= at[i] >= 0 && at[i] % axes[i].dilation == 0 && place < axes[i].in;
      if (inside) from += place * axes[i].x_step;
    }
    const tn_axis last = axes[2];
    const int64_t first = f2 - last.low, count = p->extent[2];
    if (!inside) {
      for (int64_t q = 0; q < count; ++q) to[q * step] = 0;
    } else if (last.dilation > 1) {
      for (int64_t q = 0; q < count; ++q) {
        const int64_t i = q * last.stride + first;
        const int is_there = i >= 0 && i % last.dilation == 0 && i / last.dilation < last.in;
        to[q * step] = is_there ? from[i / last.dilation * last.x_step] : 0;
      }
    } else {
      const int64_t before = first < 0 ? (last.stride - 1 - first) / last.stride : 0;
      const int64_t begin = tn_min_i64(before, count);
      int64_t end = (last.in - first + last.stride - 1) / last.stride;
      end = tn_max_i64(begin, tn_min_i64(last.in > first ? end : 0, count));
      const int64_t jump = last.stride * last.x_step;
      from += first * last.x_step;
      for (int64_t q = 0; q < begin; ++q) to[q * step] = 0;
      if (jump == 1 && step == 1)
        memcpy(to + begin, from + begin, (size_t)(end - begin) * sizeof *to);
      else
        for (int64_t q = begin; q < end; ++q) to[q * step] = from[q * jump];
      for (int64_t q = end; q < count; ++q) to[q * step] = 0;
    }
  }
}

/* Results of one image are columns, as they lie in a plane: those between its lines are left out.
   Each is one chain over the taps, and for each tap over the channels. */
static void tn_conv_f32(const tn_conv *s, const tn_f32 *x, const tn_f32 *w, tn_f32 *y, void *scratch) {
  const tn_planes p = tn_planes_of(s);
  const int64_t planes = p.phases[0] * p.phases[1] * p.phases[2] * p.plane;
  const int64_t out = s->channels_out, in = s->channels_in, deep = p.taps * in;
  const int64_t outs[3] = {s->axes[0].out, s->axes[1].out, s->axes[2].out};
  const int64_t columns = ((outs[0] - 1) * p.extent[1] + outs[1] - 1) * p.extent[2] + outs[2];
  const int64_t panels = (columns + TN_COLUMNS_f32 - 1) / TN_COLUMNS_f32;
  const int64_t blocks = (out + TN_ROWS - 1) / TN_ROWS, parts = (blocks + 7) / 8;
  int64_t *taps = scratch;
  tn_f32 *packed = (tn_f32 *)(taps + (p.taps + 7) / 8 * 8), *image = packed + blocks * TN_ROWS * deep;
  for (int64_t t = 0; t < p.taps; ++t) {
    int64_t plane, at;
    tn_tap_at(s, &p, t, &plane, &at);
    taps[t] = plane * p.plane + at;
  }
  memset(image + in * planes, 0, TN_COLUMNS_f32 * sizeof *image);
  TN_THREADS(s->images * s->groups * columns * out * deep / 8)
  for (int64_t g = 0; g < s->groups; ++g) {
    TN_SHARED
    for (int64_t o = 0; o < blocks * TN_ROWS; ++o)
      for (int64_t t = 0; t < p.taps; ++t) {
        const tn_f32 *from = w + (g * out + o) * s->w_out + tn_weight_at(s, t);
        tn_f32 *to = packed + (o / TN_ROWS * deep + t * in) * TN_ROWS + o % TN_ROWS;
        for (int64_t c = 0; c < in; ++c) to[c * TN_ROWS] = o < out ? from[c * s->w_in] : 0;
      }
    for (int64_t n = 0; n < s->images; ++n) {
      TN_SHARED
      for (int64_t c = 0; c < in; ++c)
        tn_copy_planes_f32(s, &p, x + n * s->x_image + (g * in + c) * s->x_channel,
                         image + c * planes, 1);
      TN_SHARED
      for (int64_t item = 0; item < panels * parts; ++item) {
        const int64_t first = item / parts * TN_COLUMNS_f32;
        const int64_t last = tn_min_i64(first + TN_COLUMNS_f32, columns);
        for (int64_t b = item % parts * 8; b < tn_min_i64(item % parts * 8 + 8, blocks); ++b) {
          tn_f32 sums[TN_ROWS * TN_COLUMNS_f32];
          const int64_t rows = tn_min_i64(TN_ROWS, out - b * TN_ROWS);
          tn_tile_f32(rows, p.taps, in, packed + b * TN_ROWS * deep, image + first, taps, planes,
                    sums);
          tn_f32 *to = y + n * s->y_image + (g * out + b * TN_ROWS) * s->y_channel;
          for (int64_t j = first; j < last;) {
            const int64_t y2 = j % p.extent[2], line = j / p.extent[2];
            const int64_t y1 = line % p.extent[1], y0 = line / p.extent[1];
            const int64_t run = tn_min_i64(p.extent[2] - y2, last - j);
            const int64_t count = y1 < outs[1] ? tn_min_i64(run, outs[2] - y2) : 0;
            tn_f32 *at = to + y0 * s->axes[0].y_step + y1 * s->axes[1].y_step +
                       y2 * s->axes[2].y_step;
            for (int64_t r = 0; r < rows; ++r, at += s->y_channel) {
              const tn_f32 *sum = sums + r * TN_COLUMNS_f32 + j - first;
              for (int64_t i = 0; i < count; ++i) at[i * s->axes[2].y_step] = sum[i];
            }
            j += run;
          }
        }
      }
    }
  }
}

/* conv of f32[2,3,19,18], f32[20,3,3,3]: f32[2,20,17,16] */
static void conv_1(const tn_f32 *x0, const tn_f32 *x1, tn_f32 *y0, void *scratch) {
  static const tn_conv shape = {
      .images = 2, .groups = 1, .channels_in = 3, .channels_out = 20,
      .x_image = 1026, .x_channel = 342, .w_out = 27, .w_in = 9, .y_image = 5440, .y_channel = 272,
      .axes = {{.in = 1, .taps = 1, .out = 1, .stride = 1, .low = 0, .dilation = 1,
                .kernel_dilation = 1, .x_step = 0, .w_step = 0, .y_step = 0},
               {.in = 19, .taps = 3, .out = 17, .stride = 1, .low = 0, .dilation = 1,
                .kernel_dilation = 1, .x_step = 18, .w_step = 3, .y_step = 16},
               {.in = 18, .taps = 3, .out = 16, .stride = 1, .low = 0, .dilation = 1,
                .kernel_dilation = 1, .x_step = 1, .w_step = 1, .y_step = 1}}};
  tn_conv_f32(&shape, x0, x1, y0, scratch);
}

/* sum f32[1,20,1,1], divide f32[1,20,1,1], subtract f32[2,20,17,16], pow f32[2,20,17,16],
   sum f32[1,20,1,1], divide f32[1,20,1,1], add f32[1,20,1,1], rsqrt f32[1,20,1,1],
   multiply f32[2,20,17,16], multiply f32[2,20,17,16], add f32[2,20,17,16], relu f32[2,20,17,16] */
static void relu_2(const tn_f32 *b0, tn_f32 *b1, const tn_f32 *b2, const tn_f32 *b3, tn_f32 *b4) {
  TN_PARALLEL(10880)
  for (int64_t p0 = 0; p0 < 20; ++p0) {
    const tn_f32 v13 = b2[p0];
    const tn_f32 v15 = b3[p0];
    tn_f32 v1 = 0x0p+0f;
    tn_f32 lane1[64];
    for (int k = 0; k < 64; ++k) lane1[k] = (-0x0p+0f);
    for (int64_t i0 = 0; i0 < 544; i0 += 64) {
      const int64_t n0 = tn_min_i64(64, 544 - i0);
      for (int64_t j0 = 0; j0 < n0;) {
        const int64_t at0 = i0 + j0, x0 = at0 % 272;
        const int64_t m0 = tn_min_i64(n0 - j0, 272 - x0);
        const int64_t r1 = at0 / 272;
        TN_INDEPENDENT
        for (int64_t k0 = 0; k0 < m0; ++k0) {
          const int64_t r2 = x0 + k0;
          const tn_f32 v0 = b0[272 * p0 + 5440 * r1 + r2];
          lane1[j0 + k0] = lane1[j0 + k0] + v0;
        }
        j0 += m0;
      }
    }
    for (int s = 32; s > 0; s /= 2)
      for (int k = 0; k < s; ++k) lane1[k] = lane1[k] + lane1[k + s];
    v1 = lane1[0];
    const tn_f32 v3 = v1 / 0x1.1p+9f;
    tn_f32 v7 = 0x0p+0f;
    tn_f32 lane7[64];
    for (int k = 0; k < 64; ++k) lane7[k] = (-0x0p+0f);
    for (int64_t i1 = 0; i1 < 544; i1 += 64) {
      const int64_t n1 = tn_min_i64(64, 544 - i1);
      for (int64_t j1 = 0; j1 < n1;) {
        const int64_t at1 = i1 + j1, x1 = at1 % 272;
        const int64_t m1 = tn_min_i64(n1 - j1, 272 - x1);
        const int64_t r1 = at1 / 272;
        TN_INDEPENDENT
        for (int64_t k1 = 0; k1 < m1; ++k1) {
          const int64_t r2 = x1 + k1;
          const tn_f32 v0 = b0[272 * p0 + 5440 * r1 + r2];
          const tn_f32 v4 = v0 - v3;
          const tn_f32 v6 = tn_pow_f32(v4, 0x1p+1f);
          lane7[j1 + k1] = lane7[j1 + k1] + v6;
        }
        j1 += m1;
      }
    }
    for (int s = 32; s > 0; s /= 2)
      for (int k = 0; k < s; ++k) lane7[k] = lane7[k] + lane7[k + s];
    v7 = lane7[0];
    const tn_f32 v8 = v7 / 0x1.1p+9f;
    const tn_f32 v10 = v8 + 0x1.4f8b58p-17f;
    const tn_f32 v11 = tn_rsqrt_f32(v10);
    b1[p0] = v11;
    for (int64_t r1 = 0; r1 < 2; ++r1) {
      TN_INDEPENDENT
      for (int64_t r2 = 0; r2 < 272; ++r2) {
        const tn_f32 v0 = b0[272 * p0 + 5440 * r1 + r2];
        const tn_f32 v4 = v0 - v3;
        const tn_f32 v12 = v4 * v11;
        const tn_f32 v14 = v12 * v13;
        const tn_f32 v16 = v14 + v15;
        const tn_f32 v18 = tn_max_f32(v16, 0x0p+0f);
        b4[272 * p0 + 5440 * r1 + r2] = v18;
      }
    }
  }
}

/* conv of f32[2,20,17,16], f32[17,20,3,3]: f32[2,17,9,8] */
static void conv_3(const tn_f32 *x0, const tn_f32 *x1, tn_f32 *y0, void *scratch) {
  static const tn_conv shape = {
      .images = 2, .groups = 1, .channels_in = 20, .channels_out = 17,
      .x_image = 5440, .x_channel = 272, .w_out = 180, .w_in = 9, .y_image = 1224, .y_channel = 72,
      .axes = {{.in = 1, .taps = 1, .out = 1, .stride = 1, .low = 0, .dilation = 1,
                .kernel_dilation = 1, .x_step = 0, .w_step = 0, .y_step = 0},
               {.in = 17, .taps = 3, .out = 9, .stride = 2, .low = 1, .dilation = 1,
                .kernel_dilation = 1, .x_step = 16, .w_step = 3, .y_step = 8},
               {.in = 16, .taps = 3, .out = 8, .stride = 2, .low = 1, .dilation = 1,
                .kernel_dilation = 1, .x_step = 1, .w_step = 1, .y_step = 1}}};
  tn_conv_f32(&shape, x0, x1, y0, scratch);
}

/* sum f32[2,17,1,1], divide f32[2,17,1,1] */
static void divide_4(const tn_f32 *b0, tn_f32 *b1) {
  TN_PARALLEL(2448)
  for (int64_t p0 = 0; p0 < 34; ++p0) {
    tn_f32 v1 = 0x0p+0f;
    tn_f32 lane1[64];
    for (int k = 0; k < 64; ++k) lane1[k] = (-0x0p+0f);
    for (int64_t i0 = 0; i0 < 72; i0 += 64) {
      const int64_t n0 = tn_min_i64(64, 72 - i0);
      TN_INDEPENDENT
      for (int64_t k0 = 0; k0 < n0; ++k0) {
        const int64_t r1 = (i0 + k0);
        const tn_f32 v0 = b0[72 * p0 + r1];
        lane1[k0] = lane1[k0] + v0;
      }
    }
    for (int s = 32; s > 0; s /= 2)
      for (int k = 0; k < s; ++k) lane1[k] = lane1[k] + lane1[k + s];
    v1 = lane1[0];
    const tn_f32 v3 = v1 / 0x1.2p+6f;
    b1[p0] = v3;
  }
}

/* dot of f32[2,17], f32[10,17]: f32[2,10] */
static void dot_5(const tn_f32 *x0, const tn_f32 *x1, tn_f32 *y0, void *scratch) {
  tn_product_f32(2, 10, 17, 32, x0, 17, 1,
      x1, 1, 17, y0, tn_at(scratch, 0));
}

/* add f32[2,10] */
static void add_6(tn_f32 *b0, const tn_f32 *b1) {
  TN_PARALLEL(20)
  for (int64_t p1 = 0; p1 < 2; ++p1) {
    TN_INDEPENDENT
    for (int64_t p2 = 0; p2 < 10; ++p2) {
      const tn_f32 v0 = b0[10 * p1 + p2];
      const tn_f32 v1 = b1[p2];
      const tn_f32 v2 = v0 + v1;
      b0[10 * p1 + p2] = v2;
    }
  }
}

int cnn_run(const void *const *inputs, void *const *outputs, void *arena) {
  if (!arena) return 1;
  conv_1(inputs[0], inputs[1], arena, tn_at(arena, 128128)); /* test_c_files.py */
  relu_2(arena, tn_at(arena, 43520), inputs[2], inputs[3], arena); /* test_c_files.py, test_c_files.py, test_c_files.py */
  conv_3(arena, inputs[4], tn_at(arena, 43520), tn_at(arena, 128128)); /* test_c_files.py */
  divide_4(tn_at(arena, 43520), arena); /* test_c_files.py */
  dot_5(arena, inputs[5], outputs[0], tn_at(arena, 128128));
  add_6(outputs[0], inputs[6]); /* test_c_files.py */
  return 0;
}
