// Attributes that hold extents: those of a worker.
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/slice_attrs.h"
#include "sharding/partition.h"

namespace tn::sharding {

namespace {

/// A distance along a dimension that keeps its share of it.
Offset scaled(Offset at, Dim whole, Dim local) {
  if (identical(whole, local) || at == Offset(0)) return at;
  return at.value() / (whole.value() / local.value());
}

void localise_slice(ops::SliceAttrs& a, const Type& x, const Type& block, const Type& local_x,
                    const Type& local_block) {
  for (int i = 0; i < a.axis->size(); ++i) {
    int d = (*a.axis)[i].i;
    if (identical(block.shape[d], local_block.shape[d])) continue;
    a.start[i] = scaled(a.start[i], x.shape[d], local_x.shape[d]);
    a.stop[i] = a.start[i] + local_block.shape[d];
  }
}

void localise_padding(ops::PadWithAttrs& a, const Type& x, const Type& local_x) {
  for (int d = 0; d < x.rank(); ++d)
    for (int i : {2 * d, 2 * d + 1})
      a.pad_width[i] = scaled(a.pad_width[i], x.shape[d], local_x.shape[d]);
}

/// Shapes of the result.
void localise_shapes(const AttrKind& kind, void* attrs, const Type& out, const Type& local) {
  for (const Field& f : list_fields(kind, attrs).items) {
    if (f.kind != FieldKind::shape || (f.set && !*f.set)) continue;
    auto& shape = *static_cast<Shape*>(f.at);
    if (identical(shape, out.shape)) shape = local.shape;
  }
}

}  // namespace

const Attrs* local_attrs(const GraphOp& op, Types in, Types out, Types local_in, Types local_out) {
  if (!op.attrs || std::ranges::equal(out, local_out)) return op.attrs;
  const AttrKind& kind = *op.op->attrs;
  AttrBuffer made(kind, op.attr_data());
  if (op.op == &ops::slice)
    localise_slice(*reinterpret_cast<ops::SliceAttrs*>(made.data), *in[0], *out[0], *local_in[0],
                   *local_out[0]);
  else if (op.op == &ops::slice_update)
    localise_slice(*reinterpret_cast<ops::SliceAttrs*>(made.data), *in[0], *in[1], *local_in[0],
                   *local_in[1]);
  else if (op.op == &ops::pad_with)
    localise_padding(*reinterpret_cast<ops::PadWithAttrs*>(made.data), *in[0], *local_in[0]);
  else if (!op.op->rules->body)
    localise_shapes(kind, made.data, *out[0], *local_out[0]);
  return intern(kind, made.data);
}

}  // namespace tn::sharding
