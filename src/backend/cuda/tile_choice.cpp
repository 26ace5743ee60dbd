#include "backend/cuda/tile_choice.h"

#include <algorithm>

#include "backend/cuda/own_kernels.h"

namespace tn::cuda {

int64_t tiles_of(const TileForm& form, const TiledProduct& product) {
  return blocks_for(product.m, form.rows()) * blocks_for(product.n, form.columns()) *
         product.batches;
}

PieceLayout layout_of(const TileForm& form, const TiledProduct& product) {
  auto by_rows = [&](TileWay way) {
    if (form.is_whole) return way == kAcross || way == kVectorsAcross;
    bool is_copied = product.has_all && (way == kVectorsAcross || way == kVectorsAlongK);
    return is_copied ? way == kVectorsAcross : lies_by_rows(form);
  };
  return {by_rows(product.left_way), by_rows(product.right_way)};
}

int64_t bytes_of(const TileForm& form, const TiledProduct& product) {
  PieceLayout layout = layout_of(form, product);
  if (form.is_whole)
    return whole_bytes(form, static_cast<int>(product.k), layout.left_by_rows,
                       layout.right_by_rows);
  return tile_bytes(form, product.sizes, product.k > product.block, layout.left_by_rows,
                    layout.right_by_rows);
}

/// Whether a form that is whole can compute a product, with all tiles of a multiprocessor at once.
static bool fits_whole(const TileForm& form, const TiledProduct& product, int64_t tiles,
                       int64_t shared_bytes) {
  bool is_one_block = product.k <= kWholeDepth && product.k <= product.block;
  return product.is_plain && is_one_block && tiles * bytes_of(form, product) <= shared_bytes;
}

const TileForm& choose_form(std::span<const int> forms, const TiledProduct& product,
                            int64_t multiprocessors, int64_t shared_bytes) {
  if (std::ranges::count(forms, form_of_tests) > 0) return kTileForms[form_of_tests];
  constexpr int64_t kOwnBytes = 1024;  // of the driver, in each block
  auto cycles = [&](int number) {
    const TileForm& form = kTileForms[number];
    int64_t tiles = blocks_for(tiles_of(form, product), multiprocessors);  // of each
    if (form.is_whole && !fits_whole(form, product, tiles, shared_bytes - tiles * kOwnBytes))
      return INT64_MAX;
    bool cuts_blocks = product.block < product.k && product.block % form.depth != 0;
    if (cuts_blocks || bytes_of(form, product) + kOwnBytes > shared_bytes) return INT64_MAX;
    int64_t depth = blocks_for(product.k, form.depth) * form.depth;
    return std::max<int64_t>(tiles * form.cost, form.alone) * depth;
  };
  return kTileForms[*std::ranges::min_element(forms, {}, cycles)];
}

namespace {

bool lies_side_by_side(const TileAxes& axes) {
  return axes.extent.back() > 1 && axes.stride.back() == 1;
}

/// Whether every element but those along the last axis is a whole number of vectors away.
bool is_apart(const TileAxes& axes, int64_t vector, bool but_last) {
  for (size_t i = 0; i + (but_last ? 1 : 0) < axes.extent.size(); ++i)
    if (axes.extent[i] > 1 && axes.stride[i] % vector != 0) return false;
  return !but_last || axes.extent.back() % vector == 0;
}

}  // namespace

TileWay way_of(const void* data, int64_t element, TileAxes rows, TileAxes inner,
               std::initializer_list<int64_t> other, bool row_vectors, bool k_vectors) {
  bool along_k = lies_side_by_side(inner), across = !along_k && lies_side_by_side(rows);
  if (!along_k && !across) return kAcross;
  int64_t vector = 16 / element;
  bool is_aligned =
      reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
      std::ranges::all_of(other, [&](int64_t stride) { return stride % vector == 0; }) &&
      is_apart(rows, vector, across) && is_apart(inner, vector, along_k);
  if (along_k) return is_aligned && k_vectors ? kVectorsAlongK : kAlongK;
  return is_aligned && row_vectors ? kVectorsAcross : kAcross;
}

}  // namespace tn::cuda
