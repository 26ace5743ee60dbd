// The one contraction primitive.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/contract.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "ops/tiled.h"
#include "runtime/buffer.h"
#include "runtime/gemm.h"
#include "runtime/threads.h"
#include "tenon/ops.h"

namespace tn::ops {

Axes free_axes(int rank, const Axes& batch, const Axes& contracted) {
  Axes out;
  for (int k = 0; k < rank; ++k)
    if (!batch.has(k) && !contracted.has(k)) out.push_back(k);
  return out;
}

Run merge(const Shape& shape, const Ints& strides, const Axes& axes) {
  Run run;
  for (Axis a : axes) {
    int64_t extent = shape[a.i].value(), stride = strides[a.i];
    if (extent == 1) continue;
    run.merged = run.merged && (run.extent == 1 || run.stride == stride * extent);
    run.extent *= extent, run.stride = stride;
  }
  return run;
}

namespace {

void normalise(Axes& axes, int rank) {
  for (Axis& a : axes) a = normal_axis(a, rank, "dot");
}

/// Pairs in ascending order of the left axes.
void sort_pairs(Axes& left, Axes& right) {
  for (int i = 1; i < left.size(); ++i)
    for (int k = i; k > 0 && left[k].i < left[k - 1].i; --k)
      std::swap(left[k], left[k - 1]), std::swap(right[k], right[k - 1]);
}

void prepare_dot(DotAttrs& a, Tensors& in) {
  promote_all(in, "dot", every_type);
  const Type &x = *type_of(in[0]), &y = *type_of(in[1]);
  if (a.lhs_contract.size() != a.rhs_contract.size() || a.lhs_batch.size() != a.rhs_batch.size())
    fail("dot: axes do not pair up: {} and {} contracted, {} and {} batch ({} and {})",
         a.lhs_contract.size(), a.rhs_contract.size(), a.lhs_batch.size(), a.rhs_batch.size(), x,
         y);
  normalise(a.lhs_contract, x.rank()), normalise(a.lhs_batch, x.rank());
  normalise(a.rhs_contract, y.rank()), normalise(a.rhs_batch, y.rank());
  sort_pairs(a.lhs_contract, a.rhs_contract), sort_pairs(a.lhs_batch, a.rhs_batch);
}

/// Every axis named once.
void check_distinct(const Axes& batch, const Axes& contracted, const Type& x) {
  uint32_t seen = 0;
  for (const Axes* axes : {&batch, &contracted})
    for (Axis a : *axes) {
      if (a.i < 0 || a.i >= x.rank()) fail(Fault::index, "dot: no axis {}: {}", a.i, x);
      if (seen >> a.i & 1) fail("dot: axis {} is named twice: {}", a.i, x);
      seen |= 1u << a.i;
    }
}

void check_pairs(const Axes& left, const Axes& right, const Type& x, const Type& y) {
  for (int i = 0; i < left.size(); ++i) {
    Dim m = x.shape[left[i].i], n = y.shape[right[i].i];
    if (!decide_equal(m, n))
      fail("dot: extents differ: {} (axis {} of {}) and {} (axis {} of {})", m, left[i].i, x, n,
           right[i].i, y);
  }
}

TypeList infer_dot(const DotAttrs& a, Types in) {
  const Type &x = *in[0], &y = *in[1];
  check_kind("dot", every_type, x.dtype);
  if (x.dtype != y.dtype)
    fail(Fault::type, "dot: operands have different element types: {} and {}", x, y);
  check_distinct(a.lhs_batch, a.lhs_contract, x);
  check_distinct(a.rhs_batch, a.rhs_contract, y);
  check_pairs(a.lhs_contract, a.rhs_contract, x, y);
  check_pairs(a.lhs_batch, a.rhs_batch, x, y);
  Type out{x.dtype, {}};
  for (Axis k : a.lhs_batch) out.shape.push_back(x.shape[k.i]);
  for (Axis k : free_axes(x.rank(), a.lhs_batch, a.lhs_contract)) out.shape.push_back(x.shape[k.i]);
  for (Axis k : free_axes(y.rank(), a.rhs_batch, a.rhs_contract)) out.shape.push_back(y.shape[k.i]);
  return out;
}

/// An operand as a batch of matrices: its axes in three groups.
struct Operand3 {
  const void* data;
  Shape shape;
  Ints strides;
  Axes batch, rows, contracted;
  Run run(const Axes& axes) const { return merge(shape, strides, axes); }
};

/// Where each batch begins.
std::vector<int64_t> batch_offsets(const Operand3& x) {
  std::vector<int64_t> offsets{0};
  for (Axis a : x.batch) {
    std::vector<int64_t> next;
    for (int64_t base : offsets)
      for (int64_t i = 0; i < x.shape[a.i].value(); ++i) next.push_back(base + i * x.strides[a.i]);
    offsets = std::move(next);
  }
  return offsets;
}

template <class T>
void copy_row(const void* from, int64_t stride, int64_t count, void* to) {
  auto* source = static_cast<const T*>(from);
  auto* target = static_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
}

void copy_row(size_t bytes, const void* from, int64_t stride, int64_t count, void* to) {
  struct Wide {
    uint64_t half[2];
  };
  switch (bytes) {
    case 1:
      return copy_row<uint8_t>(from, stride, count, to);
    case 2:
      return copy_row<uint16_t>(from, stride, count, to);
    case 4:
      return copy_row<uint32_t>(from, stride, count, to);
    case 8:
      return copy_row<uint64_t>(from, stride, count, to);
    default:
      return copy_row<Wide>(from, stride, count, to);
  }
}

/// Copies `x` into row-major order of batch, rows, contracted; afterwards every group merges.
/// Where the operand is not known, only the layout changes. Returns the bytes of the copy.
int64_t pack(Operand3& x, size_t bytes, void* room, BufferRef& own) {
  Shape shape;
  Ints strides;
  for (const Axes* axes : {&x.batch, &x.rows, &x.contracted})
    for (Axis a : *axes) shape.push_back(x.shape[a.i]), strides.push_back(x.strides[a.i]);
  int last = shape.rank() - 1;
  int64_t count = shape[last].value(), rows = 1;
  for (int k = 0; k < last; ++k) rows *= shape[k].value();
  int64_t whole = rows * count * static_cast<int64_t>(bytes);
  if (x.data && !room) own = allocate(static_cast<size_t>(whole));
  char* to = own ? own.data<char>() : static_cast<char*>(room);
  int64_t chunks = x.data ? chunks_for(rows * count, 1 << 16) : 0;
  parallel_for(std::min(chunks, rows), [&](int64_t chunk) {
    ChunkRange range = chunk_range(rows, std::min(chunks, rows), chunk);
    for (int64_t row = range.begin; row < range.end; ++row) {
      int64_t rest = row, offset = 0;
      for (int k = last - 1; k >= 0; --k) {
        offset += rest % shape[k].value() * strides[k];
        rest /= shape[k].value();
      }
      auto* from = static_cast<const char*>(x.data) + offset * static_cast<int64_t>(bytes);
      copy_row(bytes, from, strides[last], count, to + row * count * static_cast<int64_t>(bytes));
    }
  });
  int axis = 0;
  for (Axes* axes : {&x.batch, &x.rows, &x.contracted})
    for (Axis& a : *axes) a = axis++;
  x.data = to, x.shape = shape, x.strides = Strided::row_major(shape).strides;
  return whole;
}

/// The axes of operand `k` in three groups.
Operand3 operand_of(const DotAttrs& a, const TiledCall& call, int k) {
  size_t i = static_cast<size_t>(k);
  const Strided& at = call.in_at[i];
  const Axes& batch = k == 0 ? a.lhs_batch : a.rhs_batch;
  const Axes& contracted = k == 0 ? a.lhs_contract : a.rhs_contract;
  auto bytes = static_cast<int64_t>(size_of(call.in_types[i]->dtype));
  const void* data = call.in ? static_cast<const char*>(call.in[i]) + at.offset * bytes : nullptr;
  return {.data = data,
          .shape = at.shape,
          .strides = at.strides,
          .batch = batch,
          .rows = free_axes(at.shape.rank(), batch, contracted),
          .contracted = contracted};
}

/// A product in the terms of the kernels, and what its pointers point to.
struct Product {
  GemmArgs args;
  BufferRef copies[2];  // of operands that do not lie as matrices, where no room was given
  int64_t copied[2] = {0, 0};
  std::vector<int64_t> offsets[2];
};

Product product_of(const DotAttrs& a, const TiledCall& call, bool may_copy) {
  Product p;
  p.args.type = element_of(call.in_types[0]->dtype);
  Run rows[2], inner[2];
  const void* data[2];
  for (int i = 0; i < 2; ++i) {
    Operand3 side = operand_of(a, call, i);
    rows[i] = side.run(side.rows), inner[i] = side.run(side.contracted);
    bool is_matrix = inner[i].extent == 0 || (rows[i].merged && inner[i].merged);
    if (!is_matrix && may_copy) {
      p.copied[i] = pack(side, element_bytes(p.args.type), call.room.at[i], p.copies[i]);
      rows[i] = side.run(side.rows), inner[i] = side.run(side.contracted);
    }
    p.offsets[i] = batch_offsets(side);
    data[i] = side.data;
  }
  GemmArgs& args = p.args;
  args.m = rows[0].extent, args.n = rows[1].extent, args.k = inner[0].extent;
  args.a = data[0], args.b = data[1], args.c = call.out;
  args.a_row = rows[0].stride, args.a_col = inner[0].stride;
  args.b_row = inner[1].stride, args.b_col = rows[1].stride;
  args.batch = static_cast<int64_t>(p.offsets[0].size());
  args.a_offsets = p.offsets[0].data(), args.b_offsets = p.offsets[1].data();
  return p;
}

void run_tiled_dot(const TiledCall& call) {
  if (call.out_types[0]->elements == 0) return;
  Product p = product_of(*static_cast<const DotAttrs*>(call.attrs), call, true);
  p.args.packed_b = call.packed;
  p.args.left_room = call.room.at[2], p.args.right_room = call.room.at[3];
  p.args.right_bytes = call.room.bytes[3];
  p.args.epilogue = {call.work.run, call.work.data};
  gemm(p.args);
}

TileRoom room_of_dot(const TiledCall& call) {
  Product p = product_of(*static_cast<const DotAttrs*>(call.attrs), call, true);
  p.args.packed_b = call.packed;
  GemmRoom packed = room_of(p.args);
  return {.bytes = {p.copied[0], p.copied[1], packed.left, packed.right}};
}

void run_dot(const LibraryCall& call) {
  const Strided at[] = {Strided::row_major(call.in_types[0]->shape),
                        Strided::row_major(call.in_types[1]->shape)};
  run_tiled_dot({call.attrs, call.in_types, call.out_types, at, call.in, call.out[0]});
}

TileDomain domain_of_dot(const void* attrs, Types in, Types) {
  const auto& a = *static_cast<const DotAttrs*>(attrs);
  TileDomain d;
  for (Axis k : a.lhs_batch) d.batch *= in[0]->shape[k.i];
  for (Axis k : free_axes(in[0]->rank(), a.lhs_batch, a.lhs_contract)) d.rows *= in[0]->shape[k.i];
  for (Axis k : free_axes(in[1]->rank(), a.rhs_batch, a.rhs_contract))
    d.columns *= in[1]->shape[k.i];
  return d;
}

/// One right side that lies as a matrix can be packed ahead.
bool packs_ahead(const TiledCall& call) {
  const auto& a = *static_cast<const DotAttrs*>(call.attrs);
  Operand3 side = operand_of(a, call, 1);
  return a.rhs_batch.empty() && side.run(side.rows).merged && side.run(side.contracted).merged;
}
int64_t packed_bytes_of_dot(const TiledCall& call) {
  if (!packs_ahead(call)) return 0;
  return packed_bytes(product_of(*static_cast<const DotAttrs*>(call.attrs), call, false).args);
}
void pack_dot(const TiledCall& call, void* out) {
  pack_right(product_of(*static_cast<const DotAttrs*>(call.attrs), call, false).args, out);
}
bool unpack_dot(const TiledCall& call, CpuLevel level, std::span<const std::byte> packed,
                void* out) {
  if (!packs_ahead(call)) return false;
  GemmArgs args = product_of(*static_cast<const DotAttrs*>(call.attrs), call, false).args;
  return unpack_right(level, args, packed, out);
}

/// A label for each axis of the operands and the result; paired axes share theirs.
struct DotLabels {
  Labels x, y, out;
  DotLabels(const DotAttrs& a, int x_rank, int y_rank)
      : x(letters(x_rank, 'a')), y(letters(y_rank, 'A')) {
    auto pair = [&](const Axes& left, const Axes& right) {
      for (int i = 0; i < left.size(); ++i)
        y[static_cast<size_t>(right[i].i)] = x[static_cast<size_t>(left[i].i)];
    };
    pair(a.lhs_contract, a.rhs_contract), pair(a.lhs_batch, a.rhs_batch);
    for (Axis k : a.lhs_batch) out += x[static_cast<size_t>(k.i)];
    for (Axis k : free_axes(x_rank, a.lhs_batch, a.lhs_contract))
      out += x[static_cast<size_t>(k.i)];
    for (Axis k : free_axes(y_rank, a.rhs_batch, a.rhs_contract))
      out += y[static_cast<size_t>(k.i)];
  }
  static Labels letters(int rank, char first) {
    Labels made;
    for (int k = 0; k < rank; ++k) made += static_cast<char>(first + k);
    return made;
  }
};

Tensor adjoint_dot(const DotAttrs& a, const Tensor& ct, const Tensors& in, int k) {
  DotLabels labels(a, in[0].rank(), in[1].rank());
  if (k == 0) return contract(ct, labels.out, in[1], labels.y, labels.x);
  return contract(in[0], labels.x, ct, labels.out, labels.y);
}

/// With both operands batched the batch is one more pair; with one it is a free axis of that one.
Tensors batch_dot(const DotAttrs& a, const BatchCall& call) {
  DotAttrs moved = a;
  auto shift = [](Axes& axes) {
    for (Axis& k : axes) ++k.i;
  };
  if (call.batched[0]) shift(moved.lhs_contract), shift(moved.lhs_batch);
  if (call.batched[1]) shift(moved.rhs_contract), shift(moved.rhs_batch);
  if (call.batched[0] && call.batched[1]) {
    moved.lhs_batch.insert(0, 0), moved.rhs_batch.insert(0, 0);
    return emit_all(dot, call.in, &moved);
  }
  Tensor out = emit_all(dot, call.in, &moved)[0];
  int place = a.lhs_batch.size();
  if (call.batched[1]) place += free_axes(call.in[0].rank(), a.lhs_batch, a.lhs_contract).size();
  return {place == 0 ? out : tn::moveaxis(out, Axes(place), Axes(0))};
}

}  // namespace

const TiledForm tiled_dot{domain_of_dot, run_tiled_dot, packed_bytes_of_dot,
                          pack_dot,      room_of_dot,   unpack_dot};

constinit const OpDef dot = Op<DotAttrs>{
    .name = "dot",
    .doc =
        "Sums products over paired axes of both operands. The result has the batch axes, then the "
        "free axes of `x1`, then those of `x2`. Without elements to sum it is 0. float16 and "
        "bfloat16 are summed in float32 and rounded once, integers wrap, booleans are or-and.",
    .args = {"x1", "x2"},
    .prepare = rule<prepare_dot>,
    .infer = rule<infer_dot>,
    .run = run_dot,
    .linear = Linear::each,
    .adjoint = rule<adjoint_dot>,
    .precision = Precision::low,
    .batch_rule = rule<batch_dot>,
    .samples = {{"f32[2,3], f32[3,4]", "lhs_contract=[1], rhs_contract=[0]"},
                {"f32[2,3,4], f32[4,2,5]",
                 "lhs_contract=[-1], rhs_contract=[0], lhs_batch=[0], rhs_batch=[1]"},
                {"f32[2,3,4], f32[4,5,2]", "lhs_contract=[0,2], rhs_contract=[2,0]"},
                {"f32[3], f32[3]", "lhs_contract=[0], rhs_contract=[0]"}},
};

}  // namespace tn::ops
