#include "backend/cpu/kernels/gemm_amx.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "backend/cpu/cpu_level.h"
#include "base/half.h"

namespace tn {
namespace {

// A tile register holds 16 rows of 64 bytes: 16×32 of A, 16 pairs of rows × 16 columns of B, 16×16
// of C. Packed operands are a row of such tiles, k block after k block.
constexpr int64_t kSide = 16, kTileDepth = 32, kTileElements = kSide * kTileDepth;

constexpr int64_t tiles(int64_t lanes) { return (lanes + kSide - 1) / kSide; }
constexpr int64_t depth_tiles(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }

/// Lane after lane, each with its 32 k: rows of A.
void pack_left(const uint16_t* from, int64_t k_stride, int64_t lane_stride, int64_t lanes,
               int64_t depth, uint16_t* out) {
  for (int64_t lane = 0; lane < lanes; ++lane, from += lane_stride, out += kTileDepth) {
    if (depth == kTileDepth && k_stride == 1)
      std::memcpy(out, from, kTileDepth * sizeof *out);
    else
      for (int64_t k = 0; k < depth; ++k) out[k] = from[k * k_stride];
  }
}

/// Pairs of k, each with its 16 lanes: columns of B.
void pack_right(const uint16_t* from, int64_t k_stride, int64_t lane_stride, int64_t lanes,
                int64_t depth, uint16_t* out) {
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t l = 0; l < lanes; ++l)
      out[k / 2 * kTileDepth + 2 * l + k % 2] = from[k * k_stride + l * lane_stride];
}

/// A whole tile of rows that are contiguous.
[[gnu::target("avx512f")]] void pack_rows(const uint16_t* from, int64_t k_stride, uint16_t* out) {
  typedef uint16_t Row __attribute__((vector_size(2 * kSide)));
  typedef uint32_t Pairs __attribute__((vector_size(4 * kSide)));
  for (int64_t k = 0; k < kTileDepth; k += 2, from += 2 * k_stride, out += kTileDepth) {
    Row even, odd;
    std::memcpy(&even, from, sizeof even);
    std::memcpy(&odd, from + k_stride, sizeof odd);
    Pairs pairs = __builtin_convertvector(even, Pairs) | __builtin_convertvector(odd, Pairs) << 16;
    std::memcpy(out, &pairs, sizeof pairs);
  }
}

/// A whole tile of columns that are contiguous: pairs are neighbours already.
void pack_columns(const uint16_t* from, int64_t lane_stride, uint16_t* out) {
  for (int64_t k = 0; k < kTileDepth; k += 2, from += 2)
    for (int64_t l = 0; l < kSide; ++l, out += 2)
      std::memcpy(out, from + l * lane_stride, 2 * sizeof *out);
}

/// One pack for both sides: B is asked for in whole vectors, A in the rows there are.
void pack(const GemmOperand& from, const GemmRegion& at, int64_t width, float* packed, bool right) {
  auto* out = reinterpret_cast<uint16_t*>(packed);
  const uint16_t* first =
      static_cast<const uint16_t*>(from.data) + at.k0 * from.k_stride + at.lane0 * from.lane_stride;
  for (int64_t k = 0; k < at.depth; k += kTileDepth)
    for (int64_t lane = 0; lane < width; lane += kSide, out += kTileElements) {
      int64_t depth = at.depth - k < kTileDepth ? at.depth - k : kTileDepth;
      int64_t lanes = at.lanes - lane < kSide ? at.lanes - lane : kSide;
      bool whole = depth == kTileDepth && lanes == kSide;
      const uint16_t* corner = first + k * from.k_stride + lane * from.lane_stride;
      if (!whole) std::memset(out, 0, kTileElements * sizeof *out);
      if (!right)
        pack_left(corner, from.k_stride, from.lane_stride, lanes, depth, out);
      else if (whole && from.lane_stride == 1)
        pack_rows(corner, from.k_stride, out);
      else if (whole && from.k_stride == 1)
        pack_columns(corner, from.lane_stride, out);
      else
        pack_right(corner, from.k_stride, from.lane_stride, lanes, depth, out);
    }
}
void pack_a(const GemmOperand& from, const GemmRegion& at, int64_t width, float* out) {
  pack(from, at, width, out, false);
}
void pack_b(const GemmOperand& from, const GemmRegion& at, int64_t width, float* out) {
  pack(from, at, width, out, true);
}

#define TN_AMX [[gnu::target("avx512f,amx-tile,amx-bf16")]]

/// Palette 1 with whole tiles everywhere; leaf 0x1D, which should describe it, is empty in some
/// virtual machines.
TN_AMX void enter() {
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr Config kConfig;
  _tile_loadconfig(&kConfig);
}

/// Tiles that stay in use make every switch of threads slower.
TN_AMX void leave() { _tile_release(); }

/// Rows × Columns tiles of C, begun with what C holds or 0. Tile numbers are part of the
/// instructions.
template <int Rows, int Columns>
TN_AMX void multiply_tiles(int64_t depth, const uint16_t* a, const uint16_t* b, int64_t b_step,
                           float* c, int64_t c_stride, bool add) {
  int64_t stride = c_stride * static_cast<int64_t>(sizeof(float));
  float *right = c + kSide, *below = c + kSide * c_stride, *corner = below + kSide;
  if (add) {
    _tile_loadd(0, c, stride);
    if constexpr (Columns == 2) _tile_loadd(1, right, stride);
    if constexpr (Rows == 2) _tile_loadd(2, below, stride);
    if constexpr (Rows == 2 && Columns == 2) _tile_loadd(3, corner, stride);
  } else {
    _tile_zero(0);
    if constexpr (Columns == 2) _tile_zero(1);
    if constexpr (Rows == 2) _tile_zero(2);
    if constexpr (Rows == 2 && Columns == 2) _tile_zero(3);
  }
  for (int64_t k = 0; k < depth; ++k, a += Rows * kTileElements, b += b_step) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Columns == 2) {
      _tile_loadd(7, b + kTileElements, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (Rows == 2) {
      _tile_loadd(5, a + kTileElements, 64);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (Rows == 2 && Columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, stride);
  if constexpr (Columns == 2) _tile_stored(1, right, stride);
  if constexpr (Rows == 2) _tile_stored(2, below, stride);
  if constexpr (Rows == 2 && Columns == 2) _tile_stored(3, corner, stride);
}

void copy_block(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(to + i * to_row, from + i * from_row, static_cast<size_t>(columns) * sizeof *to);
}

void tile(const GemmTile<float>& t) {
  constexpr int64_t kMost = 2 * kSide;
  bool whole = t.rows % kSide == 0 && t.columns % kSide == 0, narrow = t.columns <= kSide;
  auto run = t.rows <= kSide ? narrow ? multiply_tiles<1, 1> : multiply_tiles<1, 2>
             : narrow ? multiply_tiles<2, 1>
                             : multiply_tiles<2, 2>;
  alignas(64) float room[kMost * kMost];
  if (!whole) std::memset(room, 0, sizeof room);
  if (!whole && t.add) copy_block(t.c, t.c_row, t.rows, t.columns, room, kMost);
  run(depth_tiles(t.depth), reinterpret_cast<const uint16_t*>(t.a),
      reinterpret_cast<const uint16_t*>(t.b), tiles(t.b_row) * kTileElements, whole ? t.c : room,
      whole ? t.c_row : kMost, t.add);
  if (!whole) copy_block(room, kMost, t.rows, t.columns, t.c, t.c_row);
}

constexpr GemmKernels<float> kKernels = {.rows = 2 * kSide,
                                         .vector = kSide,
                                         .columns = 2 * kSide,
                                         .depth_unit = kTileDepth,
                                         .k_per_element = 2,
                                         .pack_left = pack_a,
                                         .pack_right = pack_b,
                                         .tile = tile,
                                         .row = nullptr,
                                         .row_of_columns = nullptr,
                                         .enter = enter,
                                         .leave = leave};

/// The processor has the instructions and the system saves the registers.
[[gnu::target("xsave")]] bool is_offered() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (kBf16 | kTile)) != (kBf16 | kTile))
    return false;
  constexpr uint64_t kTileState = 3u << 17;
  return (_xgetbv(0) & kTileState) == kTileState;
}

bool is_permitted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl; for all threads
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// Small integers are exact in bf16 and their sums in f32.
bool multiplies_rightly() {
  constexpr int64_t m = 20, n = 24, k = 70;
  uint16_t a[m * k], b[k * n];
  for (int64_t i = 0; i < m * k; ++i) a[i] = float_to_bfloat16(static_cast<float>(i % 13 - 6));
  for (int64_t i = 0; i < k * n; ++i) b[i] = float_to_bfloat16(static_cast<float>(i % 7 - 3));
  alignas(64) float left[2 * kSide * 96 / 2], right[2 * kSide * 96 / 2], c[m * n];
  pack_a({a, 1, k, GemmForm::bfloat16}, {0, k, 0, m}, m, left);
  pack_b({b, n, 1, GemmForm::bfloat16}, {0, k, 0, n}, 2 * kSide, right);
  enter();
  tile({m, n, k, left, 1, m, right, 2 * kSide, c, n, false});
  leave();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += ((i * k + p) % 13 - 6) * ((p * n + j) % 7 - 3);
      if (c[i * n + j] != static_cast<float>(sum)) return false;
    }
  return true;
}

}  // namespace

const GemmKernels<float>* amx_kernels() {
  static const bool granted =
      cpu_level() == CpuLevel::v4 && is_offered() && is_permitted() && multiplies_rightly();
  return granted ? &kKernels : nullptr;
}

}  // namespace tn
