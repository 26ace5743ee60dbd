// The kernels of matrix products, compiled once per CPU level.
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backend/cpu/kernels/gemm_kernels.h"
#include "backend/cpu/kernels/level_vectors.h"
#include "base/half.h"

namespace tn::TN_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 14;
#elif defined(__AVX2__)
constexpr int kRows = 6;
#else
constexpr int kRows = 4;
#endif

#if defined(__AVX2__) && !defined(__AVX512F__)
/// Keeps the first `count` lanes.
template <class T>
[[gnu::always_inline]] inline __m256i mask_of(int64_t count) {
  static constexpr int32_t kOnesThenZeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  auto* at = kOnesThenZeros + 8 - count * static_cast<int64_t>(sizeof(T) / 4);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(at));
}
#endif

/// The first `count` lanes, 0 in the others; reads nothing beyond them.
template <class T>
[[gnu::always_inline]] inline Vec<T> load_part(const T* at, int64_t count) {
  if (count >= kLanes<T>) return load(at);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), at);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), at);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return _mm256_maskload_ps(at, mask_of<T>(count));
  else
    return _mm256_maskload_pd(at, mask_of<T>(count));
#else
  Vec<T> v = {};
  for (int64_t i = 0; i < count; ++i) v[i] = at[i];
  return v;
#endif
}

template <class T>
[[gnu::always_inline]] inline void store_part(T* at, Vec<T> v, int64_t count) {
  if (count >= kLanes<T>) return store(at, v);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(at, static_cast<__mmask16>((1u << count) - 1), v);
  else
    _mm512_mask_storeu_pd(at, static_cast<__mmask8>((1u << count) - 1), v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    _mm256_maskstore_ps(at, mask_of<T>(count), v);
  else
    _mm256_maskstore_pd(at, mask_of<T>(count), v);
#else
  for (int64_t i = 0; i < count; ++i) at[i] = v[i];
#endif
}

/// InPlace: the rows of A are contiguous along k, else its lanes are. Packing: so, and B is packed:
/// tiles wait for arithmetic, so that this costs next to nothing.
enum class TileForm { plain, in_place, packing };

/// Rows × Vectors of C.
template <class T, int Rows, int Vectors, TileForm Form>
void fixed_tile(const GemmTile<T>& t) {
  constexpr bool InPlace = Form == TileForm::in_place;
  constexpr int64_t kAhead = Form == TileForm::packing ? 24 : 8;
  constexpr int64_t w = kLanes<T>;
  const T *a = t.a, *b = t.b;
  // Three rows are reached from one pointer; a pointer for each does not fit the registers.
  constexpr int kTriples = (Rows + 2) / 3;
  const T* rows[kTriples];
  for (int i = 0; i < kTriples; ++i) rows[i] = a + 3 * i * t.a_lane;
  Vec<T> sum[Rows][Vectors] = {};
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(t.c + r * t.c_row + v * w, 1);
  for (int64_t k = 0; k < t.depth; ++k, a += t.a_k, b += t.b_row) {
    Vec<T> right[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      right[v] = load(b + v * w);
      __builtin_prefetch(b + kAhead * t.b_row + v * w);
      if constexpr (Form == TileForm::packing) store(t.packed_b + (k * Vectors + v) * w, right[v]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      T x = InPlace ? rows[r / 3][k + r % 3 * t.a_lane] : a[r];
      Vec<T> left = x - Vec<T>{};
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      T* at = t.c + r * t.c_row + v * w;
      int64_t count = t.columns - v * w;
      store_part(at, t.add ? load_part(at, count) + sum[r][v] : sum[r][v], count);
    }
}

template <class T>
using FixedTile = void (*)(const GemmTile<T>&);

template <class T, int Vectors, TileForm Form, int... R>
constexpr FixedTile<T> pick(int64_t rows, std::integer_sequence<int, R...>) {
  constexpr FixedTile<T> kTiles[] = {fixed_tile<T, R + 1, Vectors, Form>...};
  return kTiles[rows - 1];
}

template <class T>
void tile(const GemmTile<T>& t) {
  using enum TileForm;
  constexpr auto kAll = std::make_integer_sequence<int, kRows>();
  bool one = t.columns <= kLanes<T>, lanes = t.a_lane == 1;
  auto run = t.packed_b     ? pick<T, 2, packing>(t.rows, kAll)
             : lanes && one ? pick<T, 1, plain>(t.rows, kAll)
             : lanes        ? pick<T, 2, plain>(t.rows, kAll)
             : one          ? pick<T, 1, in_place>(t.rows, kAll)
                            : pick<T, 2, in_place>(t.rows, kAll);
  run(t);
}

constexpr int64_t kRowBlock = 1024;  // elements of C that stay in L1 while B streams by

/// Adds Count rows of B, each times its x, to `sum`.
template <class T, int Count>
[[gnu::always_inline]] inline void add_rows(const T* x, const T* b, int64_t stride, int64_t n,
                                            T* sum) {
  int64_t j = 0;
  for (; j + kLanes<T> <= n; j += kLanes<T>) {
    Vec<T> s = load(sum + j);
#pragma GCC unroll 8
    for (int r = 0; r < Count; ++r) s = fma(x[r] - Vec<T>{}, load(b + r * stride + j), s);
    store(sum + j, s);
  }
  for (; j < n; ++j)
    for (int r = 0; r < Count; ++r)
      if constexpr (sizeof(T) == 4)
        sum[j] = __builtin_fmaf(x[r], b[r * stride + j], sum[j]);
      else
        sum[j] = __builtin_fma(x[r], b[r * stride + j], sum[j]);
}

template <class T>
void row(int64_t depth, const T* x, const T* b, int64_t b_stride, int64_t n, T* c, bool add) {
  alignas(64) T sum[kRowBlock];
  for (int64_t j0 = 0; j0 < n; j0 += kRowBlock) {
    int64_t count = n - j0 < kRowBlock ? n - j0 : kRowBlock, k = 0;
    std::memset(sum, 0, sizeof(T) * static_cast<size_t>(count));
    for (; k + 8 <= depth; k += 8)
      add_rows<T, 8>(x + k, b + k * b_stride + j0, b_stride, count, sum);
    for (; k < depth; ++k) add_rows<T, 1>(x + k, b + k * b_stride + j0, b_stride, count, sum);
    for (int64_t j = 0; j < count; ++j) c[j0 + j] = add ? c[j0 + j] + sum[j] : sum[j];
  }
}

/// One step of a transpose: exchanges the off-diagonal lanes of each pair of vectors Step apart.
template <class T, int Step, int... L>
[[gnu::always_inline]] inline void exchange(Vec<T>* v, std::integer_sequence<int, L...>) {
  constexpr int w = kLanes<T>;
#pragma GCC unroll 16
  for (int i = 0; i < w; ++i) {
    if (i & Step) continue;
    Vec<T> low = __builtin_shufflevector(v[i], v[i + Step], (L & Step ? L - Step + w : L)...);
    v[i + Step] = __builtin_shufflevector(v[i], v[i + Step], (L & Step ? L + w : L + Step)...);
    v[i] = low;
  }
}

template <class T>
[[gnu::always_inline]] inline void transpose(Vec<T>* v) {
  constexpr auto kPlaces = std::make_integer_sequence<int, kLanes<T>>();
  exchange<T, 1>(v, kPlaces);
  if constexpr (kLanes<T> >= 4) exchange<T, 2>(v, kPlaces);
  if constexpr (kLanes<T> >= 8) exchange<T, 4>(v, kPlaces);
  if constexpr (kLanes<T> >= 16) exchange<T, 8>(v, kPlaces);
}

/// Reads a square of one vector, lanes contiguous in k, and transposes it: one vector per k.
template <class T>
[[gnu::always_inline]] inline void load_square(const T* from, int64_t lane_stride, int64_t lanes,
                                               Vec<T>* square) {
#pragma GCC unroll 16
  for (int64_t l = 0; l < kLanes<T>; ++l)
    square[l] = l < lanes ? load(from + l * lane_stride) : Vec<T>{};
  transpose<T>(square);
}

/// One row of C from columns of B that are contiguous in k: as `row`, with squares transposed on
/// the way so that each column's chain stays in its lane.
template <class T>
void row_of_columns(int64_t depth, const T* x, const T* b, int64_t lane_stride, int64_t n, T* c,
                    bool add) {
  constexpr int64_t w = kLanes<T>;
  for (int64_t j = 0; j < n; j += w) {
    int64_t lanes = n - j < w ? n - j : w, k = 0;
    Vec<T> sum = {};
    for (; k + w <= depth; k += w) {
      Vec<T> square[w];
      if (lanes == w)
        load_square<T>(b + j * lane_stride + k, lane_stride, w, square);
      else
        load_square<T>(b + j * lane_stride + k, lane_stride, lanes, square);
#pragma GCC unroll 16
      for (int64_t i = 0; i < w; ++i) sum = fma(x[k + i] - Vec<T>{}, square[i], sum);
    }
    for (; k < depth; ++k) {
      Vec<T> right = {};
      for (int64_t l = 0; l < lanes; ++l) right[l] = b[(j + l) * lane_stride + k];
      sum = fma(x[k] - Vec<T>{}, right, sum);
    }
    for (int64_t l = 0; l < lanes; ++l) c[j + l] = add ? c[j + l] + sum[l] : sum[l];
  }
}

/// Packs lanes that are contiguous in k: squares of one vector are transposed in registers. A
/// square may overhang its row of `out`; what it spoils there is written later: the next row's
/// first lanes.
template <class T>
void pack_transposed(const T* from, int64_t lane_stride, int64_t lanes, int64_t depth,
                     int64_t width, T* out) {
  constexpr int64_t w = kLanes<T>, kAhead = 4;
  int64_t full = depth / w * w;
  for (int64_t k = 0; k < full; k += w)
    for (int64_t lane0 = (lanes - 1) / w * w; lane0 >= 0; lane0 -= w) {
      Vec<T> square[w];
      const T* at = from + lane0 * lane_stride + k;
    // More streams than the hardware follows by itself.
#pragma GCC unroll 16
      for (int64_t l = 0; l < w; ++l) __builtin_prefetch(at + l * lane_stride + kAhead * w);
      load_square<T>(at, lane_stride, lanes - lane0, square);
#pragma GCC unroll 16
      for (int64_t i = 0; i < w; ++i) store(out + (k + i) * width + lane0, square[i]);
    }
  for (int64_t k = full; k < depth; ++k)
    for (int64_t l = 0; l < width; ++l)
      out[k * width + l] = l < lanes ? from[l * lane_stride + k] : T{0};
}

template <class T>
void pack_plain(const T* from, int64_t k_stride, int64_t lane_stride, int64_t lanes, int64_t depth,
                int64_t width, T* out) {
  if (k_stride == 1 && lane_stride != 1)
    return pack_transposed(from, lane_stride, lanes, depth, width, out);
  for (int64_t k = 0; k < depth; ++k, from += k_stride, out += width) {
    if (lane_stride == 1) {
      __builtin_prefetch(from + 16 * k_stride);
      for (int64_t l = 0; l < width; l += kLanes<T>) store(out + l, load_part(from + l, lanes - l));
      continue;
    }
    for (int64_t l = 0; l < lanes; ++l) out[l] = from[l * lane_stride];
    for (int64_t l = lanes; l < width; ++l) out[l] = 0;
  }
}

template <float (*Widen)(uint16_t)>
void pack_half(const uint16_t* from, int64_t k_stride, int64_t lane_stride, int64_t lanes,
               int64_t depth, int64_t width, float* out) {
  constexpr int64_t kPart = 64;
  float part[2 * kLanes<float>][kPart];
  for (int64_t k0 = 0; k_stride == 1 && k0 < depth; k0 += kPart) {
    int64_t count = depth - k0 < kPart ? depth - k0 : kPart;
    for (int64_t l = 0; l < lanes; ++l)
      for (int64_t k = 0; k < count; ++k) part[l][k] = Widen(from[l * lane_stride + k0 + k]);
    pack_transposed(&part[0][0], kPart, lanes, count, width, out + k0 * width);
  }
  for (int64_t k = 0; k_stride != 1 && k < depth; ++k, from += k_stride, out += width) {
    if (lane_stride == 1)
      for (int64_t l = 0; l < lanes; ++l) out[l] = Widen(from[l]);
    else
      for (int64_t l = 0; l < lanes; ++l) out[l] = Widen(from[l * lane_stride]);
    for (int64_t l = lanes; l < width; ++l) out[l] = 0;
  }
}

/// Both kinds of complex operand; `Right` spreads an element over two lanes, and k is always
/// doubled.
template <class T, bool Right>
void pack_complex(const T* from, int64_t k_stride, int64_t lane_stride, int64_t lanes,
                  int64_t depth, int64_t width, T* out) {
  constexpr int64_t kSpread = Right ? 2 : 1;
  for (int64_t k = 0; k < depth; k += 2, from += 2 * k_stride, out += 2 * width) {
    for (int64_t l = 0; l < lanes / kSpread; ++l) {
      T re = from[2 * l * lane_stride], im = from[2 * l * lane_stride + 1];
      out[kSpread * l] = re;
      if constexpr (Right) {
        out[2 * l + 1] = im;
        out[width + 2 * l] = -im;
        out[width + 2 * l + 1] = re;
      } else {
        out[width + l] = im;
      }
    }
    for (int64_t l = lanes; l < width; ++l) out[l] = out[width + l] = 0;
  }
}

[[gnu::always_inline]] inline float widen_float16(uint16_t bits) { return float16_to_float(bits); }
[[gnu::always_inline]] inline float widen_bfloat16(uint16_t bits) {
  return bfloat16_to_float(bits);
}

template <class T>
void pack(const GemmOperand& from, const GemmRegion& at, int64_t width, T* out) {
  auto packed = [&](auto* function, auto* data, int64_t k0, int64_t lane0) {
    function(data + k0 * from.k_stride + lane0 * from.lane_stride, from.k_stride, from.lane_stride,
             at.lanes, at.depth, width, out);
  };
  const T* plain = static_cast<const T*>(from.data);
  if (from.form == GemmForm::plain) return packed(pack_plain<T>, plain, at.k0, at.lane0);
  // Offsets in halves of complex elements: k counts halves already, lanes of A do not.
  if (from.form == GemmForm::complex_left)
    return packed(pack_complex<T, false>, plain, at.k0, at.lane0 * 2);
  if (from.form == GemmForm::complex_right)
    return packed(pack_complex<T, true>, plain, at.k0, at.lane0);
  if constexpr (sizeof(T) == 4) {
    const uint16_t* half = static_cast<const uint16_t*>(from.data);
    if (from.form == GemmForm::float16)
      return packed(pack_half<widen_float16>, half, at.k0, at.lane0);
    return packed(pack_half<widen_bfloat16>, half, at.k0, at.lane0);
  }
}

constexpr int64_t kPartColumns = 256, kPartDepth = 128;

/// C's rows one after the other: row of A times a part of B that stays in cache. Sums wrap in T.
template <class T, bool Logical>
void simple_rows(const GemmRows& g) {
  const T *a = static_cast<const T*>(g.a), *b = static_cast<const T*>(g.b);
  T* c = static_cast<T*>(g.c);
  T part[kPartDepth * kPartColumns];
  for (int64_t i = g.row0; g.k == 0 && i < g.row1; ++i)
    std::memset(c + i * g.c_row, 0, sizeof(T) * static_cast<size_t>(g.n));
  for (int64_t j0 = 0; j0 < g.n; j0 += kPartColumns)
    for (int64_t k0 = 0; k0 < g.k; k0 += kPartDepth) {
      int64_t columns = g.n - j0 < kPartColumns ? g.n - j0 : kPartColumns;
      int64_t depth = g.k - k0 < kPartDepth ? g.k - k0 : kPartDepth;
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t j = 0; j < columns; ++j)
          part[p * columns + j] = b[(k0 + p) * g.b_row + (j0 + j) * g.b_col];
      for (int64_t i = g.row0; i < g.row1; ++i) {
        T sum[kPartColumns];
        T* row = c + i * g.c_row + j0;
        for (int64_t j = 0; j < columns; ++j) sum[j] = k0 ? row[j] : T{0};
        for (int64_t p = 0; p < depth; ++p) {
          T left = a[i * g.a_row + (k0 + p) * g.a_col];
          const T* right = part + p * columns;
          for (int64_t j = 0; j < columns; ++j)
            if constexpr (Logical)
              sum[j] = static_cast<T>(sum[j] | ((left != 0) & (right[j] != 0)));
            else
              sum[j] = static_cast<T>(sum[j] + 1u * left * right[j]);
        }
        for (int64_t j = 0; j < columns; ++j) row[j] = sum[j];
      }
    }
}

void simple(const GemmRows& g) {
  if (g.type == Element::boolean) return simple_rows<uint8_t, true>(g);
  switch (element_bytes(g.type)) {
    case 1:
      return simple_rows<uint8_t, false>(g);
    case 2:
      return simple_rows<uint16_t, false>(g);
    case 4:
      return simple_rows<uint32_t, false>(g);
    default:
      return simple_rows<uint64_t, false>(g);
  }
}

void round_sums(Element type, const float* from, int64_t count, void* to) {
  uint16_t* out = static_cast<uint16_t*>(to);
  if (type == Element::f16)
    for (int64_t i = 0; i < count; ++i) out[i] = float_to_float16(from[i]);
  else
    for (int64_t i = 0; i < count; ++i) out[i] = float_to_bfloat16(from[i]);
}

template <class T>
constexpr GemmKernels<T> kernels() {
  return {.rows = kRows,
          .vector = kLanes<T>,
          .columns = 2 * kLanes<T>,
          .pack_left = pack<T>,
          .pack_right = pack<T>,
          .tile = tile<T>,
          .row = row<T>,
          .row_of_columns = row_of_columns<T>};
}

}  // namespace

extern const GemmLevel gemm_level;
constinit const GemmLevel gemm_level = {kernels<float>(), kernels<double>(), {simple, round_sums}};

}  // namespace tn::TN_LEVEL
