#pragma once
// What tiled library kernels of an op have in common on all kinds of device: the shape of its
// result as a batch of matrices, and the call on operands that lie row by row.
#include "ops/contract.h"
#include "ops/conv_attrs.h"
#include "plan/library.h"

namespace tn {

inline TileDomain domain_of_dot(const void* attrs, Types in, Types) {
  const auto& a = *static_cast<const ops::DotAttrs*>(attrs);
  TileDomain d;
  for (Axis k : a.lhs_batch) d.batch *= in[0]->shape[k.i];
  for (Axis k : ops::free_axes(in[0]->rank(), a.lhs_batch, a.lhs_contract))
    d.rows *= in[0]->shape[k.i];
  for (Axis k : ops::free_axes(in[1]->rank(), a.rhs_batch, a.rhs_contract))
    d.columns *= in[1]->shape[k.i];
  return d;
}

inline TileDomain domain_of_conv(const void* attrs, Types, Types out) {
  const Shape& shape = out[0]->shape;
  int rank = shape.rank();
  auto span = [&](int first, int end) {
    Dim places = 1;
    for (int k = first; k < end; ++k) places *= shape[k];
    return places;
  };
  if (static_cast<const ops::ConvAttrs*>(attrs)->channels_last)
    return {shape[0], span(1, rank - 1), shape[rank - 1]};
  return {shape[0], shape[1], span(2, rank)};
}

/// Of two operands.
template <auto run_tiled>
void run_row_major(const LibraryCall& call) {
  const Strided at[] = {Strided::row_major(call.in_types[0]->shape),
                        Strided::row_major(call.in_types[1]->shape)};
  run_tiled(TiledCall{call.attrs, call.in_types, call.out_types, at, call.in, call.out[0]});
}

}  // namespace tn
