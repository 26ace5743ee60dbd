#pragma once
// Convolutions of every element type.
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/cpu_level.h"
#include "ops/conv_shape.h"

namespace tn {

struct KernelTile;

/// Called once for every finished block of `out`, on the thread that made it: rows are results of
/// image `batch` and columns channels where the channels of `out` are last, else the other way
/// round.
struct ConvEpilogue {
  void (*run)(const void* data, const KernelTile& tile) = nullptr;
  const void* data = nullptr;
};

/// out[n, o, y…] = Σ w[o, c, k…] · x[n, c', …], over the channels c (c' in x) of o's group and the
/// taps k. All are contiguous, `out` is written whole.
///
/// f32 and f64: each element of `out` is one chain of fused multiply-adds, over the taps in order
/// and for each tap over the channels in order. So the bits do not depend on layouts, the batch,
/// threads or level. f16 and bf16 are summed in f32 and rounded once; integers wrap.
struct ConvArgs : ConvShape {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* packed_w = nullptr;  // by pack_weights of the same level; `w` is then not read
  void* out = nullptr;
  /// Where images are copied and weights packed: ConvRoom bytes, aligned to 64. Null: allocated.
  void* images_room = nullptr;
  void* weights_room = nullptr;
  ConvEpilogue epilogue = {};
};

void conv(const ConvArgs& args);
/// The same with the kernels of one level, which the machine must support.
void conv_at(CpuLevel level, const ConvArgs& args);

/// Weights in the order the kernels read them, for `packed_w`: 0 bytes where there is no such form.
/// Neither x nor the batch matters.
int64_t packed_bytes(const ConvArgs& args);
void pack_weights(const ConvArgs& args, void* packed, CpuLevel level = cpu_level());
/// The inverse, for what any machine packed with the kernels of `level`: writes w. False when
/// `packed` is too short, or lacks weights: with input dilation some may meet no element of x.
bool unpack_weights(CpuLevel level, const ConvArgs& args, std::span<const std::byte> packed,
                    void* w);

/// What a convolution of f32 or f64 copies, apart from the little that each thread takes.
struct ConvRoom {
  int64_t images = 0, weights = 0;  // in bytes
};
ConvRoom room_of(const ConvArgs& args);

/// The cotangent of the weights: gradient[o, c, k…] = Σ x[n, c', …] · ct[n, o, y…] over all images
/// and the results that meet at tap k. `args` is the convolution, whose `out` and `w` are not read:
/// `ct` lies like the one, `gradient` like the other.
///
/// f32 and f64: each element is a chain of fused multiply-adds over images and results in order,
/// restarted at blocks of a fixed length (with input dilation as in `conv`, over results, then
/// images).
void conv_gradient(const ConvArgs& args, const void* ct, void* gradient);

}  // namespace tn
