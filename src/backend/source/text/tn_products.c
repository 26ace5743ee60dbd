//// Products and convolutions as C. `$` is the element type, f32 or f64.

//// section tile
//// One block of sums in registers serves all of them.

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

//// section tile_of

/* sums[r, j] = a[t, k, r] * b[b_at[t] + k * b_row + j], summed over taps and depth in order. Few
   rows are summed one by one. */
TN_FN void tn_tile_$(int64_t rows, int64_t taps, int64_t depth, const tn_$ *a, const tn_$ *b,
                     const int64_t *b_at, int64_t b_row, tn_$ *sums) {
  if (rows < 3) {
    for (int64_t r = 0; r < rows; ++r) {
      tn_vector_$ sum0 = (tn_vector_$){0}, sum1 = (tn_vector_$){0};
      const tn_$ *x = a + r;
      for (int64_t t = 0; t < taps; ++t) {
        const tn_$ *y = b + b_at[t];
        for (int64_t k = 0; k < depth; ++k, x += TN_ROWS, y += b_row) {
          sum0 = TN_MADD_$(*x, *(const tn_vector_$ *)y, sum0);
          sum1 = TN_MADD_$(*x, *(const tn_vector_$ *)(y + TN_LANES_$), sum1);
        }
      }
      *(tn_vector_$ *)(sums + r * TN_COLUMNS_$) = sum0;
      *(tn_vector_$ *)(sums + r * TN_COLUMNS_$ + TN_LANES_$) = sum1;
    }
    return;
  }
  tn_vector_$ sum[TN_ROWS][2];
  for (int r = 0; r < TN_ROWS; ++r) sum[r][0] = sum[r][1] = (tn_vector_$){0};
  for (int64_t t = 0; t < taps; ++t) {
    const tn_$ *y = b + b_at[t];
    for (int64_t k = 0; k < depth; ++k, a += TN_ROWS, y += b_row) {
      const tn_vector_$ y0 = *(const tn_vector_$ *)y;
      const tn_vector_$ y1 = *(const tn_vector_$ *)(y + TN_LANES_$);
      for (int r = 0; r < TN_ROWS; ++r) {
        sum[r][0] = TN_MADD_$(a[r], y0, sum[r][0]);
        sum[r][1] = TN_MADD_$(a[r], y1, sum[r][1]);
      }
    }
  }
  for (int r = 0; r < TN_ROWS; ++r) {
    *(tn_vector_$ *)(sums + r * TN_COLUMNS_$) = sum[r][0];
    *(tn_vector_$ *)(sums + r * TN_COLUMNS_$ + TN_LANES_$) = sum[r][1];
  }
}

//// section turn

/* Four rows of four, `step` apart, become columns. */
#if defined(TN_SHUFFLE)
TN_FN void tn_turn_$(const tn_$ *from, int64_t step, tn_$ *to) {
  enum { kBytes = 4 * sizeof(tn_$) };
  typedef tn_$ four __attribute__((vector_size(kBytes), aligned(sizeof(tn_$)), may_alias));
  const four a = *(const four *)from, b = *(const four *)(from + step);
  const four c = *(const four *)(from + 2 * step), d = *(const four *)(from + 3 * step);
  const four ab = TN_SHUFFLE(a, b, 0, 4, 1, 5), ab2 = TN_SHUFFLE(a, b, 2, 6, 3, 7);
  const four cd = TN_SHUFFLE(c, d, 0, 4, 1, 5), cd2 = TN_SHUFFLE(c, d, 2, 6, 3, 7);
  *(four *)to = TN_SHUFFLE(ab, cd, 0, 1, 4, 5);
  *(four *)(to + TN_COLUMNS_$) = TN_SHUFFLE(ab, cd, 2, 3, 6, 7);
  *(four *)(to + 2 * TN_COLUMNS_$) = TN_SHUFFLE(ab2, cd2, 0, 1, 4, 5);
  *(four *)(to + 3 * TN_COLUMNS_$) = TN_SHUFFLE(ab2, cd2, 2, 3, 6, 7);
}
#else
TN_FN void tn_turn_$(const tn_$ *from, int64_t step, tn_$ *to) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) to[i * TN_COLUMNS_$ + j] = from[j * step + i];
}
#endif

//// section pack

/* TN_COLUMNS columns side by side; those that are not there are 0. */
TN_FN void tn_pack_$(int64_t deep, int64_t columns, const tn_$ *b, int64_t b_row, int64_t b_col,
                     tn_$ *to) {
  const int64_t whole = b_row == 1 ? columns / 4 * 4 : 0, rest = deep / 4 * 4;
  for (int64_t j = 0; j < whole; j += 4)
    for (int64_t i = 0; i < rest; i += 4)
      tn_turn_$(b + j * b_col + i, b_col, to + i * TN_COLUMNS_$ + j);
  for (int64_t i = 0; i < deep; ++i)
    for (int64_t j = i < rest ? whole : 0; j < TN_COLUMNS_$; ++j)
      to[i * TN_COLUMNS_$ + j] = j < columns ? b[i * b_row + j * b_col] : 0;
}

//// section product

/* c (m x n) = a * b. Each sum is a chain along k, begun anew every `depth` (at most 1024). `packed`
   holds up to 960 rows of a, `depth` deep, in blocks of TN_ROWS. */
static void tn_product_$(int64_t m, int64_t n, int64_t k, int64_t depth, const tn_$ *a,
                         int64_t a_row, int64_t a_col, const tn_$ *b, int64_t b_row, int64_t b_col,
                         tn_$ *c, tn_$ *packed) {
  enum { kBlock = 960, kPart = 240 };
  const int64_t panels = (n + TN_COLUMNS_$ - 1) / TN_COLUMNS_$, zero = 0;
  TN_THREADS(m * n * k / 8)
  for (int64_t k0 = 0; k0 < k; k0 += depth) {
    const int64_t deep = tn_min_i64(depth, k - k0);
    for (int64_t m0 = 0; m0 < m; m0 += kBlock) {
      const int64_t rows = tn_min_i64(kBlock, m - m0), parts = (rows + kPart - 1) / kPart;
      TN_SHARED
      for (int64_t i0 = 0; i0 < rows; i0 += TN_ROWS)
        for (int r = 0; r < TN_ROWS; ++r) {
          const tn_$ *from = a + (m0 + i0 + r) * a_row + k0 * a_col;
          tn_$ *to = packed + i0 * deep + r;
          for (int64_t i = 0; i < deep; ++i)
            to[i * TN_ROWS] = i0 + r < rows ? from[i * a_col] : 0;
        }
      TN_SHARED
      for (int64_t item = 0; item < panels * parts; ++item) {
        const int64_t j0 = item / parts * TN_COLUMNS_$, i1 = item % parts * kPart;
        const int64_t columns = tn_min_i64(TN_COLUMNS_$, n - j0);
        tn_$ panel[1024 * TN_COLUMNS_$], sums[TN_ROWS * TN_COLUMNS_$];
        const tn_$ *y = b + k0 * b_row + j0 * b_col;
        const int in_place = b_col == 1 && columns == TN_COLUMNS_$ && m < 96;
        if (!in_place) tn_pack_$(deep, columns, y, b_row, b_col, panel);
        for (int64_t i0 = i1; i0 < tn_min_i64(i1 + kPart, rows); i0 += TN_ROWS) {
          const int64_t count = tn_min_i64(TN_ROWS, rows - i0);
          tn_tile_$(count, 1, deep, packed + i0 * deep, in_place ? y : panel, &zero,
                    in_place ? b_row : TN_COLUMNS_$, sums);
          for (int64_t r = 0; r < count; ++r) {
            tn_$ *to = c + (m0 + i0 + r) * n + j0;
            const tn_$ *sum = sums + r * TN_COLUMNS_$;
            for (int64_t j = 0; j < columns; ++j) to[j] = k0 == 0 ? sum[j] : to[j] + sum[j];
          }
        }
      }
    }
  }
}

//// section conv_shape

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

//// section planes
//// With strides, elements that are read one after the other are brought together: a plane for each
//// remainder of their place.

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

//// section planes_of

/* Plane after plane of one channel, every element `step` behind the one before. */
TN_FN void tn_copy_planes_$(const tn_conv *s, const tn_planes *p, const tn_$ *x, tn_$ *to,
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
    const tn_$ *from = x;
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

//// section conv

/* Results of one image are columns, as they lie in a plane: those between its lines are left out.
   Each is one chain over the taps, and for each tap over the channels. */
static void tn_conv_$(const tn_conv *s, const tn_$ *x, const tn_$ *w, tn_$ *y, void *scratch) {
  const tn_planes p = tn_planes_of(s);
  const int64_t planes = p.phases[0] * p.phases[1] * p.phases[2] * p.plane;
  const int64_t out = s->channels_out, in = s->channels_in, deep = p.taps * in;
  const int64_t outs[3] = {s->axes[0].out, s->axes[1].out, s->axes[2].out};
  const int64_t columns = ((outs[0] - 1) * p.extent[1] + outs[1] - 1) * p.extent[2] + outs[2];
  const int64_t panels = (columns + TN_COLUMNS_$ - 1) / TN_COLUMNS_$;
  const int64_t blocks = (out + TN_ROWS - 1) / TN_ROWS, parts = (blocks + 7) / 8;
  int64_t *taps = scratch;
  tn_$ *packed = (tn_$ *)(taps + (p.taps + 7) / 8 * 8), *image = packed + blocks * TN_ROWS * deep;
  for (int64_t t = 0; t < p.taps; ++t) {
    int64_t plane, at;
    tn_tap_at(s, &p, t, &plane, &at);
    taps[t] = plane * p.plane + at;
  }
  memset(image + in * planes, 0, TN_COLUMNS_$ * sizeof *image);
  TN_THREADS(s->images * s->groups * columns * out * deep / 8)
  for (int64_t g = 0; g < s->groups; ++g) {
    TN_SHARED
    for (int64_t o = 0; o < blocks * TN_ROWS; ++o)
      for (int64_t t = 0; t < p.taps; ++t) {
        const tn_$ *from = w + (g * out + o) * s->w_out + tn_weight_at(s, t);
        tn_$ *to = packed + (o / TN_ROWS * deep + t * in) * TN_ROWS + o % TN_ROWS;
        for (int64_t c = 0; c < in; ++c) to[c * TN_ROWS] = o < out ? from[c * s->w_in] : 0;
      }
    for (int64_t n = 0; n < s->images; ++n) {
      TN_SHARED
      for (int64_t c = 0; c < in; ++c)
        tn_copy_planes_$(s, &p, x + n * s->x_image + (g * in + c) * s->x_channel,
                         image + c * planes, 1);
      TN_SHARED
      for (int64_t item = 0; item < panels * parts; ++item) {
        const int64_t first = item / parts * TN_COLUMNS_$;
        const int64_t last = tn_min_i64(first + TN_COLUMNS_$, columns);
        for (int64_t b = item % parts * 8; b < tn_min_i64(item % parts * 8 + 8, blocks); ++b) {
          tn_$ sums[TN_ROWS * TN_COLUMNS_$];
          const int64_t rows = tn_min_i64(TN_ROWS, out - b * TN_ROWS);
          tn_tile_$(rows, p.taps, in, packed + b * TN_ROWS * deep, image + first, taps, planes,
                    sums);
          tn_$ *to = y + n * s->y_image + (g * out + b * TN_ROWS) * s->y_channel;
          for (int64_t j = first; j < last;) {
            const int64_t y2 = j % p.extent[2], line = j / p.extent[2];
            const int64_t y1 = line % p.extent[1], y0 = line / p.extent[1];
            const int64_t run = tn_min_i64(p.extent[2] - y2, last - j);
            const int64_t count = y1 < outs[1] ? tn_min_i64(run, outs[2] - y2) : 0;
            tn_$ *at = to + y0 * s->axes[0].y_step + y1 * s->axes[1].y_step +
                       y2 * s->axes[2].y_step;
            for (int64_t r = 0; r < rows; ++r, at += s->y_channel) {
              const tn_$ *sum = sums + r * TN_COLUMNS_$ + j - first;
              for (int64_t i = 0; i < count; ++i) at[i * s->axes[2].y_step] = sum[i];
            }
            j += run;
          }
        }
      }
    }
  }
}

//// section conv_gradient

/* The gradient of the weights, from x and the gradient y of the results. Each element is a chain
   over the results of one image, and the sum of these. x has its channels last here, so that they,
   and the taps of a line beside each other, are columns. */
static void tn_conv_gradient_$(const tn_conv *s, const tn_$ *x, const tn_$ *y, tn_$ *w,
                               void *scratch) {
  const tn_planes p = tn_planes_of(s);
  const int64_t planes = p.phases[0] * p.phases[1] * p.phases[2] * p.plane;
  const int64_t out = s->channels_out, in = s->channels_in, width = s->axes[2].out;
  const int64_t lines = s->axes[0].out * s->axes[1].out, deep = lines * width;
  const int64_t beside = s->axes[2].stride == 1 && s->axes[2].kernel_dilation == 1
                             ? s->axes[2].taps : 1;
  const int64_t columns = beside * in, panels = (columns + TN_COLUMNS_$ - 1) / TN_COLUMNS_$;
  const int64_t blocks = (out + TN_ROWS - 1) / TN_ROWS;
  int64_t *at = scratch;
  tn_$ *packed = (tn_$ *)(at + (lines + 7) / 8 * 8), *image = packed + blocks * TN_ROWS * deep;
  for (int64_t line = 0; line < lines; ++line)
    at[line] = (line / s->axes[1].out * p.extent[1] + line % s->axes[1].out) * p.extent[2] * in;
  memset(image + in * planes, 0, TN_COLUMNS_$ * sizeof *image);
  TN_THREADS(s->images * s->groups * p.taps * in * out * deep / 8)
  for (int64_t g = 0; g < s->groups; ++g)
    for (int64_t n = 0; n < s->images; ++n) {
      TN_SHARED
      for (int64_t o = 0; o < blocks * TN_ROWS; ++o)
        for (int64_t i = 0; i < deep; ++i) {
          const int64_t y2 = i % width, y1 = i / width % s->axes[1].out;
          const int64_t y0 = i / width / s->axes[1].out;
          const tn_$ *from = y + n * s->y_image + (g * out + o) * s->y_channel +
                             y0 * s->axes[0].y_step + y1 * s->axes[1].y_step;
          packed[(o / TN_ROWS * deep + i) * TN_ROWS + o % TN_ROWS] =
              o < out ? from[y2 * s->axes[2].y_step] : 0;
        }
      TN_SHARED
      for (int64_t c = 0; c < in; ++c)
        tn_copy_planes_$(s, &p, x + n * s->x_image + (g * in + c) * s->x_channel, image + c, in);
      TN_SHARED
      for (int64_t item = 0; item < p.taps / beside * panels; ++item) {
        const int64_t t = item / panels * beside, first = item % panels * TN_COLUMNS_$;
        int64_t plane, place;
        tn_tap_at(s, &p, t, &plane, &place);
        for (int64_t b = 0; b < blocks; ++b) {
          tn_$ sums[TN_ROWS * TN_COLUMNS_$];
          const int64_t rows = tn_min_i64(TN_ROWS, out - b * TN_ROWS);
          tn_tile_$(rows, lines, width, packed + b * TN_ROWS * deep,
                    image + (plane * p.plane + place) * in + first, at, in, sums);
          for (int64_t j = 0; j < tn_min_i64(TN_COLUMNS_$, columns - first); ++j) {
            const int64_t c = (first + j) % in, tap = t + (first + j) / in;
            tn_$ *to = w + (g * out + b * TN_ROWS) * s->w_out + c * s->w_in + tn_weight_at(s, tap);
            for (int64_t r = 0; r < rows; ++r) {
              const tn_$ sum = sums[r * TN_COLUMNS_$ + j];
              to[r * s->w_out] = n == 0 ? sum : to[r * s->w_out] + sum;
            }
          }
        }
      }
    }
}
