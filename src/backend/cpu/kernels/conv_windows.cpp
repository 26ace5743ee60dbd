#include "backend/cpu/kernels/conv_windows.h"

#include <algorithm>
#include <cstring>

#include "runtime/threads.h"
#include "runtime/with_bits.h"

namespace tn {
namespace {

constexpr int64_t kFewChannels = 32;  // below, the taps along the last axis are read as one run

/// Whether the taps of the last axis and the channels are one run, if no window reaches outside.
bool joins_taps(const ConvArgs& args) {
  for (const ConvAxis& a : args.axes)
    if (a.input_dilation != 1) return false;
  const ConvAxis& last = args.axes[kConvAxes - 1];
  return args.groups == 1 && args.in_channels < kFewChannels && last.taps > 1 &&
         last.kernel_dilation == 1;
}

/// to[b * a_count + a] = from[a * from_stride + b], in blocks that stay in L1.
template <class T>
void transpose(const T* from, int64_t from_stride, int64_t a_count, int64_t b_count, T* to) {
  constexpr int64_t kBlock = 16;
  for (int64_t b0 = 0; b0 < b_count; b0 += kBlock)
    for (int64_t a0 = 0; a0 < a_count; a0 += kBlock) {
      int64_t b1 = std::min(b0 + kBlock, b_count), a1 = std::min(a0 + kBlock, a_count);
      for (int64_t b = b0; b < b1; ++b)
        for (int64_t a = a0; a < a1; ++a) to[b * a_count + a] = from[a * from_stride + b];
    }
}

template <class T>
void copy_images(const ConvArgs& args, const ConvImages& images, T* copy) {
  int64_t channels = args.groups * args.in_channels, places = 1;
  for (const ConvAxis& a : args.axes) places *= a.in;
  const int64_t *extent = images.extent, *low = images.low;
  int64_t line = extent[2] * channels, in = args.axes[2].in;
  int64_t lines = args.batch * extent[0] * extent[1];
  int64_t chunks = std::min(lines, chunks_for(lines * line, 1 << 14));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(lines, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) {
      T* to = copy + i * line;
      int64_t image = i / (extent[0] * extent[1]);
      int64_t a0 = i / extent[1] % extent[0] - low[0], a1 = i % extent[1] - low[1];
      bool outside = a0 < 0 || a0 >= args.axes[0].in || a1 < 0 || a1 >= args.axes[1].in;
      int64_t before = outside ? extent[2] : low[2], after = outside ? 0 : extent[2] - in - low[2];
      std::memset(to, 0, sizeof(T) * static_cast<size_t>(before * channels));
      std::memset(to + (extent[2] - after) * channels, 0,
                  sizeof(T) * static_cast<size_t>(after * channels));
      if (outside) continue;
      int64_t place = (a0 * args.axes[1].in + a1) * in;
      const T* x = static_cast<const T*>(args.x) + image * places * channels;
      if (args.x_last)
        std::memcpy(to + before * channels, x + place * channels,
                    sizeof(T) * static_cast<size_t>(in * channels));
      else
        transpose(x + place, places, channels, in, to + before * channels);
    }
  });
}

}  // namespace

/// Fills in the extents, and returns the elements of a copy; 0 where none is needed.
static int64_t lay_out(const ConvArgs& args, ConvImages& images) {
  bool grows = false;
  int64_t size = args.batch * args.groups * args.in_channels;
  for (int k = 0; k < kConvAxes; ++k) {
    const ConvAxis& a = args.axes[k];
    images.extent[k] = a.in;
    if (images.padded) {
      int64_t last = (a.out - 1) * a.stride + (a.taps - 1) * a.kernel_dilation - a.low;
      images.low[k] = std::max<int64_t>(0, a.low);
      images.extent[k] = images.low[k] + std::max(a.in, last + 1);
    }
    grows |= images.extent[k] != a.in;
    size *= images.extent[k];
  }
  bool one_place = args.axes[0].in * args.axes[1].in * args.axes[2].in == 1;
  bool last = args.x_last || args.groups * args.in_channels == 1 || one_place;
  return last && !grows ? 0 : size;
}

int64_t images_bytes(const ConvArgs& args) {
  ConvImages images{{}, args.x, {}, {}, joins_taps(args)};
  return lay_out(args, images) * static_cast<int64_t>(element_bytes(args.type));
}

ConvImages channels_last_images(const ConvArgs& args, void* room) {
  ConvImages images{{}, args.x, {}, {}, joins_taps(args)};
  int64_t size = lay_out(args, images);
  if (size == 0) return images;
  if (!room) images.copy = allocate(element_bytes(args.type) * static_cast<size_t>(size));
  void* to = room ? room : images.copy.data();
  with_bits(static_cast<int64_t>(element_bytes(args.type)),
            [&]<class T>(T) { copy_images<T>(args, images, static_cast<T*>(to)); });
  images.data = to;
  return images;
}

const void* weights_of(const ConvArgs& args, const ConvPart& part, int64_t group, int64_t begin,
                       int64_t end, void* to) {
  const ConvPhase* phases = part.phases;
  int64_t channels = args.in_channels, taps = 1;
  for (const ConvAxis& a : args.axes) taps *= a.taps;
  int64_t tap_stride = args.w_last ? channels : 1, channel_stride = args.w_last ? 1 : taps;
  bool as_is = part.taps() == taps && (args.w_last || taps == 1 || channels == 1);
  const void* result = to;
  with_bits(static_cast<int64_t>(element_bytes(args.type)), [&]<class T>(T) {
    const T* from =
        static_cast<const T*>(args.w) + (group * args.out_channels + begin) * channels * taps;
    if (as_is) return void(result = from);
    T* next = static_cast<T*>(to);
    for (int64_t o = begin; o < end; ++o, from += channels * taps)
      for (int64_t t = 0; t < part.taps(); ++t) {
        int64_t at[kConvAxes], rest = t, tap = 0;
        for (int k = kConvAxes - 1; k >= 0; --k)
          at[k] = rest % phases[k].taps, rest /= phases[k].taps;
        for (int k = 0; k < kConvAxes; ++k)
          tap = tap * args.axes[k].taps + phases[k].tap_first + at[k] * phases[k].tap_step;
        for (int64_t c = 0; c < channels; ++c)
          *next++ = from[tap * tap_stride + c * channel_stride];
      }
  });
  return result;
}

ConvRows::ConvRows(const ConvArgs& args, const ConvPart& part, const ConvImages& images,
                   int64_t channels)
    : rows(args.batch * part.results()), run(channels), part_(part) {
  x_ = static_cast<const std::byte*>(images.data);
  element_ = static_cast<int64_t>(element_bytes(args.type));
  int64_t stride = args.groups * args.in_channels * element_;
  out_places_ = 1;
  for (int k = kConvAxes - 1; k >= 0; --k) {
    extent_[k] = images.extent[k], stride_[k] = stride, stride *= extent_[k];
    start_[k] = part.phases[k].start + images.low[k];
    taps_[k] = part.phases[k].taps;
    out_stride_[k] = out_places_, out_places_ *= args.axes[k].out;
  }
  image_stride_ = stride;
  if (images.padded) run *= taps_[2], taps_[2] = 1;
  segments = taps_[0] * taps_[1] * taps_[2];
  for (int64_t t0 = 0; t0 < taps_[0]; ++t0)
    for (int64_t t1 = 0; t1 < taps_[1]; ++t1)
      for (int64_t t2 = 0; t2 < taps_[2]; ++t2)
        deltas_.push_back(t0 * part.phases[0].tap_x * stride_[0] +
                          t1 * part.phases[1].tap_x * stride_[1] +
                          t2 * part.phases[2].tap_x * stride_[2]);
  zeros_ = allocate(static_cast<size_t>(run * element_));
  std::memset(zeros_.data(), 0, zeros_.bytes());
}

ConvRows::Row ConvRows::find(int64_t row) const {
  Row found;
  for (int k = kConvAxes - 1; k >= 0; --k)
    found.at[k] = row % part_.phases[k].outs, row /= part_.phases[k].outs;
  found.image = row;
  return found;
}

void ConvRows::step(Row& row) const {
  ++row.at[kConvAxes - 1];
  for (int k = kConvAxes - 1; k >= 0 && row.at[k] == part_.phases[k].outs; --k) {
    row.at[k] = 0;
    ++(k > 0 ? row.at[k - 1] : row.image);
  }
}

/// Whether the whole window that begins at `first` is.
bool ConvRows::inside(const int64_t* first) const {
  bool all = true;
  for (int k = 0; k < kConvAxes; ++k)
    all &= first[k] >= 0 && first[k] + (taps_[k] - 1) * part_.phases[k].tap_x < extent_[k];
  return all;
}

void ConvRows::locate(int64_t begin, int64_t end, int64_t first_channel, const void** at) const {
  const void* zeros = zeros_.data();
  int64_t count = end - begin;
  Row row = find(begin);
  for (int64_t r = 0; r < count; ++r, step(row)) {
    int64_t first[kConvAxes], origin = row.image * image_stride_ + first_channel * element_;
    for (int k = 0; k < kConvAxes; ++k) {
      first[k] = start_[k] + row.at[k] * part_.phases[k].out_x;
      origin += first[k] * stride_[k];
    }
    if (inside(first)) {
      for (int64_t s = 0; s < segments; ++s)
        at[s * count + r] = x_ + origin + deltas_[static_cast<size_t>(s)];
      continue;
    }
    for (int64_t s = 0; s < segments; ++s) {
      int64_t tap[kConvAxes] = {s / (taps_[1] * taps_[2]), s / taps_[2] % taps_[1], s % taps_[2]};
      bool met = true;
      for (int k = 0; k < kConvAxes; ++k) {
        int64_t i = first[k] + tap[k] * part_.phases[k].tap_x;
        met &= i >= 0 && i < extent_[k];
      }
      at[s * count + r] = met ? x_ + origin + deltas_[static_cast<size_t>(s)] : zeros;
    }
  }
}

void ConvRows::locate_segment(int64_t segment, int64_t begin, int64_t end, int64_t first_channel,
                              const void** at) const {
  const int64_t tap[] = {segment / (taps_[1] * taps_[2]), segment / taps_[2] % taps_[1],
                         segment % taps_[2]};
  Row row = find(begin);
  for (int64_t r = begin; r < end; ++r, step(row)) {
    int64_t origin = row.image * image_stride_ + first_channel * element_;
    bool met = true;
    for (int k = 0; k < kConvAxes; ++k) {
      int64_t i = start_[k] + row.at[k] * part_.phases[k].out_x + tap[k] * part_.phases[k].tap_x;
      met &= i >= 0 && i < extent_[k];
      origin += i * stride_[k];
    }
    *at++ = met ? x_ + origin : zeros_.data();
  }
}

void ConvRows::places(int64_t begin, int64_t end, int64_t* at) const {
  Row row = find(begin);
  for (int64_t r = begin; r < end; ++r, step(row)) {
    int64_t place = row.image * out_places_;
    for (int k = 0; k < kConvAxes; ++k)
      place += (part_.phases[k].out_first + row.at[k] * part_.phases[k].out_step) * out_stride_[k];
    *at++ = place;
  }
}

}  // namespace tn
