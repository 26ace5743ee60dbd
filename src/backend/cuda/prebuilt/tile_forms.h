#pragma once
// The shapes of tiles in which own kernels compute products and convolutions (product_tiles.cuh),
// for device code and for the host that launches it.

/// A block computes side·each_m × side·each_n results, `depth` elements of the sums at a time. The
/// next `stages - 1` pieces of the operands are on their way meanwhile. All threads of a block copy
/// operands and compute. Where side is 8, some do the one and some the other. Forms that are whole
/// have no stages: all pieces are on their way at once (whole_products.cuh).
struct TileForm {
  const char* name;
  int side, each_m, each_n, depth, stages;
  /// Cycles of a multiprocessor for one element of the sums, measured on an H200: where it has
  /// several tiles, and where it has only one. They go to multiply-adds (128 a cycle) and to loads
  /// from shared memory (32 words a cycle).
  int cost, alone;
  bool is_whole = false;

  constexpr int rows() const { return side * each_m; }
  constexpr int columns() const { return side * each_n; }
};
constexpr TileForm kTileForms[] = {
    {"16", 8, 2, 2, 32, 4, 15, 42},
    {"32", 16, 2, 2, 32, 3, 34, 57},
    {"64", 16, 4, 4, 32, 2, 82, 105},
    {"128x64", 16, 8, 4, 32, 2, 142, 172},
    {"128", 16, 8, 8, 16, 2, 236, 283},
    {"128x256", 16, 8, 16, 16, 3, 440, 452},
    {"16deep", 8, 2, 2, 128, 3, 15, 16},
    {"16whole", 16, 1, 1, 16, 0, 16, 17, true},
    {"32whole", 16, 2, 2, 16, 0, 32, 33, true},
};

/// Which elements of an operand lie side by side: of different rows (columns of the right one), or
/// of different k. 16 bytes of them can be copied at once where vectors are.
enum TileWay { kAcross, kAlongK, kVectorsAcross, kVectorsAlongK };

/// How pieces lie in shared memory, see product_tiles.cuh.
constexpr bool lies_by_rows(const TileForm& form) { return form.each_m >= 4 && form.each_n >= 4; }

/// More sums of a thread than this do not fit into registers twice: those of finished blocks wait
/// in shared memory.
constexpr bool has_room_for_totals(const TileForm& form) { return form.each_m * form.each_n > 16; }

/// Bytes of an element in shared memory, and of what is known of a row, a column and an element of
/// the sums.
struct TileSizes {
  int element, row, column, inner;
  bool has_steps = false;  // operands may be read at even steps, see product_tiles.cuh
};
/// Small tiles have no room for the steps: more of them fit into a multiprocessor.
constexpr bool has_steps(const TileForm& form, const TileSizes& size) {
  return size.has_steps && has_room_for_totals(form);
}
/// Shared memory of a block; `has_blocks`: sums have several blocks.
constexpr int tile_bytes(const TileForm& form, const TileSizes& size, bool has_blocks,
                         bool left_by_rows, bool right_by_rows) {
  constexpr int kBase = 40, kSteps = 4136;  // sizeof(TileBase), sizeof(TileSteps)
  int extra = 16 / size.element;
  auto piece = [&](int rows, bool by_rows) {
    return by_rows ? form.depth * (rows + extra) : rows * (form.depth + extra);
  };
  int elements = piece(form.rows(), left_by_rows) + piece(form.columns(), right_by_rows);
  int totals = has_room_for_totals(form) ? form.each_m * form.each_n * form.side * form.side : 2;
  return ((has_blocks ? totals : 0) + form.stages * elements) * size.element +
         form.rows() * size.row + form.columns() * size.column + 2 * form.depth * size.inner +
         kBase + (has_steps(form, size) ? kSteps : 0);
}

/// Forms that are whole: the most elements of a sum, and how many are waited for together. Rows of
/// an operand along k, or elements of the sums by rows, have room for a vector more, which puts
/// what the threads of a warp read into different banks.
constexpr int kWholeSide = 16, kWholeDepth = 1024, kWholePiece = 128;
constexpr int whole_depth(int k) { return (k + 7) / 8 * 8; }
constexpr int whole_pitch(int count) { return count + 4; }
/// Elements of shared memory for an operand with so many rows.
constexpr int whole_room(int rows, int k, bool by_rows) {
  return by_rows ? whole_depth(k) * whole_pitch(rows) : rows * whole_pitch(whole_depth(k));
}
/// Shared memory of a block. Threads load up to four elements of the sums beyond the last one.
constexpr int whole_bytes(const TileForm& form, int k, bool left_by_rows, bool right_by_rows) {
  return 4 * (whole_room(form.rows(), k, left_by_rows) +
              whole_room(form.columns(), k, right_by_rows) + 4 * whole_pitch(form.columns()));
}
