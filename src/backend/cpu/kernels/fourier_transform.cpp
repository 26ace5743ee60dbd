#include "backend/cpu/kernels/fourier_transform.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/fft_plan.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kChunk = 1 << 14;  // numbers per chunk of a parallel loop

/// Two arrays of numbers, in one block of memory.
template <class R>
class Workspace {
 public:
  explicit Workspace(int64_t numbers)
      : memory_(allocate(4 * static_cast<size_t>(numbers) * sizeof(R))), numbers_(numbers) {}
  FftSplit<R> first() const { return {at(0), at(1)}; }
  FftSplit<R> second() const { return {at(2), at(3)}; }

 private:
  R* at(int64_t part) const { return memory_.data<R>() + part * numbers_; }
  BufferRef memory_;
  int64_t numbers_;
};

/// Lines are transformed as many at a time as a vector has lanes, the remaining ones alone.
struct Group {
  int64_t first, lanes;
  bool wide() const { return lanes > 1; }
};
int64_t group_count(int64_t lines, int64_t lanes) { return lines / lanes + lines % lanes; }
Group group_at(int64_t lines, int64_t lanes, int64_t i) {
  int64_t full = lines / lanes;
  return i < full ? Group{i * lanes, lanes} : Group{full * lanes + i - full, 1};
}

/// Calls `body(workspace, group)` for all groups of `lines`, whose lines have `numbers` numbers.
template <class R, class F>
void each_group(int64_t lines, int64_t lanes, int64_t numbers, F body) {
  int64_t groups = group_count(lines, lanes);
  int64_t chunks = std::min(groups, chunks_for(lines * numbers, kChunk));
  parallel_for(chunks, [&](int64_t chunk) {
    Workspace<R> space(numbers * lanes);
    auto [begin, end] = chunk_range(groups, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) body(space, group_at(lines, lanes, i));
  });
}

/// Rows of `lanes` numbers that are `stride` apart, to the lanes of a line, and back.
template <class R>
void copy_lanes(const R* from, int64_t from_stride, R* to, int64_t to_stride, int64_t count,
                int64_t lanes) {
  for (int64_t j = 0; j < count; ++j)
    std::memcpy(to + j * to_stride, from + j * from_stride, static_cast<size_t>(lanes) * sizeof(R));
}

template <class R>
void transpose_lanes(const R* from, int64_t count, int64_t lanes, R* to) {
  for (int64_t l = 0; l < lanes; ++l)
    for (int64_t j = 0; j < count; ++j) to[l * count + j] = from[j * lanes + l];
}

template <class R>
class Engine {
 public:
  explicit Engine(const FftKernels<R>& kernels) : k_(kernels) {}

  /// Transforms what is in `data`, with `work` as large, and returns the one with the result.
  FftSplit<R> run(const FftPlan<R>& plan, bool wide, FftSplit<R> data, FftSplit<R> work) const {
    if (plan.columns) return run_matrix(plan, data, work);
    if (plan.longer) return run_chirp(plan, wide, data, work);
    int64_t count = static_cast<int64_t>(plan.stages.size());
    return k_.transform({plan.stages.data(), count, plan.twiddles.table()}, wide, data, work);
  }

 private:
  FftSplit<R> run_chirp(const FftPlan<R>& plan, bool wide, FftSplit<R> data,
                        FftSplit<R> work) const {
    int64_t n = plan.n, m = plan.longer->n, lanes = wide ? k_.lanes : 1;
    k_.multiply(plan.chirp.table(), wide, n, 1, false, data);
    std::fill(data.re + n * lanes, data.re + m * lanes, R(0));
    std::fill(data.im + n * lanes, data.im + m * lanes, R(0));
    FftSplit<R> there = run(*plan.longer, wide, data, work);
    FftSplit<R> other = there.re == data.re ? work : data;
    k_.multiply(plan.spectrum.table(), wide, m, 1, false, there);
    FftSplit<R> back = run(*plan.longer, wide, there.swapped(), other.swapped()).swapped();
    k_.multiply(plan.chirp.table(), wide, n, 1, false, back);
    return back;
  }

  /// x[j·columns + i] → X[k + rows·l]: over j, times the root of k·i, over i.
  FftSplit<R> run_matrix(const FftPlan<R>& plan, FftSplit<R> data, FftSplit<R> work) const {
    int64_t rows = plan.columns->n, columns = plan.rows->n;
    each_group<R>(columns, k_.lanes, rows, [&](const Workspace<R>& space, Group g) {
      FftSplit<R> line = space.first();
      copy_lanes(data.re + g.first, columns, line.re, g.lanes, rows, g.lanes);
      copy_lanes(data.im + g.first, columns, line.im, g.lanes, rows, g.lanes);
      line = run(*plan.columns, g.wide(), line, space.second());
      k_.multiply(plan.between.table(g.first), g.wide(), rows, columns, g.wide(), line);
      transpose_lanes(line.re, rows, g.lanes, work.re + g.first * rows);
      transpose_lanes(line.im, rows, g.lanes, work.im + g.first * rows);
    });
    each_group<R>(rows, k_.lanes, columns, [&](const Workspace<R>& space, Group g) {
      FftSplit<R> line = space.first();
      copy_lanes(work.re + g.first, rows, line.re, g.lanes, columns, g.lanes);
      copy_lanes(work.im + g.first, rows, line.im, g.lanes, columns, g.lanes);
      line = run(*plan.rows, g.wide(), line, space.second());
      copy_lanes(line.re, g.lanes, data.re + g.first, rows, columns, g.lanes);
      copy_lanes(line.im, g.lanes, data.im + g.first, rows, columns, g.lanes);
    });
    return data;
  }

  const FftKernels<R>& k_;
};

/// One operand's lines in memory: how many numbers each has, and how they are read as pairs.
struct Layout {
  int64_t count;       // numbers, or pairs of reals
  int64_t length;      // of a line, in R
  int64_t step, part;  // in R
};

/// One call: its lines, group by group.
template <class R>
class Lines {
 public:
  Lines(const FftArgs& args, const FftKernels<R>& kernels)
      : a_(args),
        k_(kernels),
        engine_(kernels),
        paired_(args.kind != FftKind::c2c && args.n % 2 == 0),
        plan_(fft_plan<R>(paired_ ? args.n / 2 : args.n, paired_)),
        in_(layout(args.kind != FftKind::r2c)),
        out_(layout(args.kind != FftKind::c2r)) {}

  void run() {
    int64_t sets = a_.inner == 1 ? 1 : a_.outer, lines = a_.inner == 1 ? a_.outer : a_.inner;
    if (plan_->is_long()) {
      Workspace<R> space(numbers());
      for (int64_t i = 0; i < sets * lines; ++i) line(space, i / lines, {i % lines, 1});
      return;
    }
    int64_t each = group_count(lines, k_.lanes), groups = sets * each;
    int64_t chunks = std::min(groups, chunks_for(sets * lines * numbers(), kChunk));
    parallel_for(chunks, [&](int64_t chunk) {
      Workspace<R> space(numbers() * k_.lanes);
      auto [begin, end] = chunk_range(groups, chunks, chunk);
      for (int64_t i = begin; i < end; ++i)
        line(space, i / each, group_at(lines, k_.lanes, i % each));
    });
  }

 private:
  int64_t numbers() const { return plan_->extent() + 1; }

  Layout layout(bool complex) const {
    int64_t half = a_.n / 2 + 1, inner = a_.inner;
    if (complex && a_.kind == FftKind::c2c) return {a_.n, 2 * a_.n * inner, 2 * inner, 1};
    if (complex) return {half, 2 * half * inner, 2 * inner, 1};
    if (paired_) return {a_.n / 2, a_.n * inner, 2 * inner, inner};
    return {a_.n, a_.n * inner, inner, 0};
  }

  template <class T>
  FftLines<T> lines_at(T* base, const Layout& l, bool complex, int64_t set, Group g) const {
    int64_t unit = complex ? 2 : 1;
    if (a_.inner == 1) return {base + g.first * l.length, l.length, l.step, l.part};
    return {base + set * l.length + g.first * unit, unit, l.step, l.part};
  }

  void line(const Workspace<R>& space, int64_t set, Group g) const {
    bool to_real = a_.kind == FftKind::c2r;
    FftSplit<R> data = space.first(), work = space.second();
    load(lines_at(static_cast<const R*>(a_.in), in_, a_.kind != FftKind::r2c, set, g), g,
         to_real && paired_ ? work : data);
    if (to_real) complete(g, data, work);
    bool inverse = to_real || (a_.kind == FftKind::c2c && a_.inverse);
    FftSplit<R> result =
        inverse ? engine_.run(*plan_, g.wide(), data.swapped(), work.swapped()).swapped()
                : engine_.run(*plan_, g.wide(), data, work);
    if (a_.kind == FftKind::r2c && paired_) {
      FftSplit<R> other = result.re == data.re ? work : data;
      k_.unpack(plan_->real_roots.table(), g.wide(), plan_->n, result, other);
      result = other;
    }
    store(result, g, lines_at(static_cast<R*>(a_.out), out_, !to_real, set, g));
  }

  /// Half a spectrum, as the operand of an inverse transform. The plus sign is that of `inverse`.
  void complete(Group g, FftSplit<R> data, FftSplit<R> work) const {
    FftSplit<R> half = paired_ ? work : data;
    if (!a_.inverse)
      for (int64_t i = 0; i < in_.count * g.lanes; ++i) half.im[i] = -half.im[i];
    if (paired_) return k_.pack(plan_->real_roots.table(), g.wide(), plan_->n, work, data);
    std::fill(data.im, data.im + g.lanes, R(0));
    for (int64_t j = 1; j < in_.count; ++j)
      for (int64_t l = 0; l < g.lanes; ++l) {
        data.re[(a_.n - j) * g.lanes + l] = data.re[j * g.lanes + l];
        data.im[(a_.n - j) * g.lanes + l] = -data.im[j * g.lanes + l];
      }
  }

  /// Calls `body(begin, count)` for parts of a long line, or once.
  template <class F>
  void in_parts(Group g, int64_t count, F body) const {
    int64_t chunks = g.wide() ? 1 : chunks_for(count, kChunk);
    parallel_for(chunks, [&](int64_t chunk) {
      auto [begin, end] = chunk_range(count, chunks, chunk);
      body(begin, end - begin);
    });
  }

  void load(FftLines<const R> from, Group g, FftSplit<R> to) const {
    in_parts(g, in_.count, [&](int64_t begin, int64_t count) {
      FftLines<const R> part = from;
      part.at += begin * from.step;
      k_.load(part, g.wide(), count, {to.re + begin, to.im + begin});
    });
  }

  void store(FftSplit<R> from, Group g, FftLines<R> to) const {
    R scale = static_cast<R>(a_.scale);
    R im_scale = a_.kind == FftKind::r2c && a_.inverse ? -scale : scale;
    in_parts(g, out_.count, [&](int64_t begin, int64_t count) {
      FftLines<R> part = to;
      part.at += begin * to.step;
      k_.store({from.re + begin, from.im + begin}, g.wide(), count, scale, im_scale, part);
    });
  }

  const FftArgs& a_;
  const FftKernels<R>& k_;
  Engine<R> engine_;
  bool paired_;  // an even number of reals, read as pairs
  typename FftPlan<R>::Ref plan_;
  Layout in_, out_;
};

}  // namespace

void fft_at(CpuLevel cpu, const FftArgs& args) {
  if (args.n == 0 || args.outer == 0 || args.inner == 0) return;
  const FftLevel& level = at_level(cpu, v2::fft_level, v3::fft_level, v4::fft_level);
  if (args.type == Element::c64)
    Lines<float>(args, level.f32).run();
  else
    Lines<double>(args, level.f64).run();
}

void fft(const FftArgs& args) { fft_at(cpu_level(), args); }

}  // namespace tn
