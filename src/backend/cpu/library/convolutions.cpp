// Convolutions and their adjoint in the weights.
#include <cstring>

#include "backend/cpu/kernels/convolve.h"
#include "backend/cpu/kernels/strided_copy.h"
#include "backend/cpu/library/cpu_library.h"
#include "backend/tiled_ops.h"
#include "ops/conv_attrs.h"
#include "ops/op_decls.h"
#include "runtime/buffer.h"

namespace tn::cpu {
namespace {

using namespace ops;

/// An operand as the runtime takes it: channels second or last, or copied to the attributes' order.
struct Placed {
  const void* data = nullptr;
  bool channels_last = false;
  BufferRef copy;  // where no room was given
  int64_t copied = 0;
};

Placed placed(const ConvAttrs& a, const TiledCall& call, size_t k) {
  const Strided& at = call.in_at[k];
  auto bytes = static_cast<int64_t>(size_of(call.in_types[k]->dtype));
  Placed p{call.in ? static_cast<const char*>(call.in[k]) + at.offset * bytes : nullptr,
           a.channels_last,
           {}};
  if (at.is_contiguous()) return p;
  Strided turned = at;
  int rank = at.shape.rank(), from = a.channel_axis(rank), to = a.channels_last ? 1 : rank - 1;
  turned.shape.erase(from), turned.shape.insert(to, at.shape[from]);
  turned.strides.erase(from), turned.strides.insert(to, at.strides[from]);
  p.channels_last = !a.channels_last;
  if (turned.is_contiguous()) return p;
  p.channels_last = a.channels_last;
  p.copied = call.in_types[k]->elements * bytes;
  if (!call.in) return p;
  void* copy = call.room.at[k];
  if (!copy) p.copy = allocate(static_cast<size_t>(p.copied)), copy = p.copy.data();
  std::vector<int64_t> extents;
  for (Dim d : at.shape) extents.push_back(d.value());
  copy_strided(bytes, extents, {at.strides.begin(), extents.size()}, p.data, copy);
  p.data = copy;
  return p;
}

ConvArgs args_of(const TiledCall& call, const Placed& x, const Placed& w) {
  ConvArgs args{conv_shape(*static_cast<const ConvAttrs*>(call.attrs), *call.in_types[0],
                           *call.in_types[1], *call.out_types[0])};
  args.x = x.data, args.x_last = x.channels_last;
  args.w = w.data, args.w_last = w.channels_last;
  args.packed_w = call.packed;
  return args;
}

void run_tiled_conv(const TiledCall& call) {
  if (call.out_types[0]->elements == 0) return;
  const auto& a = *static_cast<const ConvAttrs*>(call.attrs);
  Placed x = placed(a, call, 0), w = call.packed ? Placed() : placed(a, call, 1);
  ConvArgs args = args_of(call, x, w);
  args.out = call.out;
  args.images_room = call.room.at[2], args.weights_room = call.room.at[3];
  args.epilogue = {call.work.run, call.work.data};
  tn::conv(args);
}

TileRoom room_of_conv(const TiledCall& call) {
  const auto& a = *static_cast<const ConvAttrs*>(call.attrs);
  Placed x = placed(a, call, 0), w = call.packed ? Placed() : placed(a, call, 1);
  ConvRoom room = room_of(args_of(call, x, w));
  return {.bytes = {x.copied, w.copied, room.images, room.weights}};
}

int64_t packed_bytes_of_conv(const TiledCall& call) {
  const auto& a = *static_cast<const ConvAttrs*>(call.attrs);
  ConvArgs args{conv_shape(a, *call.in_types[0], *call.in_types[1], *call.out_types[0])};
  return packed_bytes(args);
}

void pack_conv(const TiledCall& call, void* out) {
  Placed w = placed(*static_cast<const ConvAttrs*>(call.attrs), call, 1);
  pack_weights(args_of(call, {}, w), out);
}

bool unpack_conv(const TiledCall& call, PackedLayout layout, std::span<const std::byte> packed,
                 void* out) {
  Placed w = placed(*static_cast<const ConvAttrs*>(call.attrs), call, 1);
  if (w.copied || !is_known(layout)) return false;
  return unpack_weights(static_cast<CpuLevel>(layout), args_of(call, {}, w), packed, out);
}

constexpr TiledForm::Packing packing_of_conv{packed_layout, packed_bytes_of_conv, pack_conv,
                                             unpack_conv};
constexpr TiledForm tiled_conv{domain_of_conv, run_tiled_conv, room_of_conv, &packing_of_conv};

void run_weights(const LibraryCall& call) {
  const auto& a = *static_cast<const ConvWeightsAttrs*>(call.attrs);
  const InternedType &x = *call.in_types[0], &ct = *call.in_types[1], &w = *call.out_types[0];
  if (x.elements == 0 || ct.elements == 0) {
    std::memset(call.out[0], 0, static_cast<size_t>(w.bytes()));
    return;
  }
  ConvArgs args{conv_shape(a.conv(), x, w, ct)};
  args.x = call.in[0];
  conv_gradient(args, call.in[1], call.out[0]);
}

constexpr LibraryKernel kEntriesConvolutions[] = {
    {&ops::conv, run_row_major<run_tiled_conv>, is_f32_or_f64, &tiled_conv},
    {&ops::conv, run_row_major<run_tiled_conv>},
    {&ops::conv_weights, run_weights},
};

}  // namespace

LibraryTable convolution_kernels() { return kEntriesConvolutions; }

}  // namespace tn::cpu
