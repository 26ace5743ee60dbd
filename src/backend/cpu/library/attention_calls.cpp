// Attention, block by block.
#include <algorithm>

#include "backend/cpu/cpu_level.h"
#include "backend/cpu/kernels/attention_blocks.h"
#include "backend/cpu/library/cpu_library.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"

namespace tn::cpu {
namespace {

using namespace ops;

/// The matrices of an operand, broadcast to the axes of `lead` and to `rows` and `columns`.
AttentionOperand matrices(const TiledCall& call, size_t k, const Shape& lead,
                          std::vector<int64_t>& offsets) {
  const Strided& at = call.in_at[k];
  int missing = lead.rank() + 2 - at.shape.rank();
  auto stride = [&](int axis) {
    int own = axis - missing;
    return own < 0 || at.shape[own].is(1) ? 0 : at.strides[own];
  };
  offsets = {at.offset};
  for (int i = 0; i < lead.rank(); ++i) {
    std::vector<int64_t> next;
    for (int64_t base : offsets)
      for (int64_t j = 0; j < lead[i].value(); ++j) next.push_back(base + j * stride(i));
    offsets = std::move(next);
  }
  return {call.in ? call.in[k] : nullptr, offsets.data(), stride(lead.rank()),
          stride(lead.rank() + 1)};
}

Shape without_last_two(const Shape& shape) {
  Shape out;
  for (int i = 0; i + 2 < shape.rank(); ++i) out.push_back(shape[i]);
  return out;
}

/// What the kernels are called with, and what its pointers point to.
struct AttentionCall {
  AttentionArgs args;
  std::vector<int64_t> offsets[4];
};

AttentionCall attention_of(const TiledCall& call) {
  const auto& a = *static_cast<const AttentionAttrs*>(call.attrs);
  const Type &q = *call.in_types[0], &k = *call.in_types[1], &v = *call.in_types[2];
  int rows = q.rank() - 2, columns = q.rank() - 1;
  Shape heads = without_last_two(q.shape), shared = without_last_two(k.shape);
  AttentionCall made;
  AttentionArgs& args = made.args;
  args.type = element_of(q.dtype);
  args.q = matrices(call, 0, heads, made.offsets[0]);
  args.k = matrices(call, 1, shared, made.offsets[1]);
  args.v = matrices(call, 2, shared, made.offsets[2]);
  if (call.in_types.size() > 3 && call.in_types[3]) {
    args.mask = matrices(call, 3, heads, made.offsets[3]);
    args.mask_type = element_of(call.in_types[3]->dtype);
  }
  args.heads = static_cast<int64_t>(made.offsets[0].size());
  if (rows > 0 && !k.shape[rows - 1].is(0))
    args.group = std::max<int64_t>(1, q.shape[rows - 1].value() / k.shape[rows - 1].value());
  args.queries = q.shape[rows].value(), args.keys = k.shape[rows].value();
  args.depth = q.shape[columns].value(), args.out_depth = v.shape[columns].value();
  args.scale = a.scale_at(args.depth), args.causal = a.is_causal;
  return made;
}

const AttentionLevel& rows_of_level() {
  return at_level(v2::attention_level, v3::attention_level, v4::attention_level);
}

TileRoom room_of_attention(const TiledCall& call) {
  AttentionCall made = attention_of(call);
  AttentionRoom room = room_of(cpu_level(), rows_of_level(), made.args);
  return {.bytes = {0, 0, room.bytes * room.count, 0}};
}

void run_tiled_attention(const TiledCall& call) {
  AttentionCall made = attention_of(call);
  AttentionArgs& args = made.args;
  if (call.room.at[2]) {
    args.room = call.room.at[2];
    args.rooms = call.room.bytes[2] / room_of(cpu_level(), rows_of_level(), args).bytes;
  }
  args.out = call.out;
  args.epilogue = {call.work.run, call.work.data};
  attention(cpu_level(), rows_of_level(), args);
}

void run_attention(const LibraryCall& call) {
  std::vector<Strided> at;
  for (TypeRef type : call.in_types)
    at.push_back(type ? Strided::row_major(type->shape) : Strided{});
  run_tiled_attention({call.attrs, call.in_types, call.out_types, at, call.in, call.out[0]});
}

TileDomain domain_of_attention(const void*, Types, Types out) {
  const Shape& shape = out[0]->shape;
  TileDomain d{1, shape[shape.rank() - 2], shape[shape.rank() - 1]};
  for (int k = 0; k < shape.rank() - 2; ++k) d.batch *= shape[k];
  return d;
}

constexpr TiledForm tiled_attention{domain_of_attention, run_tiled_attention, room_of_attention};

constexpr LibraryKernel kEntriesAttention[] = {
    {&ops::scaled_dot_product_attention, run_attention, is_f32_or_f64, &tiled_attention},
    {&ops::scaled_dot_product_attention, run_attention},
};

}  // namespace

LibraryTable attention_kernels() { return kEntriesAttention; }

}  // namespace tn::cpu
