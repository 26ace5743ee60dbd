// The cotangent of a convolution's weights is a product of matrices too: the windows of x,
// transposed, times the cotangent of the result.
#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/conv_kernels.h"
#include "backend/cpu/kernels/conv_windows.h"
#include "backend/cpu/kernels/convolve.h"
#include "backend/cpu/kernels/strided_copy.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kBlock = 1024;  // results of a chain of sums; decides the bits
constexpr int64_t kRows = 96;     // of the gradient in a chunk: cotangents are read once for them

int64_t product(const ConvAxis (&axes)[3], int64_t ConvAxis::* extent) {
  return axes[0].*extent * (axes[1].*extent) * (axes[2].*extent);
}

/// Cotangents with their channels last, copied unless they are like that.
const void* channels_last_cotangents(const ConvArgs& args, int64_t places, const void* ct,
                                     BufferRef& copy) {
  int64_t channels = args.groups * args.out_channels;
  if (args.out_last || channels == 1 || places == 1) return ct;
  auto bytes = static_cast<int64_t>(element_bytes(args.type));
  copy = allocate(static_cast<size_t>(args.batch * channels * places * bytes));
  const int64_t extents[] = {args.batch, places, channels},
                strides[] = {channels * places, 1, places};
  copy_strided(bytes, extents, strides, ct, copy.data());
  return copy.data();
}

template <class T>
class WeightGradient {
 public:
  WeightGradient(const ConvArgs& args, const ConvKernels<T>& kernels, const void* ct, T* out)
      : args_(args),
        kernels_(kernels),
        depthwise_(args.groups > 1 && args.in_channels == 1 && args.out_channels == 1),
        images_(channels_last_images(args)),
        windows_(args, parts_of(args)[0], images_, depthwise_ ? args.groups : args.in_channels),
        taps_(product(args.axes, &ConvAxis::taps)),
        out_(out) {
    ct_ = static_cast<const T*>(
        channels_last_cotangents(args, windows_.rows / args.batch, ct, ct_copy_));
  }

  void run() {
    if (depthwise_) return parallel_for(taps_, [&](int64_t tap) { run_depthwise(tap); });
    int64_t columns = kernels_.most_vectors * kernels_.vector;
    int64_t panels = chunks_for(args_.out_channels, columns);
    int64_t parts = chunks_for(windows_.run, kRows);
    parallel_for(args_.groups * panels * parts * windows_.segments, [&](int64_t i) {
      auto [row0, row1] = chunk_range(windows_.run, parts, i / windows_.segments % parts);
      int64_t panel = i / (windows_.segments * parts) % panels;
      int64_t first = panel * columns;
      run_chunk({i / (windows_.segments * parts * panels), i % windows_.segments, row0, row1, first,
                 std::min(args_.out_channels - first, columns)});
    });
  }

 private:
  struct Chunk {
    int64_t group, segment, row0, row1;  // rows of the segment's run
    int64_t column0, columns;
  };

  void run_chunk(const Chunk& c) {
    int64_t vectors = chunks_for(c.columns, kernels_.vector), width = vectors * kernels_.vector;
    int64_t stride = args_.groups * args_.out_channels, rows = c.row1 - c.row0;
    BufferRef sums = allocate(sizeof(T) * static_cast<size_t>(rows * width)), local;
    if (width != c.columns) local = allocate(sizeof(T) * static_cast<size_t>(kBlock * width));
    std::vector<const void*> at(static_cast<size_t>(kBlock));
    for (int64_t begin = 0; begin < windows_.rows; begin += kBlock) {
      int64_t count = std::min(kBlock, windows_.rows - begin);
      windows_.locate_segment(c.segment, begin, begin + count, c.group * args_.in_channels + c.row0,
                              at.data());
      const T* ct = ct_ + begin * stride + c.group * args_.out_channels + c.column0;
      if (local) ct = copy_columns(ct, stride, count, c.columns, width, local.data<T>());
      kernels_.gradient(at.data(), count, rows, vectors, ct, local ? width : stride, sums.data<T>(),
                        width, begin != 0);
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < c.columns; ++j)
        put(c.group * args_.out_channels + c.column0 + j, c.segment * windows_.run + c.row0 + r,
            sums.data<T>()[r * width + j]);
  }

  /// Columns that do not fill a vector: with room behind them.
  static const T* copy_columns(const T* from, int64_t stride, int64_t count, int64_t columns,
                               int64_t width, T* to) {
    for (int64_t p = 0; p < count; ++p) {
      std::copy_n(from + p * stride, columns, to + p * width);
      std::fill_n(to + p * width + columns, width - columns, T{});
    }
    return to;
  }

  void run_depthwise(int64_t tap) {
    int64_t channels = args_.groups;
    BufferRef sums = allocate(sizeof(T) * static_cast<size_t>(channels));
    std::vector<const void*> at(static_cast<size_t>(kBlock));
    for (int64_t begin = 0; begin < windows_.rows; begin += kBlock) {
      int64_t count = std::min(kBlock, windows_.rows - begin);
      windows_.locate_segment(tap, begin, begin + count, 0, at.data());
      kernels_.depthwise_gradient(at.data(), count, channels, ct_ + begin * channels, channels,
                                  sums.data<T>(), begin != 0);
    }
    for (int64_t c = 0; c < channels; ++c) put(c, tap, sums.data<T>()[c]);
  }

  /// `k` counts taps, and channels in each.
  void put(int64_t channel_out, int64_t k, T value) {
    int64_t channels = args_.in_channels;
    int64_t place = args_.w_last ? k : k % channels * taps_ + k / channels;
    out_[channel_out * channels * taps_ + place] = value;
  }

  const ConvArgs& args_;
  const ConvKernels<T>& kernels_;
  bool depthwise_;
  ConvImages images_;
  ConvRows windows_;
  int64_t taps_;
  BufferRef ct_copy_;
  const T* ct_;
  T* out_;
};

/// As a convolution of x with the cotangents, in which images and channels, taps and results change
/// places: of any type, with any dilation.
void gradient_by_conv(const ConvArgs& args, const void* ct, void* gradient) {
  int64_t n = args.batch, g = args.groups, c = args.in_channels, o = g * args.out_channels;
  int64_t in = product(args.axes, &ConvAxis::in), out = product(args.axes, &ConvAxis::out);
  int64_t taps = product(args.axes, &ConvAxis::taps);
  auto bytes = static_cast<int64_t>(element_bytes(args.type));
  auto turned = [&](std::initializer_list<int64_t> extents, std::initializer_list<int64_t> strides,
                    const void* from) {
    int64_t size = bytes;
    for (int64_t e : extents) size *= e;
    BufferRef to = allocate(static_cast<size_t>(size));
    copy_strided(bytes, {extents.begin(), extents.size()}, {strides.begin(), strides.size()}, from,
                 to.data());
    return to;
  };
  BufferRef images = args.x_last ? turned({c, g, n, in}, {1, c, in * g * c, g * c}, args.x)
                                 : turned({c, g, n, in}, {in, c * in, g * c * in, 1}, args.x);
  BufferRef kernels = args.out_last ? turned({o, n, out}, {1, out * o, o}, ct)
                                    : turned({o, n, out}, {out, o * out, 1}, ct);
  BufferRef made = allocate(static_cast<size_t>(o * c * taps * bytes));
  ConvArgs back;
  back.type = args.type, back.batch = c, back.groups = g, back.in_channels = n;
  back.out_channels = args.out_channels;
  for (int k = 0; k < kConvAxes; ++k) {
    const ConvAxis& a = args.axes[k];
    back.axes[k] = {a.in, a.out, a.taps, a.kernel_dilation, a.low, a.input_dilation, a.stride};
  }
  back.x = images.data(), back.w = kernels.data(), back.out = made.data();
  conv(back);
  const int64_t second[] = {o, c, taps}, second_strides[] = {taps, o * taps, 1};
  const int64_t last[] = {o, taps, c}, last_strides[] = {taps, 1, o * taps};
  copy_strided(bytes, args.w_last ? last : second, args.w_last ? last_strides : second_strides,
               made.data(), gradient);
}

}  // namespace

void conv_gradient(const ConvArgs& args, const void* ct, void* gradient) {
  bool dilated = std::any_of(args.axes, args.axes + kConvAxes,
                             [](const ConvAxis& a) { return a.input_dilation != 1; });
  if (dilated || (args.type != Element::f32 && args.type != Element::f64))
    return gradient_by_conv(args, ct, gradient);
  const ConvLevel& level = at_level(v2::conv_level, v3::conv_level, v4::conv_level);
  if (args.type == Element::f32)
    WeightGradient<float>(args, level.f32, ct, static_cast<float*>(gradient)).run();
  else
    WeightGradient<double>(args, level.f64, ct, static_cast<double*>(gradient)).run();
}

}  // namespace tn
