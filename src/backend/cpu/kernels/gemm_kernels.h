#pragma once
// What gemm.cpp asks of the kernels that are compiled once per CPU level.
#include <cstdint>

#include "runtime/element_kind.h"

namespace tn {

/// How the stored elements of an operand become those of the f32 or f64 kernel.
///
/// A complex product is a real one of twice the depth and width: A's elements are read as (re, im)
/// along k, an element of B as the 2×2 block (re, im; -im, re), and C comes out as pairs (re, im).
enum class GemmForm : uint8_t { plain, float16, bfloat16, complex_left, complex_right };

/// One operand: lanes are the rows of A or the columns of B. Strides count stored elements.
struct GemmOperand {
  const void* data;
  int64_t k_stride, lane_stride;
  GemmForm form;
};

/// The part of an operand that is packed, in elements of the kernel.
struct GemmRegion {
  int64_t k0, depth, lane0, lanes;
};

/// One tile of C: at most two vectors wide, and as B is packed or lies in memory, whole vectors of
/// it are read. Either the lanes of A are contiguous, as packed, or its k.
template <class T>
struct GemmTile {
  int64_t rows, columns, depth;
  const T* a;
  int64_t a_lane, a_k;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  bool add;  // to what C holds
  /// Where B, two whole vectors wide, is packed on the way when lanes of A are contiguous; or null.
  T* packed_b = nullptr;
};

template <class T>
struct GemmKernels {
  int64_t rows;                               // most rows of a tile
  int64_t vector;                             // elements of a vector
  int64_t columns;                            // most columns of a tile: two vectors
  int64_t depth_unit = 1, k_per_element = 1;  // of packed operands; 1: tiles read others too
  /// out[k * width + lane], zero for lanes beyond the region's. May write one vector too much.
  using Pack = void (*)(const GemmOperand& from, const GemmRegion& region, int64_t width, T* out);
  Pack pack_left, pack_right;
  void (*tile)(const GemmTile<T>& tile);
  /// One row of C, `n` long, from depth rows of B that are contiguous. `x` has stride 1.
  void (*row)(int64_t depth, const T* x, const T* b, int64_t b_stride, int64_t n, T* c, bool add);
  /// The same from columns of B that are contiguous.
  void (*row_of_columns)(int64_t depth, const T* x, const T* b, int64_t lane_stride, int64_t n,
                         T* c, bool add);
  /// Around tiles of one thread; may be null.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;

  /// Elements of one lane in packed order.
  int64_t packed_depth(int64_t depth) const {
    return (depth + depth_unit - 1) / depth_unit * depth_unit / k_per_element;
  }
};

/// Rows [row0, row1) of one integer or boolean product.
struct GemmRows {
  Element type;
  int64_t row0, row1, n, k;
  const void *a, *b;
  void* c;
  int64_t a_row, a_col, b_row, b_col, c_row;
};

struct GemmSimple {
  void (*rows)(const GemmRows& rows);
  /// f32 sums to f16 or bf16.
  void (*round)(Element type, const float* from, int64_t count, void* to);
};

struct GemmLevel {
  GemmKernels<float> f32;
  GemmKernels<double> f64;
  GemmSimple simple;
};

namespace v2 {
extern const GemmLevel gemm_level;
}
namespace v3 {
extern const GemmLevel gemm_level;
}
namespace v4 {
extern const GemmLevel gemm_level;
}

}  // namespace tn
