// Tiles: operands that are contiguous along another axis than the results are read along it, and
// turned in shared memory.
#include "backend/cuda/codegen/gpu_emitter.h"

namespace tn::cuda {

using loop::axis_bit;

/// The elements of this thread in the tile that begins at `across` and `along`: `transposed`, its
/// neighbours lie along the tile axis, else along the vector axis.
void Emitter::set_tile(Value* across, Value* along, bool transposed) {
  Type* type = across->getType();
  Value* thread = as(threads_.thread(), type);
  Value* x = b_.CreateURem(thread, number(type, kTile));
  Value* y = b_.CreateUDiv(thread, number(type, kTile));
  auto clamped = [&](int axis, Value* at, Value*& valid) {
    Value* last = b_.CreateSub(size(p_.extents[size_t(axis)], type), number(type, 1));
    if (!divides(kTile, p_.extents[size_t(axis)])) valid = both(valid, b_.CreateICmpSLE(at, last));
    return codegen::smaller(b_, at, last);
  };
  made_.clear();
  set_elements(size_t(p_.unroll));
  for (size_t e = 0; e < at_.size(); ++e) {
    Value* row = b_.CreateAdd(y, number(type, int64_t(e) * (p_.threads / kTile)));
    at_[e] = par_at_;
    Value* first = b_.CreateAdd(across, transposed ? row : x);
    Value* second = b_.CreateAdd(along, transposed ? x : row);
    at_[e][size_t(p_.vector_axis)] = clamped(p_.vector_axis, first, valid_[e]);
    at_[e][size_t(p_.tile_axis)] = clamped(p_.tile_axis, second, valid_[e]);
  }
  lane_axes_ = group_axes_ = axis_bit(size_t(transposed ? p_.vector_axis : p_.tile_axis));
}

void Emitter::tiles() {
  Type* type = index_type(p_.points + kTile);
  Value* rest = as(threads_.block(), type);
  auto origin = [&](int axis) {
    Value* count = size(max(ceil_div(p_.extents[size_t(axis)], kTile), 1), type);
    Value* at = b_.CreateMul(b_.CreateURem(rest, count), number(type, kTile));
    rest = b_.CreateUDiv(rest, count);
    return at;
  };
  Value* across = origin(p_.vector_axis);
  Value* along = origin(p_.tile_axis);
  std::vector<int> others;
  for (int axis : p_.par)
    if (axis != p_.vector_axis && axis != p_.tile_axis) others.push_back(axis);
  par_at_.assign(p_.extents.size(), nullptr);
  place(rest, others, par_at_);
  Type* i32 = b_.getInt32Ty();
  Value* x = b_.CreateURem(threads_.thread(), number(i32, kTile));
  Value* y = b_.CreateUDiv(threads_.thread(), number(i32, kTile));
  auto row = [&](size_t e) {
    return b_.CreateAdd(y, number(i32, int64_t(e) * (p_.threads / kTile)));
  };
  auto place_of = [&](Value* first, Value* second) {
    return b_.CreateAdd(b_.CreateMul(first, number(i32, kTile + 1)), second);
  };
  auto tile_at = [](size_t k) { return static_cast<int64_t>(k) * kTile * (kTile + 1) * 8; };
  set_tile(across, along, true);
  for (size_t k = 0; k < p_.tiled.size(); ++k) {
    const loop::Value& v = p_.value(p_.tiled[k]);
    for (size_t e = 0; e < at_.size(); ++e)
      shared_store(tile_at(k), place_of(row(e), x), v.type, load_element(v, e));
  }
  threads_.barrier();
  set_tile(across, along, false);
  for (size_t k = 0; k < p_.tiled.size(); ++k) {
    DType dtype = p_.value(p_.tiled[k]).type;
    for (size_t e = 0; e < at_.size(); ++e)
      once(0, static_cast<uint64_t>(p_.tiled[k]), e,
           [&] { return shared_load(tile_at(k), place_of(x, row(e)), dtype); });
  }
  emit_stores(true, nullptr);
}

}  // namespace tn::cuda
