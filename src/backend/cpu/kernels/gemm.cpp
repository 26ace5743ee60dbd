#include "backend/cpu/kernels/gemm.h"

#include <algorithm>
#include <utility>

#include "backend/cpu/kernels/gemm_amx.h"
#include "backend/cpu/kernels/gemm_blocks.h"
#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kBatchWork = 1 << 22;    // from here on a product is worth all threads
constexpr int64_t kAmxDepth = 32;          // k from which tiles are filled
constexpr int64_t kPackedLeast = 1 << 14;  // elements of B that are worth a copy in packed order

bool is_half(Element type) { return type == Element::f16 || type == Element::bf16; }
bool is_complex(Element type) { return type == Element::c64 || type == Element::c128; }

/// The kernels in use.
struct Kernels {
  const GemmLevel& level;
  const GemmKernels<float>* amx;  // may be null

  explicit Kernels(CpuLevel cpu, const GemmKernels<float>* tiles = nullptr)
      : level(at_level(cpu, v2::gemm_level, v3::gemm_level, v4::gemm_level)), amx(tiles) {}
  static Kernels best() { return Kernels(cpu_level(), amx_kernels()); }
  const GemmKernels<float>& of_bf16(int64_t k) const {
    return amx && k >= kAmxDepth ? *amx : level.f32;
  }
};

/// The caller's products in a shape the kernels like better, and the way back.
struct Task {
  Kernels kernels;
  GemmArgs g;
  bool merged = false, swapped = false;
  int64_t batch_rows = 0;  // rows of one batch of the caller
  int64_t c_bytes = 0;     // of an element of C

  Task(const Kernels& with, const GemmArgs& args);
  void merge_batches();
  void swap_sides();
  void finish(int64_t batch, KernelTile tile) const;
};

Task::Task(const Kernels& with, const GemmArgs& args) : kernels(with), g(args), batch_rows(args.m) {
  if (!g.c_row) g.c_row = g.n;
  if (!g.c_batch) g.c_batch = g.m * g.c_row;
  c_bytes = static_cast<int64_t>(element_bytes(g.wide_c ? Element::f32 : g.type));
  merge_batches();
  // A single column is a single row of the transposed product. Complex B doubles its width, A does
  // not, so only there the two differ in the order of additions, and k alone must decide that.
  if (g.n == 1 && g.m > 1 && g.c_row == 1 && !g.packed_b && !is_complex(g.type)) swap_sides();
}

/// Rows of all batches against one B are one tall product.
void Task::merge_batches() {
  bool regular = !g.a_offsets && !g.b_offsets;
  if (g.m == 1) g.a_row = g.a_batch, g.c_row = g.c_batch;
  if (!regular || g.batch == 1 || g.b_batch != 0 || g.a_batch != g.m * g.a_row ||
      g.c_batch != g.m * g.c_row)
    return;
  merged = true;
  g.m *= std::exchange(g.batch, 1);
}

void Task::swap_sides() {
  swapped = true;
  std::swap(g.a, g.b);
  std::swap(g.m, g.n);
  std::swap(g.a_row, g.b_col);
  std::swap(g.a_col, g.b_row);
  std::swap(g.a_batch, g.b_batch);
  std::swap(g.a_offsets, g.b_offsets);
}

/// Calls the epilogue with a finished block in the caller's terms.
void Task::finish(int64_t batch, KernelTile tile) const {
  tile.batch = batch;
  if (swapped) std::swap(tile.row0, tile.column0), std::swap(tile.row1, tile.column1);
  if (!merged) return g.epilogue.run(g.epilogue.data, tile);
  for (int64_t begin = tile.row0, end = tile.row1; begin < end;) {
    tile.batch = begin / batch_rows;
    int64_t first = tile.batch * batch_rows, last = std::min(end, first + batch_rows);
    tile.row0 = begin - first, tile.row1 = last - first;
    g.epilogue.run(g.epilogue.data, tile);
    begin = last;
  }
}

using Finish = FunctionRef<void(const KernelTile&)>;

struct OneProduct {
  const void *a, *b;
  void* c;
  int64_t c_row;
};

template <class T>
Product<T> product_of(const GemmKernels<T>& kernels, const GemmArgs& g, const OneProduct& one,
                      GemmForm left, GemmForm right) {
  int64_t doubled = left == GemmForm::complex_left ? 2 : 1;
  return {.kernels = kernels,
          .m = g.m,
          .n = g.n * doubled,
          .k = g.k * doubled,
          .a = {one.a, g.a_col, g.a_row, left},
          .b = {one.b, g.b_row, g.b_col, right},
          .c = static_cast<T*>(one.c),
          .c_row = one.c_row * doubled,
          .packed_b = static_cast<const T*>(g.packed_b),
          .left_room = static_cast<T*>(g.left_room),
          .right_room = static_cast<T*>(g.right_room),
          .right_size = g.right_bytes / static_cast<int64_t>(sizeof(T))};
}

/// The f32 or f64 product that an element type comes to. Half precision sums into f32.
template <class Body>
void with_floats(const Kernels& kernels, const GemmArgs& g, const OneProduct& one, Body body) {
  const GemmLevel& level = kernels.level;
  constexpr GemmForm plain = GemmForm::plain;
  constexpr GemmForm left = GemmForm::complex_left, right = GemmForm::complex_right;
  if (g.type == Element::f32) return body(product_of(level.f32, g, one, plain, plain));
  if (g.type == Element::f64) return body(product_of(level.f64, g, one, plain, plain));
  if (g.type == Element::c64) return body(product_of(level.f32, g, one, left, right));
  if (g.type == Element::c128) return body(product_of(level.f64, g, one, left, right));
  invariant(is_half(g.type), "gemm: not a float");
  GemmForm half = g.type == Element::f16 ? GemmForm::float16 : GemmForm::bfloat16;
  body(product_of(half == GemmForm::bfloat16 ? kernels.of_bf16(g.k) : level.f32, g, one, half,
                  half));
}

void multiply_floats(const Task& t, const OneProduct& one, const Finish* finish) {
  with_floats(t.kernels, t.g, one, [&](auto product) {
    auto halved = [&](KernelTile tile) {
      tile.column0 /= 2, tile.column1 /= 2;
      (*finish)(tile);
    };
    Finish of_pairs = halved;
    product.finish = finish && is_complex(t.g.type) ? &of_pairs : finish;
    multiply(product);
  });
}

/// Sums in f32, rounded block by block.
void multiply_halves(const Task& t, OneProduct one, const Finish* finish) {
  const GemmArgs& g = t.g;
  if (g.wide_c) return multiply_floats(t, one, finish);
  BufferRef sums = allocate(sizeof(float) * static_cast<size_t>(g.m * g.n));
  auto* c = static_cast<uint16_t*>(one.c);
  auto round = [&](const KernelTile& tile) {
    for (int64_t row = tile.row0; row < tile.row1; ++row) {
      const float* from = sums.data<float>() + row * g.n + tile.column0;
      t.kernels.level.simple.round(g.type, from, tile.column1 - tile.column0,
                                   c + row * g.c_row + tile.column0);
    }
    if (finish) (*finish)(tile);
  };
  Finish rounded = round;
  one.c = sums.data(), one.c_row = g.n;
  multiply_floats(t, one, &rounded);
}

void multiply_simple(const Task& t, const OneProduct& one, const Finish* finish) {
  const GemmArgs& g = t.g;
  int64_t chunks = std::min(chunks_for(g.m, 4), chunks_for(g.m * g.n * (g.k + 1), kChunkWork));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(g.m, chunks, chunk);
    t.kernels.level.simple.rows({.type = g.type,
                                 .row0 = begin,
                                 .row1 = end,
                                 .n = g.n,
                                 .k = g.k,
                                 .a = one.a,
                                 .b = one.b,
                                 .c = one.c,
                                 .a_row = g.a_row,
                                 .a_col = g.a_col,
                                 .b_row = g.b_row,
                                 .b_col = g.b_col,
                                 .c_row = g.c_row});
    if (finish) (*finish)({.row0 = begin, .row1 = end, .column1 = g.n});
  });
}

void multiply_batch(const Task& t, int64_t i) {
  const GemmArgs& g = t.g;
  int64_t bytes = static_cast<int64_t>(element_bytes(g.type));
  int64_t a = g.a_offsets ? g.a_offsets[i] : i * g.a_batch;
  int64_t b = g.b_offsets ? g.b_offsets[i] : i * g.b_batch;
  OneProduct one{static_cast<const char*>(g.a) + a * bytes,
                 static_cast<const char*>(g.b) + b * bytes,
                 static_cast<char*>(g.c) + i * g.c_batch * t.c_bytes, g.c_row};
  auto finish = [&](const KernelTile& tile) { t.finish(i, tile); };
  Finish call = finish;
  const Finish* given = g.epilogue.run ? &call : nullptr;
  if (is_half(g.type))
    multiply_halves(t, one, given);
  else if (g.type == Element::f32 || g.type == Element::f64 || is_complex(g.type))
    multiply_floats(t, one, given);
  else
    multiply_simple(t, one, given);
}

}  // namespace

/// Whether the products of a batch are made one after the other, by all threads.
static bool goes_in_order(const GemmArgs& g) {
  return g.batch == 1 || g.m * g.n * (g.k + 1) >= kBatchWork;
}

static void run(const Kernels& kernels, const GemmArgs& args) {
  if (args.m <= 0 || args.n <= 0 || args.batch <= 0) return;
  invariant(!args.wide_c || is_half(args.type), "gemm: only sums of halves are wider than C");
  Task t(kernels, args);
  int64_t work = t.g.m * t.g.n * (t.g.k + 1);
  if (goes_in_order(t.g)) {
    for (int64_t i = 0; i < t.g.batch; ++i) multiply_batch(t, i);
    return;
  }
  t.g.left_room = t.g.right_room = nullptr, t.g.right_bytes = 0;  // for one product at a time
  int64_t chunks = std::min(t.g.batch, chunks_for(t.g.batch * work, kChunkWork));
  parallel_for(chunks, t.g.batch * work / kMultiplyRate / chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(t.g.batch, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) multiply_batch(t, i);
  });
}

void gemm(const GemmArgs& args) { run(Kernels::best(), args); }

void gemm_at(CpuLevel level, const GemmArgs& args) { run(Kernels(level), args); }

GemmRoom room_of(const GemmArgs& args) {
  GemmRoom room;
  if (args.m <= 0 || args.n <= 0 || args.batch <= 0) return room;
  Task t(Kernels::best(), args);
  Element type = args.type;
  bool packs = type == Element::f32 || type == Element::f64 || is_complex(type) || is_half(type);
  if (packs && goes_in_order(t.g))
    with_floats(t.kernels, t.g, {}, [&](auto product) {
      PackedSizes sizes = packed_sizes(product);
      auto bytes = static_cast<int64_t>(sizeof *product.c);
      room = {sizes.left * bytes, sizes.right * bytes};
    });
  return room;
}

int64_t packed_bytes(const GemmArgs& args) {
  const GemmArgs& g = args;
  bool shared = g.batch == 1 || (g.b_batch == 0 && !g.b_offsets);
  bool packs = g.type == Element::f32 || g.type == Element::f64 || is_half(g.type);
  // One row reads B once, in order: nothing is gained. So with a single column, a row in disguise.
  if (!packs || !shared || g.m * g.batch <= 1 || g.n <= 1 || g.n * g.k < kPackedLeast) return 0;
  int64_t bytes = 0;
  with_floats(Kernels::best(), g, {}, [&](auto product) {
    bytes = packed_size(product) * static_cast<int64_t>(sizeof *product.c);
  });
  return bytes;
}

void pack_right(const GemmArgs& args, void* out, CpuLevel level) {
  invariant(packed_bytes(args) > 0, "gemm: a right side that is not worth packing");
  with_floats(level == cpu_level() ? Kernels::best() : Kernels(level), args,
              {args.a, args.b, nullptr, 0},
              [&](auto product) { pack_right(product, static_cast<decltype(product.c)>(out)); });
}

bool unpack_right(CpuLevel level, const GemmArgs& args, std::span<const std::byte> packed,
                  void* b) {
  if (args.type != Element::f32 && args.type != Element::f64) return false;
  bool enough = false;
  with_floats(Kernels(level), args, {args.a, b, nullptr, 0}, [&]<class T>(Product<T> product) {
    enough = packed.size() >= sizeof(T) * static_cast<size_t>(packed_size(product));
    if (enough && b)
      unpack_right(product, reinterpret_cast<const T*>(packed.data()), static_cast<T*>(b));
  });
  return enough;
}

}  // namespace tn
