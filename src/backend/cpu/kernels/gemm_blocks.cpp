#include "backend/cpu/kernels/gemm_blocks.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/gemm.h"
#include "base/integers.h"
#include "loop/reduction_tree.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr int64_t kRowsAtOnce = 1024;        // rows of A that are packed together
constexpr int64_t kColumnsAtOnce = 3072;     // columns of B that are packed together
constexpr int64_t kRowBlock = 168;           // rows of a chunk: its part of A stays in L2
constexpr int64_t kFinishBytes = 128 << 10;  // of C between two calls of `finish`: still in L2
constexpr int64_t kLeftBytes = 256 << 10;    // of A beside a panel of B in L2
constexpr int64_t kRightBytes = 32 << 10;    // of a B that every thread may pack for itself
constexpr int64_t kPackFromRows = 160;       // fewer rows read a plain B in place
constexpr int64_t kPackFromColumns = 385;    // fewer columns read a plain A in place
constexpr int64_t kWantedChunks = 96;        // enough for many threads to end together
constexpr int64_t kLeastPanels = 2;          // of B to a chunk, for one reading of its rows of A
// Elements in a nanosecond: whether a sleeping thread is worth waking.
constexpr int64_t kPackRate = 2, kReadRate = 4;
constexpr int64_t kPackWork = 1 << 13;  // packed elements worth a chunk

/// Nanoseconds of one of `chunks`.
int64_t chunk_time(int64_t work, int64_t rate, int64_t chunks) {
  return work / rate / std::max<int64_t>(1, chunks);
}

template <class T>
int64_t whole_k(const Product<T>& p) {
  return p.whole_k ? p.whole_k : p.k;
}
template <class T>
int64_t whole_n(const Product<T>& p) {
  return p.whole_n ? p.whole_n : p.n;
}
template <class T>
int64_t block_depth(const Product<T>& p) {
  return loop::product_depth(whole_k(p));
}

template <class T>
class Multiply {
 public:
  explicit Multiply(const Product<T>& product) : p_(product), u_(product.kernels) {}
  void run();
  PackedSizes packed_sizes();
  void pack_all(T* out);
  void unpack_all(const T* packed, T* b);

 private:
  PackedSizes choose_packing();
  void clear();
  bool is_row() const;
  bool reads_left_in_place() const;
  void multiply_row();
  void multiply_depth();
  void multiply_rows();
  void pack_right();
  void pack_left();
  void run_chunk(ChunkRange row_panels, ChunkRange panels);
  void multiply_shared(ChunkRange row_panels, int64_t panel);
  void multiply_panel(ChunkRange row_panels, int64_t column, const T* right, int64_t stride,
                      T* packed = nullptr);
  void finish(ChunkRange row_panels, int64_t column_begin, int64_t column_end);

  int64_t panels() const { return chunks_for(columns_, u_.columns); }
  int64_t panel_columns(int64_t panel) const {
    return std::min(columns_ - panel * u_.columns, u_.columns);
  }
  int64_t width_for(int64_t columns) const { return columns <= u_.vector ? u_.vector : u_.columns; }
  // Rows are dealt out evenly to panels of at most the tile's height.
  int64_t left_panels() const { return chunks_for(rows_, u_.rows); }
  int64_t left_stride() const {
    return round_up(packed_depth() * u_.rows + u_.vector, 64 / sizeof(T));
  }
  int64_t packed_depth() const { return u_.packed_depth(depth_); }
  ChunkRange rows_of(ChunkRange row_panels) const {
    return {row0_ + chunk_range(rows_, left_panels(), row_panels.begin).begin,
            row0_ + chunk_range(rows_, left_panels(), row_panels.end - 1).end};
  }
  bool plain_right() const { return p_.b.form == GemmForm::plain && p_.b.lane_stride == 1; }
  const T* plain_right_at(int64_t column) const {
    return static_cast<const T*>(p_.b.data) + k0_ * p_.b.k_stride + column;
  }
  int64_t panel_size() const { return packed_depth() * width_for(std::min(p_.n, u_.columns)); }
  T* local_panel(BufferRef& allocated) const;
  bool last_depth() const { return k0_ + depth_ == p_.k; }

  enum class Right { shared, local, in_place };

  const Product<T>& p_;
  const GemmKernels<T>& u_;
  // The block being multiplied.
  int64_t k0_ = 0, depth_ = 0, row0_ = 0, rows_ = 0, column0_ = 0, columns_ = 0;
  Right right_mode_ = Right::shared;
  bool left_in_place_ = false;
  T* left_ = nullptr;
  T* packed_right_ = nullptr;  // the panels of this block when they are shared
};

template <class T>
void Multiply<T>::run() {
  if (p_.k == 0) return clear();
  bool row = is_row();
  for (k0_ = 0; k0_ < p_.k; k0_ += block_depth(p_)) {
    depth_ = std::min(block_depth(p_), p_.k - k0_);
    row ? multiply_row() : multiply_depth();
  }
}

template <class T>
bool Multiply<T>::is_row() const {
  return p_.m == 1 && !p_.packed_b && p_.b.form == GemmForm::plain &&
         (p_.b.lane_stride == 1 || p_.b.k_stride == 1);
}

/// Of the first K block, the longest.
template <class T>
PackedSizes Multiply<T>::packed_sizes() {
  if (p_.k == 0 || is_row()) return {};
  depth_ = std::min(block_depth(p_), p_.k);
  return choose_packing();
}

/// Sums of nothing.
template <class T>
void Multiply<T>::clear() {
  int64_t chunks = std::min(p_.m, chunks_for(p_.m * p_.n, kPackWork));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(p_.m, chunks, chunk);
    for (int64_t row = begin; row < end; ++row) std::fill_n(p_.c + row * p_.c_row, p_.n, T{0});
    if (p_.finish) (*p_.finish)({.row0 = begin, .row1 = end, .column1 = p_.n});
  });
}

template <class T>
void Multiply<T>::multiply_row() {
  alignas(64) T x[loop::kOneBlockDepth + 64];
  const T* left = static_cast<const T*>(p_.a.data) + k0_;
  if (p_.a.k_stride != 1) {
    u_.pack_left(p_.a, {k0_, depth_, 0, 1}, 1, x);
    left = x;
  }
  const T* b = static_cast<const T*>(p_.b.data) + k0_ * p_.b.k_stride;
  int64_t chunks = std::min(chunks_for(p_.n * depth_, kChunkWork), chunks_for(p_.n, 256));
  parallel_for(chunks, chunk_time(p_.n * depth_, kReadRate, chunks), [&](int64_t chunk) {
    auto [begin, end] = chunk_range(p_.n, chunks, chunk);
    int64_t lane = p_.b.lane_stride;
    if (lane == 1)
      u_.row(depth_, left, b + begin, p_.b.k_stride, end - begin, p_.c + begin, k0_ != 0);
    else
      u_.row_of_columns(depth_, left, b + begin * lane, lane, end - begin, p_.c + begin, k0_ != 0);
    if (p_.finish && last_depth()) (*p_.finish)({.row1 = 1, .column0 = begin, .column1 = end});
  });
}

/// How both sides are read at the depth of this block.
template <class T>
PackedSizes Multiply<T>::choose_packing() {
  PackedSizes packed;
  rows_ = std::min(p_.m, kRowsAtOnce);
  left_in_place_ = reads_left_in_place();
  if (!left_in_place_) packed.left = left_panels() * left_stride();
  bool plain = plain_right();
  right_mode_ = p_.packed_b                      ? Right::shared
                : plain && p_.m < kPackFromRows  ? Right::in_place
                : plain || p_.m <= 2 * kRowBlock ? Right::local
                                                 : Right::shared;
  if (right_mode_ == Right::shared && !p_.packed_b)
    packed.right = round_up(std::min(p_.n, kColumnsAtOnce), u_.columns) * packed_depth();
  if (right_mode_ == Right::local) packed.right = num_threads() * panel_size();
  return packed;
}

template <class T>
void Multiply<T>::multiply_depth() {
  PackedSizes packed = choose_packing();
  BufferRef left, right;
  auto room = [](T* given, int64_t size, BufferRef& own) {
    if (!given && size) own = allocate(sizeof(T) * static_cast<size_t>(size));
    return own ? own.data<T>() : given;
  };
  left_ = room(p_.left_room, packed.left, left);
  if (right_mode_ == Right::shared) packed_right_ = room(p_.right_room, packed.right, right);
  for (column0_ = 0; column0_ < p_.n; column0_ += kColumnsAtOnce) {
    columns_ = std::min(p_.n - column0_, kColumnsAtOnce);
    if (right_mode_ == Right::shared && !p_.packed_b) pack_right();
    for (row0_ = 0; row0_ < p_.m; row0_ += kRowsAtOnce) {
      rows_ = std::min(p_.m - row0_, kRowsAtOnce);
      if (!left_in_place_ && (column0_ == 0 || p_.m > kRowsAtOnce)) pack_left();
      multiply_rows();
    }
  }
}

/// Packing A pays when enough columns use it, or when its rows would share one set of L1.
template <class T>
bool Multiply<T>::reads_left_in_place() const {
  constexpr int64_t kSetBytes = 4096;
  bool plain = p_.a.form == GemmForm::plain && u_.k_per_element == 1;
  if (!plain || p_.n >= kPackFromColumns) return false;
  if (p_.a.lane_stride == 1) return true;
  return p_.a.k_stride == 1 && p_.a.lane_stride * static_cast<int64_t>(sizeof(T)) % kSetBytes != 0;
}

template <class T>
void Multiply<T>::multiply_rows() {
  int64_t work = chunks_for(rows_ * columns_ * depth_, kChunkWork);
  // An even number: two halves of the threads, however many, then share no rows of A.
  int64_t row_parts = round_up(chunks_for(rows_, kRowBlock), 2);
  if (rows_ <= kRowBlock) row_parts = panels() > 1 ? 1 : std::min({row_parts, left_panels(), work});
  int64_t column_parts =
      std::min({chunks_for(panels(), row_parts > 1 ? kLeastPanels : 1),
                chunks_for(kWantedChunks, row_parts), std::max<int64_t>(1, work / row_parts)});
  int64_t chunks = row_parts * column_parts;
  // The side that all threads pack for all of them is better the shorter one: each line of it is
  // moved between their caches. Where each packs B for itself, threads better share none of it,
  // if all of A stays in L2. A small B is as good as shared: what counts then are whole rows of C,
  // which who reads C later divides in the same way.
  int64_t line = depth_ * static_cast<int64_t>(sizeof(T));
  bool keeps_left = rows_ * line <= kLeftBytes, small_right = columns_ * line <= kRightBytes;
  bool packs_own = right_mode_ == Right::local && keeps_left && !small_right;
  bool own_columns = right_mode_ == Right::shared || packs_own;
  bool by_columns = own_columns && !p_.packed_b && columns_ > rows_;
  parallel_for(chunks, chunk_time(rows_ * columns_ * depth_, kMultiplyRate, chunks),
               [&](int64_t chunk) {
                 if (u_.enter) u_.enter();
                 int64_t row = by_columns ? chunk % row_parts : chunk / column_parts;
                 int64_t column = by_columns ? chunk / row_parts : chunk % column_parts;
                 run_chunk(chunk_range(left_panels(), row_parts, row),
                           chunk_range(panels(), column_parts, column));
                 if (u_.leave) u_.leave();
               });
}

template <class T>
void Multiply<T>::pack_right() {
  int64_t chunks = std::min(panels(), chunks_for(columns_ * depth_, kPackWork));
  parallel_for(chunks, chunk_time(columns_ * depth_, kPackRate, chunks), [&](int64_t chunk) {
    auto [begin, end] = chunk_range(panels(), chunks, chunk);
    for (int64_t panel = begin; panel < end; ++panel) {
      int64_t columns = panel_columns(panel);
      u_.pack_right(p_.b, {k0_, depth_, column0_ + panel * u_.columns, columns}, width_for(columns),
                    packed_right_ + panel * u_.columns * packed_depth());
    }
  });
}

template <class T>
void Multiply<T>::pack_all(T* out) {
  columns_ = p_.n;
  for (k0_ = 0; k0_ < p_.k; k0_ += block_depth(p_)) {
    depth_ = std::min(block_depth(p_), p_.k - k0_);
    packed_right_ = out + u_.packed_depth(k0_) * round_up(p_.n, u_.columns);
    pack_right();
  }
}

template <class T>
void Multiply<T>::unpack_all(const T* packed, T* b) {
  columns_ = p_.n;
  parallel_for(panels(), [&](int64_t panel) {
    int64_t columns = panel_columns(panel), width = width_for(columns);
    for (int64_t k = 0; k < p_.k; ++k) {
      int64_t k0 = k / block_depth(p_) * block_depth(p_);
      int64_t depth = std::min(block_depth(p_), p_.k - k0);
      const T* row =
          packed + k0 * round_up(p_.n, u_.columns) + panel * u_.columns * depth + (k - k0) * width;
      T* to = b + k * p_.b.k_stride + panel * u_.columns * p_.b.lane_stride;
      for (int64_t lane = 0; lane < columns; ++lane) to[lane * p_.b.lane_stride] = row[lane];
    }
  });
}

template <class T>
void Multiply<T>::pack_left() {
  int64_t chunks = std::min(left_panels(), chunks_for(rows_ * depth_, kPackWork));
  parallel_for(chunks, chunk_time(rows_ * depth_, kPackRate, chunks), [&](int64_t chunk) {
    auto [begin, end] = chunk_range(left_panels(), chunks, chunk);
    for (int64_t panel = begin; panel < end; ++panel) {
      auto rows = chunk_range(rows_, left_panels(), panel);
      int64_t count = rows.end - rows.begin;
      u_.pack_left(p_.a, {k0_, depth_, row0_ + rows.begin, count}, count,
                   left_ + panel * left_stride());
    }
  });
}

/// Where this thread packs a panel of B: always the same place, which stays in its caches.
template <class T>
T* Multiply<T>::local_panel(BufferRef& allocated) const {
  int64_t at = thread_number() * panel_size();
  if (right_mode_ == Right::local && at + panel_size() <= p_.right_size) return p_.right_room + at;
  if (!allocated) allocated = allocate(sizeof(T) * static_cast<size_t>(panel_size()));
  return allocated.data<T>();
}

template <class T>
void Multiply<T>::run_chunk(ChunkRange row_panels, ChunkRange panels) {
  BufferRef allocated;
  int64_t unfinished = panels.begin;  // the first panel that `finish` has not seen
  int64_t finish_panels = std::max<int64_t>(
      1, kFinishBytes / (static_cast<int64_t>(sizeof(T)) * kRowBlock * u_.columns));
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    int64_t column = column0_ + panel * u_.columns, columns = panel_columns(panel);
    int64_t width = width_for(columns);
    if (right_mode_ == Right::shared) {
      multiply_shared(row_panels, panel);
    } else if (right_mode_ == Right::in_place && columns == width) {
      multiply_panel(row_panels, column, plain_right_at(column), p_.b.k_stride);
    } else {
      T* packed = local_panel(allocated);
      bool lanes = !left_in_place_ || p_.a.lane_stride == 1;
      if (plain_right() && columns == u_.columns && lanes) {
        multiply_panel(row_panels, column, plain_right_at(column), p_.b.k_stride, packed);
      } else {
        u_.pack_right(p_.b, {k0_, depth_, column, columns}, width, packed);
        multiply_panel(row_panels, column, packed, width);
      }
    }
    bool enough = panel + 1 == panels.end || panel + 1 - unfinished == finish_panels;
    if (p_.finish && last_depth() && enough) {
      finish(row_panels, column0_ + unfinished * u_.columns, column + columns);
      unfinished = panel + 1;
    }
  }
}

/// A panel that was packed now, or before any product: then it may be of a longer one.
template <class T>
void Multiply<T>::multiply_shared(ChunkRange row_panels, int64_t panel) {
  int64_t column = column0_ + panel * u_.columns;
  if (!p_.packed_b) {
    const T* right = packed_right_ + panel * u_.columns * packed_depth();
    return multiply_panel(row_panels, column, right, width_for(panel_columns(panel)));
  }
  int64_t depth = std::min(block_depth(p_), whole_k(p_) - k0_);
  const T* right = p_.packed_b + u_.packed_depth(k0_) * round_up(whole_n(p_), u_.columns) +
                   column * u_.packed_depth(depth);
  multiply_panel(row_panels, column, right, width_for(whole_n(p_) - column));
}

template <class T>
void Multiply<T>::finish(ChunkRange row_panels, int64_t column_begin, int64_t column_end) {
  auto [begin, end] = rows_of(row_panels);
  (*p_.finish)({.row0 = begin, .row1 = end, .column0 = column_begin, .column1 = column_end});
}

template <class T>
void Multiply<T>::multiply_panel(ChunkRange row_panels, int64_t column, const T* right,
                                 int64_t stride, T* packed) {
  int64_t row = row0_ + chunk_range(rows_, left_panels(), row_panels.begin).begin;
  int64_t least = rows_ / left_panels(), taller = rows_ % left_panels();
  GemmTile<T> tile{.rows = 0,
                   .columns = std::min(p_.n - column, u_.columns),
                   .depth = depth_,
                   .a = nullptr,
                   .a_lane = left_in_place_ ? p_.a.lane_stride : 1,
                   .a_k = p_.a.k_stride,
                   .b = right,
                   .b_row = stride,
                   .c = nullptr,
                   .c_row = p_.c_row,
                   .add = k0_ != 0,
                   .packed_b = packed};
  for (int64_t panel = row_panels.begin; panel < row_panels.end; ++panel, row += tile.rows) {
    tile.rows = least + (panel < taller);
    tile.c = p_.c + row * p_.c_row + column;
    if (left_in_place_)
      tile.a = static_cast<const T*>(p_.a.data) + row * p_.a.lane_stride + k0_ * p_.a.k_stride;
    else
      tile.a = left_ + panel * left_stride(), tile.a_k = tile.rows;
    u_.tile(tile);
    if (packed) tile.b = packed, tile.b_row = u_.columns, tile.packed_b = nullptr;
  }
}

}  // namespace

template <class T>
void multiply(const Product<T>& product) {
  Multiply<T>(product).run();
}

template <class T>
PackedSizes packed_sizes(const Product<T>& product) {
  return Multiply<T>(product).packed_sizes();
}

template <class T>
int64_t packed_size(const Product<T>& p) {
  return p.kernels.packed_depth(p.k) * round_up(p.n, p.kernels.columns);
}

template <class T>
void pack_right(const Product<T>& product, T* out) {
  Multiply<T>(product).pack_all(out);
}

template <class T>
void unpack_right(const Product<T>& product, const T* packed, T* b) {
  Multiply<T>(product).unpack_all(packed, b);
}

template void multiply(const Product<float>&);
template void multiply(const Product<double>&);
template PackedSizes packed_sizes(const Product<float>&);
template PackedSizes packed_sizes(const Product<double>&);
template int64_t packed_size(const Product<float>&);
template int64_t packed_size(const Product<double>&);
template void pack_right(const Product<float>&, float*);
template void pack_right(const Product<double>&, double*);
template void unpack_right(const Product<float>&, const float*, float*);
template void unpack_right(const Product<double>&, const double*, double*);

}  // namespace tn
