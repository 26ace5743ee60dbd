// Products on GPUs: cuBLASLt where it is found and pays, else own kernels in the order of the CPU.
#include "backend/cuda/cuda_products.h"

#include <algorithm>
#include <climits>

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "backend/cuda/tile_choice.h"
#include "backend/tiled_ops.h"
#include "base/error.h"
#include "loop/reduction_tree.h"
#include "ops/contract.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"

namespace tn::cuda {
namespace {

using ops::DotAttrs;

constexpr int kDims = 4;

/// As in prebuilt/product_kernels.cu.
struct WalkedAxes {
  int64_t extent[kDims] = {1, 1, 1, 1}, a[kDims] = {}, b[kDims] = {};
};
struct OwnProduct {
  const void* left;
  const void* right;
  void* out;
  int64_t m, n, k, block;
  WalkedAxes rows, columns, inner, batch;
  int32_t left_way, right_way;
  TailProgram tail;
};

/// As in prebuilt/whole_products.cuh.
struct OwnWholeProduct {
  const void* left;
  const void* right;
  void* out;
  int32_t m, n, k, left_vectors, right_vectors;
  int64_t left_row, left_k, right_column, right_k;
  TailProgram tail;
};

/// One axis of a group: its strides in both operands.
struct WalkedAxis {
  int64_t extent, a, b;
};

/// Neighbours that lie as one are joined; false where more are left than kernels can walk.
bool join_axes(const std::vector<WalkedAxis>& axes, WalkedAxes& out, int64_t& count) {
  std::vector<WalkedAxis> joined;
  count = 1;
  for (const WalkedAxis& axis : axes) {
    count *= axis.extent;
    if (axis.extent == 1) continue;
    if (!joined.empty() && joined.back().a == axis.a * axis.extent &&
        joined.back().b == axis.b * axis.extent)
      joined.back() = {joined.back().extent * axis.extent, axis.a, axis.b};
    else
      joined.push_back(axis);
  }
  if (joined.size() > kDims) return false;
  size_t first = kDims - joined.size();
  for (size_t i = 0; i < joined.size(); ++i)
    out.extent[first + i] = joined[i].extent, out.a[first + i] = joined[i].a,
                       out.b[first + i] = joined[i].b;
  return true;
}

/// The product in the terms of the kernels; false where its axes are too many.
bool describe(const TiledCall& call, OwnProduct& p) {
  const auto& a = *static_cast<const DotAttrs*>(call.attrs);
  const Strided &x = call.in_at[0], &y = call.in_at[1];
  auto own = [](const Strided& at, const Axes& axes, bool left) {
    std::vector<WalkedAxis> all;
    for (Axis k : axes)
      all.push_back(
          {at.shape[k.i].value(), left ? at.strides[k.i] : 0, left ? 0 : at.strides[k.i]});
    return all;
  };
  auto pairs = [&](const Axes& left, const Axes& right) {
    std::vector<WalkedAxis> all;
    for (int i = 0; i < left.size(); ++i)
      all.push_back({x.shape[left[i].i].value(), x.strides[left[i].i], y.strides[right[i].i]});
    return all;
  };
  int64_t batches = 1;
  Axes rows = ops::free_axes(x.shape.rank(), a.lhs_batch, a.lhs_contract);
  Axes columns = ops::free_axes(y.shape.rank(), a.rhs_batch, a.rhs_contract);
  bool fits = join_axes(own(x, rows, true), p.rows, p.m) &&
              join_axes(own(y, columns, false), p.columns, p.n) &&
              join_axes(pairs(a.lhs_contract, a.rhs_contract), p.inner, p.k) &&
              join_axes(pairs(a.lhs_batch, a.rhs_batch), p.batch, batches);
  auto bytes = static_cast<int64_t>(size_of(call.in_types[0]->dtype));
  auto data = [&](size_t i) {
    return static_cast<const char*>(call.in[i]) + call.in_at[i].offset * bytes;
  };
  p.left = data(0), p.right = data(1), p.out = call.out;
  p.block = loop::product_depth(std::max<int64_t>(p.k, 1));
  p.left_way = way_of(p.left, bytes, {p.rows.extent, p.rows.a}, {p.inner.extent, p.inner.a},
                      {p.batch.a[0], p.batch.a[1], p.batch.a[2], p.batch.a[3]}, true, true);
  p.right_way = way_of(p.right, bytes, {p.columns.extent, p.columns.b}, {p.inner.extent, p.inner.b},
                       {p.batch.b[0], p.batch.b[1], p.batch.b[2], p.batch.b[3]}, true, true);
  return fits;
}

std::string_view kernel_name(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
    case DType::u32:
      return "b32";
    case DType::i64:
    case DType::u64:
      return "b64";
    default:
      return "";
  }
}

/// Whether each group but the batch is one axis at most.
bool is_plain(const OwnProduct& p) {
  auto is_one = [](const WalkedAxes& axes) {
    return std::all_of(axes.extent, axes.extent + kDims - 1, [](int64_t e) { return e == 1; });
  };
  return is_one(p.rows) && is_one(p.columns) && is_one(p.inner);
}

OwnWholeProduct whole_of(const OwnProduct& p) {
  constexpr int last = kDims - 1;
  auto size = [](int64_t count) { return static_cast<int32_t>(count); };
  return {p.left,
          p.right,
          p.out,
          size(p.m),
          size(p.n),
          size(p.k),
          p.left_way >= kVectorsAcross,
          p.right_way >= kVectorsAcross,
          p.rows.a[last],
          p.inner.a[last],
          p.columns.b[last],
          p.inner.b[last],
          p.tail};
}

void run_own(OwnProduct& p, DType type, int64_t batches) {
  static constexpr int kAll[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, kSome[] = {0, 2};
  std::span<const int> forms = type == DType::f32 ? std::span<const int>(kAll) : kSome;
  int sum = std::max(static_cast<int>(size_of(type)), 4);
  TiledProduct product{p.m, p.n, batches, p.k, p.block, {sum, 8, 8, 16, true}};  // of ProductTiles
  product.has_all = type == DType::f32;
  product.is_plain =
      product.has_all && is_plain(p) && batches == 1 && p.m <= INT_MAX / 2 && p.n <= INT_MAX / 2;
  product.left_way = static_cast<TileWay>(p.left_way);
  product.right_way = static_cast<TileWay>(p.right_way);
  const Gpu& gpu = *call_place.gpu;
  const TileForm& form = choose_form(forms, product, gpu.multiprocessors, gpu.shared_bytes_of_each);
  bool is_few = form.each_m * form.each_n <= kTailMostResults;
  if (call_place.program && type == DType::f32 && batches == 1 && is_few)
    p.tail = *call_place.program, call_place.has_done_tail = true;
  std::string name = format("product_{}_{}", kernel_name(type), form.name);
  if (product.has_all) {
    PieceLayout layout = layout_of(form, product);
    name += format("_{}{}", layout.left_by_rows ? "r" : "k", layout.right_by_rows ? "r" : "k");
  }
  int64_t tiles = tiles_of(form, product), bytes = bytes_of(form, product);
  if (!form.is_whole) return launch_own(product_ptx(), name, tiles, bytes, &p);
  OwnWholeProduct whole = whole_of(p);
  launch_own(product_ptx(), name, tiles, bytes, &whole);
}

/// Whether cuBLASLt may do what comes after the product. It rounds once: of wider types, where that
/// would change more than the order of sums does, kernels do it.
bool may_finish(const MatrixProduct& p) {
  if (!call_place.tail || (p.type != DType::f16 && p.type != DType::bf16)) return false;
  const void* bias = call_place.tail->bias;
  return !bias || (p.batch == 1 && reinterpret_cast<uintptr_t>(bias) % 16 == 0);
}

MatrixProduct matrix_of(const OwnProduct& p, DType type) {
  constexpr int last = kDims - 1;
  MatrixProduct matrix{.type = type, .m = p.m, .n = p.n, .k = p.k, .batch = p.batch.extent[last]};
  matrix.left = p.left, matrix.right = p.right, matrix.out = p.out;
  matrix.left_row = p.rows.a[last], matrix.left_k = p.inner.a[last];
  matrix.right_k = p.inner.b[last], matrix.right_column = p.columns.b[last];
  matrix.left_batch = p.batch.a[last], matrix.right_batch = p.batch.b[last];
  for (int i = 0; i < last; ++i) matrix.outer[i] = {p.batch.extent[i], p.batch.a[i], p.batch.b[i]};
  matrix.may_round = call_place.products == Products::high;
  return matrix;
}

void run_tiled_dot(const TiledCall& call) {
  if (call.out_types[0]->elements == 0) return;
  OwnProduct p{};
  bool fits = describe(call, p);
  invariant(fits, "dot: more axes than the kernels of GPUs can walk: {} and {}", *call.in_types[0],
            *call.in_types[1]);
  DType type = call.in_types[0]->dtype;
  if (call_place.products != Products::exact && is_plain(p)) {
    MatrixProduct matrix = matrix_of(p, type);
    if (may_finish(matrix)) {
      MatrixProduct finished = matrix;
      finished.activation = call_place.tail->activation, finished.bias = call_place.tail->bias;
      call_place.has_done_tail = run_cublas(*call_place.gpu, call_place.stream, finished);
    }
    if (call_place.has_done_tail || run_cublas(*call_place.gpu, call_place.stream, matrix)) return;
  }
  int64_t batches = 1;
  for (int64_t extent : p.batch.extent) batches *= extent;
  run_own(p, type, batches);
}

/// More axes in one group than this may not lie as so few that kernels can walk them.
bool claims_dot(Types in) {
  return !product_ptx().empty() && !kernel_name(in[0]->dtype).empty() && in[0]->rank() <= 6 &&
         in[1]->rank() <= 6;
}

constexpr TiledForm tiled_dot{domain_of_dot, run_tiled_dot};
constexpr LibraryKernel kProducts[] = {
    {&ops::dot, run_row_major<run_tiled_dot>, claims_dot, &tiled_dot}};

}  // namespace

std::span<const LibraryKernel> product_kernels() { return kProducts; }

}  // namespace tn::cuda
