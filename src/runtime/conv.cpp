// A convolution is a product of matrices: the kernel, [channels out, channels in · taps], times the
// patches of x, [channels in · taps, images · results]. Patches are copied out of x one tile at a
// time.
#include "runtime/conv.h"

#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

#include "base/half.h"
#include "runtime/buffer.h"
#include "runtime/gemm.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int kAxes = 3;
constexpr int64_t kDepth = 768;             // rows of a tile of patches; decides the bits
constexpr int64_t kPatchBytes = 768 << 10;  // of a tile of patches: it stays in the cache
constexpr int64_t kLeastColumns = 64, kLeastRows = 128;  // that are worth a chunk
constexpr int64_t kWantedChunks = 16;

int64_t ceil_quotient(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/// The results of one axis that meet the same taps, and those taps. With input dilation d only
/// every d-th tap meets an element of x, so results fall into phases; without there is one.
struct Phase {
  int64_t out_first, out_step, outs;
  int64_t tap_first, tap_step, taps;
  int64_t start, out_x, tap_x;  // result j and tap i meet at x[start + j·out_x + i·tap_x]
};

std::vector<Phase> phases_of(const ConvAxis& a) {
  int64_t d = a.input_dilation, common = std::gcd(a.stride, d);
  int64_t tap_step = d / std::gcd(a.kernel_dilation, d);
  std::vector<Phase> phases;
  for (int64_t p = 0; p < std::min(d / common, a.out); ++p) {
    int64_t at = p * a.stride - a.low, tap = 0;
    while (tap < tap_step && (at + tap * a.kernel_dilation) % d != 0) ++tap;
    int64_t taps = tap < tap_step ? std::max<int64_t>(0, ceil_quotient(a.taps - tap, tap_step)) : 0;
    phases.push_back({p, d / common, ceil_quotient(a.out - p, d / common), tap, tap_step, taps,
                      (at + tap * a.kernel_dilation) / d, a.stride / common,
                      a.kernel_dilation * tap_step / d});
  }
  return phases;
}

/// The rows or the columns of a matrix of patches: a block of channels or images, then places.
struct Lines {
  int64_t blocks = 1, block_stride = 0;  // stride in x
  int64_t extent[kAxes] = {1, 1, 1};
  int64_t step[kAxes] = {0, 0, 0};  // in x
  int64_t places() const { return extent[0] * extent[1] * extent[2]; }
  int64_t size() const { return blocks * places(); }
};

/// One line, and the next ones in order.
struct Cursor {
  const Lines& lines;
  int64_t block, at[kAxes];
  Cursor(const Lines& of, int64_t line) : lines(of) {
    for (int a = kAxes - 1; a >= 0; --a) at[a] = line % of.extent[a], line /= of.extent[a];
    block = line;
  }
  /// Goes on by `count` lines, to the end of the last axis at most.
  void skip(int64_t count) {
    at[2] += count;
    for (int a = kAxes - 1; a >= 0 && at[a] == lines.extent[a]; --a) {
      at[a] = 0;
      ++(a > 0 ? at[a - 1] : block);
    }
  }
};

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

template <class T>
struct Image {
  const T* x;
  int64_t extent[kAxes], start[kAxes];
};

/// `count` elements from `from` on in steps, of which those outside `valid` are 0.
template <class T>
void copy_run(const T* from, int64_t step, Range run, Range valid, T* to) {
  int64_t begin = std::clamp(valid.begin, run.begin, run.end);
  int64_t end = std::clamp(valid.end, begin, run.end);
  std::fill(to, to + (begin - run.begin), T{});
  to -= run.begin;
  if (step == 1)
    std::copy(from + begin, from + end, to + begin);
  else
    for (int64_t i = begin; i < end; ++i) to[i] = from[i * step];
  std::fill(to + end, to + run.end, T{});
}

/// Patches as a matrix of `rows` by `columns` of which the latter are side by side in `to`.
template <class T>
void copy_patches(const Image<T>& image, const Lines& rows, Range row_range, const Lines& columns,
                  Range column_range, T* to) {
  const int64_t* extent = image.extent;
  Cursor row(rows, row_range.begin);
  for (int64_t r = row_range.begin; r < row_range.end; ++r, row.skip(1)) {
    int64_t first[kAxes];
    for (int a = 0; a < kAxes; ++a) first[a] = image.start[a] + row.at[a] * rows.step[a];
    int64_t step = std::max<int64_t>(columns.step[2], 1);
    Range valid{ceil_quotient(-first[2], step), ceil_quotient(extent[2] - first[2], step)};
    const T* x = image.x + row.block * rows.block_stride + first[2];
    Cursor column(columns, column_range.begin);
    for (int64_t c = column_range.begin; c < column_range.end;) {
      int64_t count = std::min(columns.extent[2] - column.at[2], column_range.end - c);
      int64_t a0 = first[0] + column.at[0] * columns.step[0];
      int64_t a1 = first[1] + column.at[1] * columns.step[1];
      bool inside = a0 >= 0 && a0 < extent[0] && a1 >= 0 && a1 < extent[1];
      const T* from = x + column.block * columns.block_stride + (a0 * extent[1] + a1) * extent[2];
      Range run{column.at[2], column.at[2] + count};
      copy_run(inside ? from : x, step, run, inside ? valid : Range{run.end, run.end}, to);
      to += count, c += count;
      column.skip(count);
    }
  }
}

template <class T>
class Convolution {
 public:
  Convolution(const ConvArgs& args, const Phase* phases);
  void run();

 private:
  void gather_kernel(const ConvArgs& args, const Phase* phases);
  void multiply(int64_t group, Range rows, Range columns, T* sums);
  void write(int64_t group, Range rows, Range columns, const T* sums);

  const ConvArgs& args_;
  Lines taps_, results_;  // rows and columns of the patches
  Image<T> image_;
  Lines places_;  // of the results in `out`
  int64_t first_place_ = 0, image_places_ = 1;
  int64_t depth_, row_parts_, column_parts_;
  BufferRef gathered_;
  const T* kernel_;
};

template <class T>
Convolution<T>::Convolution(const ConvArgs& args, const Phase* phases)
    : args_(args), kernel_(static_cast<const T*>(args.w)) {
  image_.x = static_cast<const T*>(args.x);
  int64_t channel = 1;
  bool whole = true, dense = true;
  for (int a = kAxes - 1; a >= 0; --a) {
    const Phase& p = phases[a];
    taps_.extent[a] = p.taps, taps_.step[a] = p.tap_x;
    results_.extent[a] = p.outs, results_.step[a] = p.out_x;
    places_.extent[a] = p.outs, places_.step[a] = p.out_step * image_places_;
    first_place_ += p.out_first * image_places_;
    image_places_ *= args.axes[a].out;
    image_.extent[a] = args.axes[a].in, image_.start[a] = p.start;
    channel *= args.axes[a].in;
    whole &= p.tap_step == 1;
    dense &= p.out_step == 1;
  }
  taps_.blocks = args.in_channels, taps_.block_stride = channel;
  results_.blocks = args.batch, results_.block_stride = channel * args.in_channels * args.groups;
  places_.blocks = args.batch;
  places_.block_stride = image_places_ * args.out_channels * args.groups;
  if (dense) places_.extent[0] = places_.extent[1] = 1, places_.extent[2] = image_places_;
  if (!whole && taps_.size() > 0) gather_kernel(args, phases);

  depth_ = std::clamp<int64_t>(taps_.size(), 1, kDepth);
  int64_t columns = results_.size(), rows = args.out_channels;
  int64_t fits = kPatchBytes / (depth_ * static_cast<int64_t>(sizeof(T)));
  int64_t wanted = std::max(kLeastColumns, columns * args.groups / kWantedChunks);
  column_parts_ = chunks_for(columns, std::max(kLeastColumns, std::min(fits, wanted)));
  row_parts_ = std::clamp<int64_t>(kWantedChunks / (column_parts_ * args.groups), 1,
                                   chunks_for(rows, kLeastRows));
}

/// The taps of this phase, side by side.
template <class T>
void Convolution<T>::gather_kernel(const ConvArgs& args, const Phase* phases) {
  int64_t pairs = args.groups * args.out_channels * args.in_channels;
  gathered_ = allocate(sizeof(T) * static_cast<size_t>(pairs * taps_.places()));
  T* to = gathered_.data<T>();
  const T* from = kernel_;
  const ConvAxis* axes = args.axes;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    for (Cursor tap(taps_, 0); tap.block == 0; tap.skip(1)) {
      int64_t place = 0;
      for (int a = 0; a < kAxes; ++a)
        place = place * axes[a].taps + phases[a].tap_first + tap.at[a] * phases[a].tap_step;
      *to++ = from[place];
    }
    from += axes[0].taps * axes[1].taps * axes[2].taps;
  }
  kernel_ = gathered_.data<T>();
}

template <class T>
void Convolution<T>::run() {
  parallel_for(args_.groups * row_parts_ * column_parts_, [&](int64_t chunk) {
    int64_t group = chunk / (row_parts_ * column_parts_);
    auto rows = chunk_range(args_.out_channels, row_parts_, chunk / column_parts_ % row_parts_);
    auto columns = chunk_range(results_.size(), column_parts_, chunk % column_parts_);
    Range row_range{rows.begin, rows.end}, column_range{columns.begin, columns.end};
    auto count = static_cast<size_t>(row_range.size() * column_range.size());
    BufferRef sums = allocate(sizeof(T) * count);
    multiply(group, row_range, column_range, sums.data<T>());
    write(group, row_range, column_range, sums.data<T>());
  });
}

template <class T>
void Convolution<T>::multiply(int64_t group, Range rows, Range columns, T* sums) {
  int64_t total = taps_.size(), count = rows.size() * columns.size();
  if (total == 0) return void(std::fill(sums, sums + count, T{}));
  bool along_results = results_.extent[2] >= taps_.extent[2];  // longer runs to copy
  Image<T> image = image_;
  image.x += group * args_.in_channels * taps_.block_stride;
  BufferRef patches = allocate(sizeof(T) * static_cast<size_t>(depth_ * columns.size()));
  BufferRef more;
  if (total > depth_) more = allocate(sizeof(T) * static_cast<size_t>(count));
  for (int64_t k = 0; k < total; k += depth_) {
    Range taps{k, std::min(total, k + depth_)};
    if (along_results)
      copy_patches(image, taps_, taps, results_, columns, patches.data<T>());
    else
      copy_patches(image, results_, columns, taps_, taps, patches.data<T>());
    GemmArgs g;
    g.type = args_.type;
    g.m = rows.size(), g.n = columns.size(), g.k = taps.size();
    g.a = kernel_ + (group * args_.out_channels + rows.begin) * total + k;
    g.a_row = total, g.a_col = 1;
    g.b = patches.data();
    g.b_row = along_results ? columns.size() : 1, g.b_col = along_results ? 1 : taps.size();
    g.c = k == 0 ? sums : more.data<T>();
    gemm(g);
    if (k == 0) continue;
    const T* next = more.data<T>();
    for (int64_t i = 0; i < count; ++i) sums[i] = static_cast<T>(sums[i] + next[i]);
  }
}

template <class T>
void Convolution<T>::write(int64_t group, Range rows, Range columns, const T* sums) {
  T* out = static_cast<T*>(args_.out) + first_place_ + group * args_.out_channels * image_places_;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    Cursor place(places_, columns.begin);
    for (int64_t c = columns.begin; c < columns.end;) {
      int64_t count = std::min(places_.extent[2] - place.at[2], columns.end - c);
      T* to = out + place.block * places_.block_stride + row * image_places_;
      for (int a = 0; a < kAxes; ++a) to += place.at[a] * places_.step[a];
      if (int64_t step = places_.step[2]; step == 1)
        std::copy(sums, sums + count, to);
      else
        for (int64_t i = 0; i < count; ++i) to[i * step] = sums[i];
      sums += count, c += count;
      place.skip(count);
    }
  }
}

template <class T>
void convolve(const ConvArgs& args) {
  for (const Phase& p0 : phases_of(args.axes[0]))
    for (const Phase& p1 : phases_of(args.axes[1]))
      for (const Phase& p2 : phases_of(args.axes[2])) {
        Phase phases[] = {p0, p1, p2};
        Convolution<T>(args, phases).run();
      }
}

/// One tap that meets every element in place: x itself is the matrix of patches.
bool is_pointwise(const ConvArgs& args) {
  return std::all_of(args.axes, args.axes + kAxes, [](const ConvAxis& a) {
    return a.taps == 1 && a.stride == 1 && a.input_dilation == 1 && a.low == 0 && a.in == a.out;
  });
}

void multiply_pointwise(const ConvArgs& args) {
  int64_t places = args.axes[0].out * args.axes[1].out * args.axes[2].out;
  std::vector<int64_t> a_offsets, b_offsets;
  for (int64_t n = 0; n < args.batch; ++n)
    for (int64_t g = 0; g < args.groups; ++g) {
      a_offsets.push_back(g * args.out_channels * args.in_channels);
      b_offsets.push_back((n * args.groups + g) * args.in_channels * places);
    }
  GemmArgs g;
  g.type = args.type;
  g.m = args.out_channels, g.n = places, g.k = args.in_channels;
  g.a = args.w, g.b = args.x, g.c = args.out;
  g.a_row = g.k, g.a_col = 1, g.b_row = places, g.b_col = 1;
  g.batch = args.batch * args.groups;
  g.a_offsets = a_offsets.data(), g.b_offsets = b_offsets.data();
  gemm(g);
}

template <class To, class From>
void convert(const From* from, int64_t count, To* to, To (*one)(From)) {
  int64_t chunks = chunks_for(count, 1 << 15);
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(count, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) to[i] = one(from[i]);
  });
}

BufferRef widened(Element type, const void* from, int64_t count) {
  BufferRef wide = allocate(sizeof(float) * static_cast<size_t>(count));
  convert<float, uint16_t>(static_cast<const uint16_t*>(from), count, wide.data<float>(),
                           type == Element::f16 ? float16_to_float : bfloat16_to_float);
  return wide;
}

void convolve_halves(ConvArgs args) {
  Element type = args.type;
  auto* out = static_cast<uint16_t*>(args.out);
  int64_t channels = args.groups * args.in_channels, results = args.groups * args.out_channels;
  int64_t in = args.batch * channels, kernel = results * args.in_channels;
  int64_t count = args.batch * results;
  for (const ConvAxis& a : args.axes) in *= a.in, kernel *= a.taps, count *= a.out;
  BufferRef x = widened(type, args.x, in), w = widened(type, args.w, kernel);
  BufferRef sums = allocate(sizeof(float) * static_cast<size_t>(count));
  args.type = Element::f32, args.x = x.data(), args.w = w.data(), args.out = sums.data();
  conv(args);
  convert<uint16_t, float>(sums.data<float>(), count, out,
                           type == Element::f16 ? float_to_float16 : float_to_bfloat16);
}

}  // namespace

void conv(const ConvArgs& args) {
  if (args.type == Element::f16 || args.type == Element::bf16) return convolve_halves(args);
  if (is_pointwise(args)) return multiply_pointwise(args);
  switch (args.type) {
    case Element::f32:
      return convolve<float>(args);
    case Element::f64:
      return convolve<double>(args);
    case Element::c64:
      return convolve<std::complex<float>>(args);
    case Element::c128:
      return convolve<std::complex<double>>(args);
    default:
      break;
  }
  switch (element_bytes(args.type)) {  // sums wrap, so the sign does not matter
    case 1:
      return convolve<uint8_t>(args);
    case 2:
      return convolve<uint16_t>(args);
    case 4:
      return convolve<uint32_t>(args);
    default:
      return convolve<uint64_t>(args);
  }
}

}  // namespace tn
