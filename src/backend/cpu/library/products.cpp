// Products: the contraction, and the reduction that loops do not compute.
#include <algorithm>
#include <complex>

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/library/cpu_library.h"
#include "backend/tiled_ops.h"
#include "ops/contract.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "ops/shapes.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "runtime/with_bits.h"

namespace tn::cpu {
namespace {

using namespace ops;

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
  with_bits(static_cast<int64_t>(bytes), [&]<class T>(T) { copy_row<T>(from, stride, count, to); });
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

bool unpack_dot(const TiledCall& call, PackedLayout layout, std::span<const std::byte> packed,
                void* out) {
  if (!packs_ahead(call) || !is_known(layout)) return false;
  GemmArgs args = product_of(*static_cast<const DotAttrs*>(call.attrs), call, false).args;
  return unpack_right(static_cast<CpuLevel>(layout), args, packed, out);
}

constexpr TiledForm::Packing packing_of_dot{packed_layout, packed_bytes_of_dot, pack_dot,
                                            unpack_dot};
constexpr TiledForm tiled_dot{domain_of_dot, run_tiled_dot, room_of_dot, &packing_of_dot};

/// Multiplies by the definition: a product with an infinite factor is not repaired.
template <class T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// For every result the factors in row-major order.
template <class T>
void multiply_along(const Shape& shape, const Axes& axes, const void* from, void* to) {
  auto* in = static_cast<const std::complex<T>*>(from);
  auto* out = static_cast<std::complex<T>*>(to);
  int64_t count = span_of(shape, 0, shape.rank());
  int64_t results = span_of(without_axes(shape, axes), 0, shape.rank() - axes.size());
  std::fill(out, out + results, std::complex<T>(1));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0, stride = 1;
    for (int k = shape.rank() - 1; k >= 0; --k) {
      int64_t extent = shape[k].value(), at = rest % extent;
      rest /= extent;
      if (axes.has(k)) continue;
      place += at * stride;
      stride *= extent;
    }
    out[place] = times(out[place], in[i]);
  }
}

void run_complex_prod(const LibraryCall& call) {
  const auto& a = *static_cast<const SumAttrs*>(call.attrs);
  const Type& x = *call.in_types[0];
  if (x.dtype == DType::c64)
    multiply_along<float>(x.shape, *a.axis, call.in[0], call.out[0]);
  else
    multiply_along<double>(x.shape, *a.axis, call.in[0], call.out[0]);
}

constexpr LibraryKernel kEntriesProducts[] = {
    {&ops::dot, run_row_major<run_tiled_dot>, is_f32_or_f64, &tiled_dot},
    {&ops::dot, run_row_major<run_tiled_dot>},
    {&ops::prod, run_complex_prod, [](Types in) { return is_complex(in[0]->dtype); }},
};

}  // namespace

LibraryTable product_kernels() { return kEntriesProducts; }

}  // namespace tn::cpu
