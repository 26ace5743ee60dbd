/* C11 without dependencies. Compile with
   -std=c11 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math
   and -fopenmp to use several threads. */
#ifndef MLP_H
#define MLP_H

#ifdef __cplusplus
extern "C" {
#endif
/* mlp
   inputs[0]: f32[33,70] x
   inputs[1]: f32[40,70] w1
   inputs[2]: f32[40] b1
   inputs[3]: f32[5,40] w2
   inputs[4]: f32[5] b2
   outputs[0]: f32[33,5]
   arena: aligned to 64 bytes; calls at the same time need one each. */
#define MLP_ARENA_BYTES 35840
int mlp_run(const void *const *inputs, void *const *outputs, void *arena);

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
#endif
typedef float TN_ELEMENT tn_f32;
TN_FN void *tn_at(void *base, int64_t bytes) { return (char *)base + bytes; }
TN_FN int64_t tn_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
TN_FN float tn_max_f32(float a, float b) { return ((a > b) | (a != a)) ? a : b; }

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

/* dot of f32[33,70], f32[40,70]: f32[33,40] */
static void dot_1(const tn_f32 *x0, const tn_f32 *x1, tn_f32 *y0, void *scratch) {
  tn_product_f32(33, 40, 70, 96, x0, 70, 1,
      x1, 1, 70, y0, tn_at(scratch, 0));
}

/* add f32[33,40], relu f32[33,40] */
static void relu_2(tn_f32 *b0, const tn_f32 *b1) {
  TN_PARALLEL(1320)
  for (int64_t p1 = 0; p1 < 33; ++p1) {
    TN_INDEPENDENT
    for (int64_t p2 = 0; p2 < 40; ++p2) {
      const tn_f32 v0 = b0[40 * p1 + p2];
      const tn_f32 v1 = b1[p2];
      const tn_f32 v2 = v0 + v1;
      const tn_f32 v4 = tn_max_f32(v2, 0x0p+0f);
      b0[40 * p1 + p2] = v4;
    }
  }
}

/* dot of f32[33,40], f32[5,40]: f32[33,5] */
static void dot_3(const tn_f32 *x0, const tn_f32 *x1, tn_f32 *y0, void *scratch) {
  tn_product_f32(33, 5, 40, 64, x0, 40, 1,
      x1, 1, 40, y0, tn_at(scratch, 0));
}

/* add f32[33,5] */
static void add_4(tn_f32 *b0, const tn_f32 *b1) {
  TN_PARALLEL(165)
  for (int64_t p1 = 0; p1 < 33; ++p1) {
    TN_INDEPENDENT
    for (int64_t p2 = 0; p2 < 5; ++p2) {
      const tn_f32 v0 = b0[5 * p1 + p2];
      const tn_f32 v1 = b1[p2];
      const tn_f32 v2 = v0 + v1;
      b0[5 * p1 + p2] = v2;
    }
  }
}

int mlp_run(const void *const *inputs, void *const *outputs, void *arena) {
  if (!arena) return 1;
  dot_1(inputs[0], inputs[1], arena, tn_at(arena, 23232));
  relu_2(arena, inputs[2]); /* test_c_files.py */
  dot_3(arena, inputs[3], outputs[0], tn_at(arena, 23232));
  add_4(outputs[0], inputs[4]); /* test_c_files.py */
  return 0;
}
