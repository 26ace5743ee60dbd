#include "runtime/gemm.h"

#include <algorithm>
#include <cstring>

#include "runtime/buffer.h"
#include "runtime/gemm_kernels.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kDepth = 768, kOneBlockDepth = 1024;  // of a K block; decides the bits
constexpr int64_t kRowsAtOnce = 1024;                   // rows of A that are packed together
constexpr int64_t kColumnsAtOnce = 3072;                // columns of B that are packed together
constexpr int64_t kRowBlock = 84;        // rows of a chunk: its part of A stays in L2
constexpr int64_t kPackFromRows = 160;   // fewer rows read a plain B in place
constexpr int64_t kChunkWork = 1 << 17;  // multiply-adds worth a chunk
constexpr int64_t kBatchWork = 1 << 22;  // from here on a product is worth all threads

int64_t up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// One product in the terms of the kernels.
template <class T>
struct Product {
  const GemmKernels<T>& kernels;
  int64_t m, n, k;
  GemmOperand a, b;
  T* c;
};

template <class T>
class Multiply {
 public:
  explicit Multiply(const Product<T>& product) : p_(product), u_(product.kernels) {}
  void run();

 private:
  void run_depth(int64_t k0, int64_t depth);
  void multiply_row(int64_t k0, int64_t depth);
  void pack_right();
  void pack_left();
  void run_chunk(int64_t row_begin, int64_t row_end, int64_t panel_begin, int64_t panel_end);
  void multiply_panel(int64_t row_begin, int64_t row_end, int64_t column, const T* right,
                      int64_t stride);

  int64_t panels() const { return chunks_for(columns_, u_.columns); }
  int64_t panel_columns(int64_t panel) const {
    return std::min(columns_ - panel * u_.columns, u_.columns);
  }
  int64_t width_for(int64_t columns) const { return columns <= u_.vector ? u_.vector : u_.columns; }
  // Rows are dealt out evenly to panels of at most the tile's height.
  int64_t left_panels() const { return chunks_for(rows_, u_.rows); }
  int64_t left_stride() const { return up(depth_ * u_.rows + u_.vector, 64 / sizeof(T)); }

  enum class Right { shared, local, in_place };

  const Product<T>& p_;
  const GemmKernels<T>& u_;
  // The block being multiplied.
  int64_t k0_ = 0, depth_ = 0, row0_ = 0, rows_ = 0, column0_ = 0, columns_ = 0;
  Right right_mode_ = Right::shared;
  T* left_ = nullptr;
  T* right_ = nullptr;
};

template <class T>
void Multiply<T>::run() {
  if (p_.k == 0) {
    std::memset(p_.c, 0, sizeof(T) * static_cast<size_t>(p_.m * p_.n));
    return;
  }
  int64_t blocks = p_.k <= kOneBlockDepth ? 1 : chunks_for(p_.k, kDepth);
  int64_t depth = up(chunks_for(p_.k, blocks), 2);
  for (int64_t k0 = 0; k0 < p_.k; k0 += depth) {
    if (p_.m == 1 && p_.b.form == GemmForm::plain && (p_.b.lane_stride == 1 || p_.b.k_stride == 1))
      multiply_row(k0, std::min(depth, p_.k - k0));
    else
      run_depth(k0, std::min(depth, p_.k - k0));
  }
}

template <class T>
void Multiply<T>::multiply_row(int64_t k0, int64_t depth) {
  alignas(64) T x[kOneBlockDepth + 64];
  const T* left = static_cast<const T*>(p_.a.data) + k0;
  if (p_.a.k_stride != 1) {
    u_.pack(p_.a, {k0, depth, 0, 1}, 1, x);
    left = x;
  }
  const T* b = static_cast<const T*>(p_.b.data) + k0 * p_.b.k_stride;
  int64_t chunks = std::min(chunks_for(p_.n * depth, kChunkWork), chunks_for(p_.n, 256));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(p_.n, chunks, chunk);
    int64_t lane = p_.b.lane_stride;
    if (lane == 1)
      u_.row(depth, left, b + begin, p_.b.k_stride, end - begin, p_.c + begin, k0 != 0);
    else
      u_.row_of_columns(depth, left, b + begin * lane, lane, end - begin, p_.c + begin, k0 != 0);
  });
}

template <class T>
void Multiply<T>::run_depth(int64_t k0, int64_t depth) {
  k0_ = k0;
  depth_ = depth;
  int64_t most_rows = std::min(p_.m, kRowsAtOnce), most_columns = std::min(p_.n, kColumnsAtOnce);
  rows_ = most_rows;
  BufferRef left = allocate(sizeof(T) * static_cast<size_t>(left_panels() * left_stride()));
  left_ = left.data<T>();
  bool plain = p_.b.form == GemmForm::plain && p_.b.lane_stride == 1;
  right_mode_ = plain && p_.m < kPackFromRows ? Right::in_place
                : p_.m <= kRowBlock           ? Right::local
                                              : Right::shared;
  BufferRef right;
  if (right_mode_ == Right::shared) {
    int64_t size = up(most_columns, u_.columns) * depth_ + u_.columns;
    right = allocate(sizeof(T) * static_cast<size_t>(size));
    right_ = right.data<T>();
  }
  for (column0_ = 0; column0_ < p_.n; column0_ += kColumnsAtOnce) {
    columns_ = std::min(p_.n - column0_, kColumnsAtOnce);
    if (right_mode_ == Right::shared) pack_right();
    for (row0_ = 0; row0_ < p_.m; row0_ += kRowsAtOnce) {
      rows_ = std::min(p_.m - row0_, kRowsAtOnce);
      if (column0_ == 0 || p_.m > kRowsAtOnce) pack_left();
      int64_t row_parts = chunks_for(rows_, kRowBlock);
      int64_t work = chunks_for(rows_ * columns_ * depth_, kChunkWork);
      int64_t column_parts = std::min(panels(), std::max<int64_t>(1, work / row_parts));
      column_parts = std::min(column_parts, chunks_for(panels(), row_parts > 1 ? 8 : 1));
      parallel_for(row_parts * column_parts, [&](int64_t chunk) {
        auto rows = chunk_range(left_panels(), row_parts, chunk / column_parts);
        auto columns = chunk_range(panels(), column_parts, chunk % column_parts);
        run_chunk(rows.begin, rows.end, columns.begin, columns.end);
      });
    }
  }
}

template <class T>
void Multiply<T>::pack_right() {
  int64_t chunks = std::min(panels(), chunks_for(columns_ * depth_, 1 << 14));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(panels(), chunks, chunk);
    for (int64_t panel = begin; panel < end; ++panel) {
      int64_t columns = panel_columns(panel);
      u_.pack(p_.b, {k0_, depth_, column0_ + panel * u_.columns, columns}, width_for(columns),
              right_ + panel * u_.columns * depth_);
    }
  });
}

template <class T>
void Multiply<T>::pack_left() {
  int64_t chunks = std::min(left_panels(), chunks_for(rows_ * depth_, 1 << 14));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(left_panels(), chunks, chunk);
    for (int64_t panel = begin; panel < end; ++panel) {
      auto rows = chunk_range(rows_, left_panels(), panel);
      int64_t count = rows.end - rows.begin;
      u_.pack(p_.a, {k0_, depth_, row0_ + rows.begin, count}, count, left_ + panel * left_stride());
    }
  });
}

template <class T>
void Multiply<T>::run_chunk(int64_t row_begin, int64_t row_end, int64_t panel_begin,
                            int64_t panel_end) {
  BufferRef local;
  if (right_mode_ != Right::shared)
    local = allocate(sizeof(T) * static_cast<size_t>((depth_ + 1) * u_.columns));
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    int64_t column = column0_ + panel * u_.columns, columns = panel_columns(panel);
    int64_t width = width_for(columns);
    if (right_mode_ == Right::shared) {
      multiply_panel(row_begin, row_end, column, right_ + panel * u_.columns * depth_, width);
    } else if (right_mode_ == Right::in_place && columns == width) {
      const T* b = static_cast<const T*>(p_.b.data) + k0_ * p_.b.k_stride + column;
      multiply_panel(row_begin, row_end, column, b, p_.b.k_stride);
    } else {
      u_.pack(p_.b, {k0_, depth_, column, columns}, width, local.data<T>());
      multiply_panel(row_begin, row_end, column, local.data<T>(), width);
    }
  }
}

template <class T>
void Multiply<T>::multiply_panel(int64_t row_begin, int64_t row_end, int64_t column, const T* right,
                                 int64_t stride) {
  constexpr int64_t kMostRows = 16, kMostColumns = 32;
  alignas(64) T edge[kMostRows * kMostColumns];
  int64_t columns = std::min(p_.n - column, u_.columns);
  int64_t width = width_for(columns);
  bool add = k0_ != 0;
  for (int64_t panel = row_begin; panel < row_end; ++panel) {
    auto rows = chunk_range(rows_, left_panels(), panel);
    int64_t count = rows.end - rows.begin;
    const T* left = left_ + panel * left_stride();
    T* c = p_.c + (row0_ + rows.begin) * p_.n + column;
    if (columns == width) {
      u_.tile(count, width, depth_, left, right, stride, c, p_.n, add);
      continue;
    }
    u_.tile(count, width, depth_, left, right, stride, edge, width, false);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        T sum = edge[i * width + j];
        c[i * p_.n + j] = add ? c[i * p_.n + j] + sum : sum;
      }
  }
}

struct OneProduct {
  const void *a, *b;
  void* c;
};

template <class T>
void multiply_floats(const GemmKernels<T>& kernels, const GemmArgs& g, const OneProduct& one,
                     GemmForm left, GemmForm right, T* c) {
  int64_t doubled = left == GemmForm::complex_left ? 2 : 1;
  Product<T> product{kernels,
                     g.m,
                     g.n * doubled,
                     g.k * doubled,
                     {one.a, g.a_col, g.a_row, left},
                     {one.b, g.b_row, g.b_col, right},
                     c};
  Multiply<T>(product).run();
}

void multiply_halves(const GemmLevel& level, const GemmArgs& g, const OneProduct& one) {
  GemmForm form = g.type == Element::f16 ? GemmForm::float16 : GemmForm::bfloat16;
  BufferRef sums = allocate(sizeof(float) * static_cast<size_t>(g.m * g.n));
  multiply_floats<float>(level.f32, g, one, form, form, sums.data<float>());
  int64_t chunks = chunks_for(g.m * g.n, 1 << 15);
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(g.m * g.n, chunks, chunk);
    level.simple.round(g.type, sums.data<float>() + begin, end - begin,
                       static_cast<uint16_t*>(one.c) + begin);
  });
}

void multiply_simple(const GemmLevel& level, const GemmArgs& g, const OneProduct& one) {
  int64_t chunks = std::min(chunks_for(g.m, 4), chunks_for(g.m * g.n * (g.k + 1), kChunkWork));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(g.m, chunks, chunk);
    level.simple.rows(g.type, begin, end, g.n, g.k, one.a, g.a_row, g.a_col, one.b, g.b_row,
                      g.b_col, one.c);
  });
}

void multiply_one(const GemmLevel& level, const GemmArgs& g, const OneProduct& one) {
  constexpr GemmForm plain = GemmForm::plain;
  constexpr GemmForm left = GemmForm::complex_left, right = GemmForm::complex_right;
  float* c32 = static_cast<float*>(one.c);
  double* c64 = static_cast<double*>(one.c);
  switch (g.type) {
    case Element::f32:
      return multiply_floats(level.f32, g, one, plain, plain, c32);
    case Element::f64:
      return multiply_floats(level.f64, g, one, plain, plain, c64);
    case Element::c64:
      return multiply_floats(level.f32, g, one, left, right, c32);
    case Element::c128:
      return multiply_floats(level.f64, g, one, left, right, c64);
    case Element::f16:
    case Element::bf16:
      return multiply_halves(level, g, one);
    default:
      return multiply_simple(level, g, one);
  }
}

/// The same product in a shape the kernels like better.
GemmArgs simplified(GemmArgs g) {
  // Rows of all batches against one B are one tall product.
  bool regular = !g.a_offsets && !g.b_offsets;
  if (g.m == 1) g.a_row = g.a_batch;
  if (regular && g.batch > 1 && g.b_batch == 0 && g.a_batch == g.m * g.a_row) {
    g.m *= g.batch;
    g.batch = 1;
  }
  // A single column is a single row of the transposed product. Complex B doubles its width, A does
  // not, so only there the two differ in the order of additions, and k alone must decide that.
  if (g.n == 1 && g.m > 1 && g.type != Element::c64 && g.type != Element::c128) {
    std::swap(g.a, g.b);
    std::swap(g.m, g.n);
    std::swap(g.a_row, g.b_col);
    std::swap(g.a_col, g.b_row);
    std::swap(g.a_batch, g.b_batch);
    std::swap(g.a_offsets, g.b_offsets);
  }
  return g;
}

}  // namespace

void gemm_at(CpuLevel cpu, const GemmArgs& args) {
  if (args.m <= 0 || args.n <= 0 || args.batch <= 0) return;
  const GemmLevel& level = at_level(cpu, v2::gemm_level, v3::gemm_level, v4::gemm_level);
  GemmArgs g = simplified(args);
  int64_t bytes = static_cast<int64_t>(element_bytes(g.type));
  auto run = [&](int64_t i) {
    int64_t a = g.a_offsets ? g.a_offsets[i] : i * g.a_batch;
    int64_t b = g.b_offsets ? g.b_offsets[i] : i * g.b_batch;
    multiply_one(
        level, g,
        {static_cast<const char*>(g.a) + a * bytes, static_cast<const char*>(g.b) + b * bytes,
         static_cast<char*>(g.c) + i * g.m * g.n * bytes});
  };
  int64_t work = g.m * g.n * (g.k + 1);
  if (g.batch == 1 || work >= kBatchWork) {
    for (int64_t i = 0; i < g.batch; ++i) run(i);
    return;
  }
  int64_t chunks = std::min(g.batch, chunks_for(g.batch * work, kChunkWork));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(g.batch, chunks, chunk);
    for (int64_t i = begin; i < end; ++i) run(i);
  });
}

void gemm(const GemmArgs& args) { gemm_at(cpu_level(), args); }

}  // namespace tn
