#pragma once
// Which tiles own kernels compute a product or a convolution in, and how they read its operands.
#include <cstdint>
#include <initializer_list>
#include <span>

#include "backend/cuda/prebuilt/tile_forms.h"

namespace tn::cuda {

/// Chosen by tests, by number of kTileForms; -1: by the rule.
inline int form_of_tests = -1;

/// A product of m × n results, `batches` times, with sums of k elements in blocks.
struct TiledProduct {
  int64_t m, n, batches, k, block;
  TileSizes sizes;
  bool has_all = false;   // kernels for pieces of operands that lie either way
  bool is_plain = false;  // of two matrices of f32, whose sizes fit 32 bits
  TileWay left_way = kAcross, right_way = kAcross;
};
/// How the pieces of the operands lie in shared memory: as the operands do where those are copied
/// 16 bytes at a time, if there are kernels for that; in forms that are whole always.
struct PieceLayout {
  bool left_by_rows, right_by_rows;
};
PieceLayout layout_of(const TileForm& form, const TiledProduct& product);
int64_t tiles_of(const TileForm& form, const TiledProduct& product);
int64_t bytes_of(const TileForm& form, const TiledProduct& product);
/// The one of these forms (by number of kTileForms) that takes the fewest cycles on a GPU with so
/// many multiprocessors, with so much shared memory each. Small tiles occupy all of them where
/// there are few results; large ones read each operand less often.
const TileForm& choose_form(std::span<const int> forms, const TiledProduct& product,
                            int64_t multiprocessors, int64_t shared_bytes);

/// Axes that are walked as one, the last one fastest; strides in elements.
struct TileAxes {
  std::span<const int64_t> extent, stride;
};
/// How threads bring an operand with these rows and elements of sums; `other`: strides between
/// batches. `row_vectors`, `k_vectors`: elements side by side along them may be copied as one.
TileWay way_of(const void* data, int64_t element, TileAxes rows, TileAxes inner,
               std::initializer_list<int64_t> other, bool row_vectors, bool k_vectors);

}  // namespace tn::cuda
