// A convolution is a product of matrices: the windows of x, [images · results, taps · channels in],
// times the kernel, [taps · channels in, channels out]. Windows are read where they are, through a
// table of addresses: with its channels last, x has the channels of a place side by side.
#include "backend/cpu/kernels/convolve.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "backend/cpu/kernels/conv_kernels.h"
#include "backend/cpu/kernels/conv_windows.h"
#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/kernels/gemm_kernels.h"
#include "base/integers.h"
#include "runtime/native.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kDepth = 1024;             // of the weights that stay in L2 while rows pass
constexpr int64_t kRowsOfChunk = 48;         // at least: weights are read once for them
constexpr int64_t kConvChunkWork = 1 << 20;  // multiply-adds worth a chunk
constexpr int64_t kTableEntries = 1 << 15;   // addresses of a chunk's windows
constexpr int64_t kEpilogueElements = 1 << 14;

bool is_depthwise(const ConvArgs& args) {
  return args.groups > 1 && args.in_channels == 1 && args.out_channels == 1;
}

/// Results of one image.
int64_t places_of(const ConvArgs& args) {
  return args.axes[0].out * args.axes[1].out * args.axes[2].out;
}

/// Calls the epilogue for results [begin, end) of all images, image by image.
void finish_rows(const ConvArgs& args, int64_t begin, int64_t end, int64_t channel0,
                 int64_t channel1) {
  if (!args.epilogue.run) return;
  int64_t places = places_of(args);
  while (begin < end) {
    int64_t image = begin / places, stop = std::min(end, (image + 1) * places);
    KernelTile tile{image, begin - image * places, stop - image * places, channel0, channel1};
    if (!args.out_last) {
      std::swap(tile.row0, tile.column0);
      std::swap(tile.row1, tile.column1);
    }
    args.epilogue.run(args.epilogue.data, tile);
    begin = stop;
  }
}

/// The epilogue of a result that was made in parts.
void finish_all(const ConvArgs& args) {
  int64_t rows = args.batch * places_of(args), channels = args.groups * args.out_channels;
  if (!args.epilogue.run) return;
  int64_t chunks = std::min(rows, chunks_for(rows * channels, kEpilogueElements));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(rows, chunks, chunk);
    finish_rows(args, begin, end, 0, channels);
  });
}

/// Copies sums, [place, channel], to their places in `out`.
template <class T>
void write_sums(const ConvArgs& args, const T* sums, int64_t stride, const int64_t* places,
                int64_t count, int64_t channel0, int64_t channels) {
  int64_t all = args.groups * args.out_channels, of_image = places_of(args);
  T* out = static_cast<T*>(args.out);
  if (args.out_last) {
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(sums + r * stride, channels, out + places[r] * all + channel0);
    return;
  }
  constexpr int64_t kRows = 16;  // of which the sums are in L1
  for (int64_t r0 = 0; r0 < count; r0 += kRows)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t r = r0; r < std::min(count, r0 + kRows); ++r) {
        int64_t image = places[r] / of_image, place = places[r] - image * of_image;
        out[(image * all + channel0 + c) * of_image + place] = sums[r * stride + c];
      }
}

/// Packed weights of one part: for each group panels of whole vectors of channels out, [tap,
/// channel, channel out]; of a depthwise convolution [tap, channel].
template <class T>
class Weights {
 public:
  Weights(const ConvArgs& args, const ConvPart& part, const ConvKernels<T>& kernels)
      : args_(args),
        part_(part),
        vector_(kernels.vector),
        most_(kernels.most_vectors * kernels.vector),
        depth_(part.taps() * args.in_channels) {}

  int64_t size() const {
    if (is_depthwise(args_)) return args_.groups * depth_;
    return args_.groups * depth_ * round_up(args_.out_channels, vector_) +
           vector_;  // packing overhangs
  }
  int64_t panels() const { return chunks_for(args_.out_channels, most_); }
  int64_t columns(int64_t panel) const {
    return std::min(args_.out_channels - panel * most_, most_);
  }
  int64_t vectors(int64_t panel) const { return chunks_for(columns(panel), vector_); }
  int64_t panel_at(int64_t group, int64_t panel) const {
    return depth_ * (group * round_up(args_.out_channels, vector_) + panel * most_);
  }

  bool has_all_taps() const {
    return part_.taps() == args_.axes[0].taps * args_.axes[1].taps * args_.axes[2].taps;
  }

  /// The inverse of `pack` where all taps are there.
  void unpack(const T* from, T* w) const {
    int64_t channels = args_.in_channels, outs = args_.out_channels, taps = part_.taps();
    int64_t tap_stride = args_.w_last ? channels : 1, channel_stride = args_.w_last ? 1 : taps;
    parallel_for(args_.groups * outs, [&](int64_t i) {
      int64_t group = i / outs, out = i % outs, panel = out / most_;
      bool single = is_depthwise(args_);
      const T* at = single ? from + group : from + panel_at(group, panel) + out % most_;
      int64_t stride = single ? args_.groups : vectors(panel) * vector_;
      for (int64_t d = 0; d < depth_; ++d)
        w[i * depth_ + d / channels * tap_stride + d % channels * channel_stride] = at[d * stride];
    });
  }

  void pack(const GemmKernels<T>& gemm, T* to) const {
    if (is_depthwise(args_)) return pack_depthwise(to);
    parallel_for(args_.groups * panels(), [&](int64_t i) {
      int64_t group = i / panels(), panel = i % panels();
      BufferRef local = allocate(sizeof(T) * static_cast<size_t>(most_ * depth_));
      int64_t first = panel * most_;
      const void* from =
          weights_of(args_, part_, group, first, first + columns(panel), local.data());
      gemm.pack_right({from, 1, depth_, GemmForm::plain}, {0, depth_, 0, columns(panel)},
                      vectors(panel) * vector_, to + panel_at(group, panel));
    });
  }

 private:
  void pack_depthwise(T* to) const {
    BufferRef local = allocate(sizeof(T) * static_cast<size_t>(depth_));
    for (int64_t g = 0; g < args_.groups; ++g) {
      auto* from = static_cast<const T*>(weights_of(args_, part_, g, 0, 1, local.data()));
      for (int64_t t = 0; t < depth_; ++t) to[t * args_.groups + g] = from[t];
    }
  }

  const ConvArgs& args_;
  const ConvPart& part_;
  int64_t vector_, most_, depth_;
};

/// One part of an f32 or f64 convolution.
template <class T>
class Tiled {
 public:
  Tiled(const ConvArgs& args, const ConvPart& part, const ConvImages& images,
        const ConvKernels<T>& kernels, const T* packed, bool whole)
      : args_(args),
        kernels_(kernels),
        weights_(args, part, kernels),
        windows_(args, part, images, is_depthwise(args) ? args.groups : args.in_channels),
        packed_(packed),
        whole_(whole) {}
  void run();

 private:
  struct Chunk {
    int64_t group, tile0, tile1, panel0, panel1;
    int64_t row0, row1;
    std::vector<const void*> at;  // windows, tile by tile
    std::vector<int64_t> places;
    BufferRef sums;
  };
  void run_chunk(Chunk& chunk);
  void run_panel(Chunk& chunk, int64_t panel);
  void run_depthwise(Chunk& chunk);
  void finish(Chunk& chunk, const T* sums, int64_t stride, int64_t channel0, int64_t channels);
  int64_t tiles() const { return chunks_for(windows_.rows, kernels_.rows); }
  ConvWindows windows_of(const Chunk& chunk, int64_t tile, int64_t segment0,
                         int64_t segment1) const;
  /// Where a block of channels is summed: in `out` where its elements are side by side there.
  T* target(Chunk& chunk, int64_t channel0, bool whole_vectors, int64_t& stride);

  const ConvArgs& args_;
  const ConvKernels<T>& kernels_;
  Weights<T> weights_;
  ConvRows windows_;
  const T* packed_;
  bool whole_;  // the only part, so rows are places
};

template <class T>
void Tiled<T>::run() {
  bool depthwise = is_depthwise(args_);
  int64_t groups = depthwise ? 1 : args_.groups, panels = depthwise ? 1 : weights_.panels();
  int64_t row_work = windows_.segments * windows_.run * (depthwise ? 1 : args_.out_channels);
  int64_t rows = std::max(kRowsOfChunk, kConvChunkWork / std::max<int64_t>(row_work, 1));
  rows = std::min(rows, std::max(kernels_.rows, kTableEntries / (windows_.segments + 1)));
  int64_t row_parts = std::max<int64_t>(1, windows_.rows / rows);
  int64_t part_work = windows_.rows / row_parts * row_work;
  int64_t panel_parts = std::clamp<int64_t>(part_work / (2 * kConvChunkWork), 1, panels);
  parallel_for(groups * row_parts * panel_parts, [&](int64_t i) {
    auto in_rows = chunk_range(tiles(), row_parts, i / panel_parts % row_parts);
    auto in_panels = chunk_range(panels, panel_parts, i % panel_parts);
    Chunk chunk{i / (row_parts * panel_parts),
                in_rows.begin,
                in_rows.end,
                in_panels.begin,
                in_panels.end,
                0,
                0,
                {},
                {},
                {}};
    run_chunk(chunk);
  });
}

template <class T>
void Tiled<T>::run_chunk(Chunk& chunk) {
  if (chunk.tile0 == chunk.tile1) return;
  auto rows_of = [&](int64_t tile) { return chunk_range(windows_.rows, tiles(), tile); };
  chunk.row0 = rows_of(chunk.tile0).begin, chunk.row1 = rows_of(chunk.tile1 - 1).end;
  int64_t rows = chunk.row1 - chunk.row0;
  chunk.at.resize(static_cast<size_t>(rows * windows_.segments));
  int64_t channel = chunk.group * args_.in_channels;
  for (int64_t t = chunk.tile0; t < chunk.tile1; ++t) {
    auto [begin, end] = rows_of(t);
    windows_.locate(begin, end, channel,
                    chunk.at.data() + (begin - chunk.row0) * windows_.segments);
  }
  if (is_depthwise(args_)) return run_depthwise(chunk);
  for (int64_t p = chunk.panel0; p < chunk.panel1; ++p) run_panel(chunk, p);
}

template <class T>
ConvWindows Tiled<T>::windows_of(const Chunk& chunk, int64_t tile, int64_t segment0,
                                 int64_t segment1) const {
  auto [begin, end] = chunk_range(windows_.rows, tiles(), tile);
  int64_t rows = end - begin;
  return {chunk.at.data() + (begin - chunk.row0) * windows_.segments + segment0 * rows, rows,
          segment1 - segment0, windows_.run};
}

template <class T>
T* Tiled<T>::target(Chunk& chunk, int64_t channel0, bool whole_vectors, int64_t& stride) {
  if (whole_ && args_.out_last && whole_vectors) {
    stride = args_.groups * args_.out_channels;
    return static_cast<T*>(args_.out) + chunk.row0 * stride + channel0;
  }
  int64_t rows = chunk.row1 - chunk.row0;
  stride = round_up(stride, kernels_.vector);
  if (!chunk.sums) {
    chunk.sums = allocate(sizeof(T) * static_cast<size_t>(rows * stride));
    chunk.places.resize(static_cast<size_t>(rows));
    windows_.places(chunk.row0, chunk.row1, chunk.places.data());
  }
  return chunk.sums.template data<T>();
}

template <class T>
void Tiled<T>::run_panel(Chunk& chunk, int64_t panel) {
  int64_t columns = weights_.columns(panel), vectors = weights_.vectors(panel);
  int64_t channel = chunk.group * args_.out_channels + panel * weights_.columns(0);
  int64_t stride = weights_.columns(0);
  T* sums = target(chunk, channel, columns == vectors * kernels_.vector, stride);
  const T* w = packed_ + weights_.panel_at(chunk.group, panel);
  int64_t parts = std::max<int64_t>(
      1, std::min(windows_.segments, chunks_for(windows_.segments * windows_.run, kDepth)));
  for (int64_t part = 0; part < parts; ++part) {
    auto [segment0, segment1] = chunk_range(windows_.segments, parts, part);
    for (int64_t t = chunk.tile0; t < chunk.tile1; ++t) {
      int64_t row = chunk_range(windows_.rows, tiles(), t).begin - chunk.row0;
      kernels_.tile(windows_of(chunk, t, segment0, segment1), vectors,
                    w + segment0 * windows_.run * vectors * kernels_.vector, sums + row * stride,
                    stride, part != 0);
    }
  }
  finish(chunk, sums, stride, channel, columns);
}

template <class T>
void Tiled<T>::run_depthwise(Chunk& chunk) {
  int64_t stride = args_.groups;
  T* sums = target(chunk, 0, true, stride);
  for (int64_t t = chunk.tile0; t < chunk.tile1; ++t) {
    int64_t row = chunk_range(windows_.rows, tiles(), t).begin - chunk.row0;
    kernels_.depthwise(windows_of(chunk, t, 0, windows_.segments), packed_, sums + row * stride,
                       stride);
  }
  finish(chunk, sums, stride, 0, args_.groups);
}

template <class T>
void Tiled<T>::finish(Chunk& chunk, const T* sums, int64_t stride, int64_t channel0,
                      int64_t channels) {
  if (chunk.sums && sums == chunk.sums.template data<T>())
    write_sums(args_, sums, stride, chunk.places.data(), chunk.row1 - chunk.row0, channel0,
               channels);
  if (whole_) finish_rows(args_, chunk.row0, chunk.row1, channel0, channel0 + channels);
}

template <class T>
void convolve_tiled(const ConvArgs& args, const ConvKernels<T>& kernels,
                    const GemmKernels<T>& gemm) {
  std::vector<ConvPart> parts = parts_of(args);
  ConvImages images = channels_last_images(args, args.images_room);
  const T* packed = static_cast<const T*>(args.packed_w);
  for (const ConvPart& part : parts) {
    Weights<T> weights(args, part, kernels);
    BufferRef own;
    if (!args.packed_w) {
      if (!args.weights_room) own = allocate(sizeof(T) * static_cast<size_t>(weights.size()));
      T* made = own ? own.data<T>() : static_cast<T*>(args.weights_room);
      weights.pack(gemm, made);
      packed = made;
    }
    Tiled<T>(args, part, images, kernels, packed, parts.size() == 1).run();
    if (args.packed_w) packed += weights.size();
  }
  if (parts.size() > 1) finish_all(args);
}

/// One part of a convolution of any type: windows are copied, and multiplied as matrices.
template <class T>
void convolve_copied(CpuLevel level, const ConvArgs& args, const ConvPart& part,
                     const ConvImages& images) {
  int64_t depth = part.taps() * args.in_channels, columns = args.out_channels;
  ConvRows windows(args, part, images, args.in_channels);
  int64_t chunks = std::min(windows.rows, chunks_for(windows.rows * (depth + columns), 1 << 16));
  for (int64_t group = 0; group < args.groups; ++group) {
    BufferRef copy = allocate(sizeof(T) * static_cast<size_t>(depth * columns));
    const void* w = weights_of(args, part, group, 0, columns, copy.data());
    parallel_for(chunks, [&](int64_t chunk) {
      auto [begin, end] = chunk_range(windows.rows, chunks, chunk);
      int64_t rows = end - begin;
      std::vector<const void*> at(static_cast<size_t>(rows * windows.segments));
      std::vector<int64_t> places(static_cast<size_t>(rows));
      windows.locate(begin, end, group * args.in_channels, at.data());
      windows.places(begin, end, places.data());
      BufferRef left = allocate(sizeof(T) * static_cast<size_t>(rows * depth));
      BufferRef sums = allocate(sizeof(T) * static_cast<size_t>(rows * columns));
      T* to = left.data<T>();
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t s = 0; s < windows.segments; ++s, to += windows.run)
          std::copy_n(static_cast<const T*>(at[static_cast<size_t>(s * rows + r)]), windows.run,
                      to);
      gemm_at(level, {.type = args.type,
                      .m = rows,
                      .n = columns,
                      .k = depth,
                      .a = left.data(),
                      .b = w,
                      .c = sums.data(),
                      .a_row = depth,
                      .a_col = 1,
                      .b_row = 1,
                      .b_col = depth});
      write_sums(args, sums.data<T>(), columns, places.data(), rows, group * columns, columns);
    });
  }
}

template <class T>
void convolve_copied(CpuLevel level, const ConvArgs& args) {
  ConvImages images = channels_last_images(args);
  for (const ConvPart& part : parts_of(args)) convolve_copied<T>(level, args, part, images);
  finish_all(args);
}

const ConvLevel& conv_level_of(CpuLevel level) {
  return at_level(level, v2::conv_level, v3::conv_level, v4::conv_level);
}

/// Calls `f` with the kernels of `args.type`, where it has any.
void with_kernels(CpuLevel level, const ConvArgs& args, auto f) {
  const ConvLevel& own = conv_level_of(level);
  const GemmLevel& gemm = at_level(level, v2::gemm_level, v3::gemm_level, v4::gemm_level);
  if (args.type == Element::f32) f(own.f32, gemm.f32);
  if (args.type == Element::f64) f(own.f64, gemm.f64);
}

}  // namespace

int64_t packed_bytes(const ConvArgs& args) {
  int64_t bytes = 0;
  with_kernels(cpu_level(), args, [&]<class T>(const ConvKernels<T>& kernels, auto&) {
    for (const ConvPart& part : parts_of(args))
      bytes += Weights<T>(args, part, kernels).size() * static_cast<int64_t>(sizeof(T));
  });
  return bytes;
}

ConvRoom room_of(const ConvArgs& args) {
  int64_t weights = 0;  // of the largest part
  with_kernels(cpu_level(), args, [&]<class T>(const ConvKernels<T>& kernels, auto&) {
    if (args.packed_w) return;
    for (const ConvPart& part : parts_of(args)) {
      int64_t bytes = Weights<T>(args, part, kernels).size() * static_cast<int64_t>(sizeof(T));
      weights = std::max(weights, bytes);
    }
  });
  return {images_bytes(args), weights};
}

void pack_weights(const ConvArgs& args, void* packed, CpuLevel level) {
  with_kernels(level, args, [&]<class T>(const ConvKernels<T>& kernels, auto& gemm) {
    T* to = static_cast<T*>(packed);
    for (const ConvPart& part : parts_of(args)) {
      Weights<T> weights(args, part, kernels);
      weights.pack(gemm, to);
      to += weights.size();
    }
  });
}

bool unpack_weights(CpuLevel level, const ConvArgs& args, std::span<const std::byte> packed,
                    void* w) {
  bool whole = false;
  with_kernels(level, args, [&]<class T>(const ConvKernels<T>& kernels, auto&) {
    std::vector<ConvPart> parts = parts_of(args);
    if (parts.size() != 1) return;
    Weights<T> weights(args, parts[0], kernels);
    whole =
        weights.has_all_taps() && packed.size() >= sizeof(T) * static_cast<size_t>(weights.size());
    if (whole && w) weights.unpack(reinterpret_cast<const T*>(packed.data()), static_cast<T*>(w));
  });
  return whole;
}

void conv_at(CpuLevel level, const ConvArgs& args) {
  if (args.type == Element::f32 || args.type == Element::f64)
    return with_kernels(level, args, [&](const auto& kernels, const auto& gemm) {
      convolve_tiled(args, kernels, gemm);
    });
  switch (element_bytes(args.type)) {
    case 1:
      return convolve_copied<uint8_t>(level, args);
    case 2:
      return convolve_copied<uint16_t>(level, args);
    case 4:
      return convolve_copied<uint32_t>(level, args);
    case 8:
      return convolve_copied<uint64_t>(level, args);
    default:
      return convolve_copied<std::complex<double>>(level, args);
  }
}

void conv(const ConvArgs& args) { conv_at(cpu_level(), args); }

}  // namespace tn
