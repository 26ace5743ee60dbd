#pragma once
// The tile loop of products and convolutions: each result is a chain of fused multiply-adds with
// ascending k, restarted at blocks of the sum whose results are added in order, as on the CPU.
#include "backend/cuda/prebuilt/gpu_copies.h"
#include "backend/cuda/prebuilt/gpu_numbers.h"
#include "backend/cuda/prebuilt/product_tail_steps.cuh"
#include "backend/cuda/prebuilt/tile_forms.h"

#define TN_INLINE __attribute__((always_inline))

/// Up to 16 bytes of shared memory.
template <class Sum, int Count>
struct alignas(sizeof(Sum) * Count) SumVector {
  Sum at[Count];
};
#if defined(__NVPTX__)
/// A place in shared memory.
using NearPlace = uint32;
inline NearPlace place_of(const void* at) { return shared_address(at); }
// LLVM would load the elements one by one.
template <int Count, class Sum>
TN_INLINE inline SumVector<Sum, Count> load_vector_at(NearPlace place) {
  SumVector<Sum, Count> made;
  if constexpr (sizeof(Sum) * Count == 4) {
    uint32 a;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(place) : "memory");
    made.at[0] = __builtin_bit_cast(Sum, a);
  } else if constexpr (sizeof(Sum) == 4 && Count == 2) {
    uint32 a, b;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(place) : "memory");
    made.at[0] = __builtin_bit_cast(Sum, a), made.at[1] = __builtin_bit_cast(Sum, b);
  } else if constexpr (sizeof(Sum) == 4) {
    uint32 a, b, c, d;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(place)
                 : "memory");
    made.at[0] = __builtin_bit_cast(Sum, a), made.at[1] = __builtin_bit_cast(Sum, b);
    made.at[2] = __builtin_bit_cast(Sum, c), made.at[3] = __builtin_bit_cast(Sum, d);
  } else {
    static_assert(Count == 2);
    uint64 a, b;
    asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "r"(place) : "memory");
    made.at[0] = __builtin_bit_cast(Sum, a), made.at[1] = __builtin_bit_cast(Sum, b);
  }
  return made;
}
#else
using NearPlace = const char*;
inline NearPlace place_of(const void* at) { return static_cast<const char*>(at); }
template <int Count, class Sum>
inline SumVector<Sum, Count> load_vector_at(NearPlace from) {
  SumVector<Sum, Count> made;
  __builtin_memcpy(&made, from, sizeof made);
  return made;
}
#endif
template <int Count, class Sum>
TN_INLINE inline SumVector<Sum, Count> load_vector(const Sum* from) {
  return load_vector_at<Count, Sum>(place_of(from));
}

/// `x`. What is computed from it is computed where it is used: kept in registers, it would take
/// those of the sums.
inline int computed_here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

template <class A, class B>
constexpr bool kIsSame = false;
template <class A>
constexpr bool kIsSame<A, A> = true;

/// Where the operands and the result of a batch begin, and the first row and column of a tile.
template <class Memory>
struct TileBase {
  const Memory* left;
  const Memory* right;
  Memory* out;
  int64 row, column;
};

/// How far elements of an operand are apart that are neighbours along its rows, and along k.
struct Strides {
  int64 row, k;
};
/// Where all pieces of a tile's operands lie alike, a copy begins at the last one's address plus a
/// number: what each thread copies first of the first piece, and how far the rest is from there,
/// in bytes. For the left and the right operand.
struct TileSteps {
  uint64 first[2][256];  // by thread that copies
  int64 more[2];         // to the next copy of the same piece by the same thread
  int64 next[2];         // to the next piece
  int64 is_even;
};
struct NoSteps {};
template <bool HasSteps>
struct StepsOf {
  using Type = TileSteps;
};
template <>
struct StepsOf<false> {
  using Type = NoSteps;
};

/// Tiles of form `Form` of a problem, which says what its elements are (Number), where a row, a
/// column and an element of the sums lie (Row, Column, Inner), where elements of the operands are
/// (where it kHasEdges, null: 0 stands there) and where results go. Where it kHasSteps, it also
/// says whether both operands are matrices (is_even), and their strides.
///
/// `LeftByRows`, `RightByRows`: how pieces of the operands lie in shared memory, see Side.
template <class Problem, int Form, bool LeftByRows = lies_by_rows(kTileForms[Form]),
          bool RightByRows = lies_by_rows(kTileForms[Form])>
struct TileLoop {
  using Number = typename Problem::Number;
  using Sum = typename Number::Sum;
  static constexpr TileForm kForm = kTileForms[Form];
  static constexpr int kThreads = 256, kSide = kForm.side, kWorkers = kSide * kSide;
  static constexpr int kFirstCopier = kWorkers < kThreads ? kThreads / 2 : 0;
  static constexpr int kCopiers = kThreads - kFirstCopier;
  static constexpr int kEachM = kForm.each_m, kEachN = kForm.each_n;
  static constexpr int kM = kForm.rows(), kN = kForm.columns();
  static constexpr int kDepth = kForm.depth, kStages = kForm.stages;
  static constexpr int kVector = 16 / sizeof(Sum);
  static constexpr bool kIsCopied = kIsSame<typename Number::Memory, Sum>;
  static constexpr bool kHasRoomForTotals = has_room_for_totals(kForm);
  static constexpr int kResults = kEachM * kEachN;
  static constexpr bool kMayHaveTail = Problem::kHasTail && kResults <= kTailMostResults;

  /// One of the operands; its columns are rows here too. Pieces of it in shared memory have vectors
  /// along rows or along k, and rows that are longer than their elements by one vector, which puts
  /// what the threads of a warp read into different banks. A thread has `Each` rows.
  template <int Rows, int Each, bool ByRows>
  struct Side {
    /// Rows of a thread that lie side by side.
    static constexpr int kNear = !ByRows ? 1 : Each < kVector ? Each : kVector;
    static constexpr int kNearCount = ByRows ? Rows : kDepth;

    struct Piece {
      Sum elements[ByRows ? kDepth : Rows][kNearCount + kVector];

      TN_INLINE Sum* at(int row, int k) { return ByRows ? &elements[k][row] : &elements[row][k]; }
    };

    /// Of row i of a thread from its first.
    static constexpr int apart(int i) { return i % kNear + i / kNear * (kSide * kNear); }

    /// The elements of a thread for kVector elements of the sums, or for one.
    struct Elements {
      static constexpr int kWidth = ByRows ? kNear : kVector;
      SumVector<Sum, kWidth> vector[ByRows ? Each / kNear : Each];

      TN_INLINE void load(const Piece& piece, int row, int k) {
        TN_UNROLL
        for (int i = 0; i < Each; i += kNear)
          vector[i / kNear] = load_vector<kWidth>(ByRows ? &piece.elements[k][row + apart(i)]
                                                         : &piece.elements[row + apart(i)][k]);
      }
      TN_INLINE Sum at(int i, int k) const {
        return ByRows ? vector[i / kNear].at[i % kNear] : vector[i].at[k % kVector];
      }
    };
  };
  using Left = Side<kM, kEachM, LeftByRows>;
  using Right = Side<kN, kEachN, RightByRows>;

  static constexpr TileSizes kSizes = {sizeof(Sum), sizeof(typename Problem::Row),
                                       sizeof(typename Problem::Column),
                                       sizeof(typename Problem::Inner),
                                       Problem::kHasSteps && kIsCopied};
  static constexpr bool kHasSteps = has_steps(kForm, kSizes);

  /// Also what is needed once in a while: in registers it would take the place of sums.
  struct Room {
    typename Left::Piece left[kStages];
    typename Right::Piece right[kStages];
    typename Problem::Row row[kM];
    typename Problem::Column column[kN];
    typename Problem::Inner inner[2][kDepth];
    TileBase<typename Number::Memory> base;
    [[no_unique_address]] typename StepsOf<kHasSteps>::Type steps;
    Sum total[kHasRoomForTotals ? kEachM * kEachN : 1][kHasRoomForTotals ? kWorkers : 2];  // last
  };
  static_assert(sizeof(Room) == tile_bytes(kForm, kSizes, true, LeftByRows, RightByRows));

  TN_INLINE TileLoop(const Problem& own, Room& memory) : problem(own), room(memory) {}

  TN_INLINE void run() {
    begin();
    int whole = static_cast<int>(problem.p.k / kDepth), end_of_block = steps_of_block();
    bool is_first = true;
    auto close_block = [&](int t) TN_INLINE {
      if (t != end_of_block) return;
      close(is_first);
      is_first = false, end_of_block += steps_of_block();
    };
    for (int t = 0; t < whole; ++t) {
      wait_for_groups<kStages - 2>();
      meet();  // all have brought this piece, and are done with the last one
      if (is_copier()) {
        if (t + kStages - 1 < steps()) bring(t + kStages - 1);
        end_group();
        find_inner(t + kStages);
      }
      if (!is_worker()) continue;
      close_block(t);
      add(t % kStages);
    }
    if (whole < steps()) {
      wait_for_groups<0>();
      meet();
    }
    if (!is_worker()) return;
    if (whole < steps()) {
      close_block(whole);
      add_some(whole % kStages, static_cast<int>(problem.p.k - int64{whole} * kDepth));
    }
    store(is_first);
  }

 private:
  /// Where the last 16 bytes begin: what is read beyond the end.
  TN_INLINE static int64 last_vector(int64 count) { return (count - 1) / kVector * kVector; }
  TN_INLINE int steps() const { return static_cast<int>((problem.p.k + kDepth - 1) / kDepth); }
  TN_INLINE static bool is_worker() { return kWorkers == kThreads || thread() < kWorkers; }
  TN_INLINE static bool is_copier() { return thread() >= kFirstCopier; }
  /// Of a thread among those that bring operands.
  TN_INLINE static int copier() { return computed_here(thread()) - kFirstCopier; }
  /// Blocks are multiples of the depth where there are several.
  TN_INLINE int steps_of_block() const {
    return problem.p.block < problem.p.k ? static_cast<int>(problem.p.block / kDepth) : steps();
  }
  // 8 threads of a warp load from 4 rows and 2 columns.
  TN_INLINE static int first_row() {
    auto self = static_cast<uint32>(computed_here(thread()));
    uint32 place = kSide == 8 ? self / 2 % 8 : self / 2 % 8 + self / 32 % 2 * 8;
    return static_cast<int>(place) * Left::kNear;
  }
  TN_INLINE static int first_column() {
    auto self = static_cast<uint32>(computed_here(thread()));
    uint32 place =
        kSide == 8 ? self % 2 + self / 16 * 2 : self % 2 + self / 16 % 2 * 2 + self / 64 * 4;
    return static_cast<int>(place) * Right::kNear;
  }

  TN_INLINE void begin() {
    const auto& p = problem.p;
    int self = thread();
    int64 tiles_n = (p.n + kN - 1) / kN, tiles = (p.m + kM - 1) / kM * tiles_n;
    int64 batch = block() / tiles, tile = block() - batch * tiles;
    int64 row0 = tile / tiles_n * kM, column0 = tile % tiles_n * kN;
    if (self == 0) {
      room.base.row = row0, room.base.column = column0;
      problem.start(batch, room.base);
    }
    int64 row = row0 + self, column = column0 + self;
    if (self < kM) room.row[self] = problem.row(row < p.m ? row : last_vector(p.m));
    if (self < kN) room.column[self] = problem.column(column < p.n ? column : last_vector(p.n));
    TN_UNROLL
    for (int i = 0; i < kEachM; ++i) TN_UNROLL
    for (int j = 0; j < kEachN; ++j) sum[i][j] = Sum(0);
    if constexpr (kHasSteps) find_all_steps(row0, column0);
    if (is_copier()) find_inner(0);
    meet();
    TN_UNROLL_BY(1)
    for (int t = 0; t < kStages - 1; ++t) {
      if (is_copier()) {
        if (t < steps()) bring(t);
        end_group();
        find_inner(t + 1);
      }
      meet();
    }
  }

  /// Of tiles that reach over no edge, of matrices that are copied 16 bytes at a time.
  TN_INLINE void find_all_steps(int64 row0, int64 column0) {
    const auto& p = problem.p;
    bool is_even = problem.is_even() && row0 + kM <= p.m && column0 + kN <= p.n &&
                   p.k % kDepth == 0 &&
                   p.left_way == (LeftByRows ? kVectorsAcross : kVectorsAlongK) &&
                   p.right_way == (RightByRows ? kVectorsAcross : kVectorsAlongK);
    if (thread() == 0) room.steps.is_even = is_even;
    meet();
    if (!is_even) return;
    find_steps<kM, LeftByRows>(0, room.base.left, room.base.row, problem.left_strides());
    find_steps<kN, RightByRows>(1, room.base.right, room.base.column, problem.right_strides());
  }
  template <int Rows, bool ByRows>
  TN_INLINE void find_steps(int side, const typename Number::Memory* base, int64 row, Strides by) {
    constexpr int kVectors = (ByRows ? Rows : kDepth) / kVector;
    constexpr auto kBytes = static_cast<int64>(sizeof(Sum));
    static_assert(kCopiers % kVectors == 0 && kThreads == 256);
    int self = thread() - kFirstCopier;
    if (self >= 0) {
      int near = self % kVectors * kVector, far = self / kVectors;
      int64 at = (row + (ByRows ? near : far)) * by.row + (ByRows ? far : near) * by.k;
      room.steps.first[side][self] = reinterpret_cast<uint64>(base + at);
    }
    if (self == 0) {
      room.steps.more[side] = kCopiers / kVectors * (ByRows ? by.k : by.row) * kBytes;
      room.steps.next[side] = kDepth * by.k * kBytes;
    }
  }
  /// Piece `t` of an operand, as bring_side brings vectors.
  template <int Rows, bool ByRows, class Piece>
  TN_INLINE void bring_even(int side, int t, Piece& to) {
    constexpr int kVectors = (ByRows ? Rows : kDepth) / kVector;
    constexpr int kCount = Rows * kDepth / kCopiers, kFar = kCopiers / kVectors;
    static_assert(kCount >= kVector);
    auto self = static_cast<uint32>(copier());
    int near = static_cast<int>(self % kVectors) * kVector, far = static_cast<int>(self / kVectors);
    uint64 from = room.steps.first[side][self] + static_cast<uint64>(t * room.steps.next[side]);
    auto more = static_cast<uint64>(room.steps.more[side]);
    TN_UNROLL
    for (int i = 0; i * kVector < kCount; ++i, from += more)
      begin_copy<16, false>(to.at(ByRows ? near : far + i * kFar, ByRows ? far + i * kFar : near),
                            reinterpret_cast<const void*>(from));
  }

  /// Of piece `t`; needed by the next one but one at the earliest.
  TN_INLINE void find_inner(int t) {
    if constexpr (kHasSteps)
      if (room.steps.is_even) return;
    int self = copier();
    if (self >= kDepth || t >= steps()) return;
    int64 k = int64{t} * kDepth + self;
    room.inner[t % 2][self] = problem.inner(k < problem.p.k ? k : last_vector(problem.p.k));
  }

  TN_INLINE void bring(int t) {
    int stage = t % kStages;
    if constexpr (kHasSteps)
      if (room.steps.is_even) {
        bring_even<kM, LeftByRows>(0, t, room.left[stage]);
        bring_even<kN, RightByRows>(1, t, room.right[stage]);
        return;
      }
    const auto* inner = room.inner[t % 2];
    bring_side<kM, LeftByRows>(problem.p.left_way, room.left[stage], [&](int row, int k) TN_INLINE {
      return problem.left(room.base.left, room.row[row], inner[k]);
    });
    bring_side<kN, RightByRows>(
        problem.p.right_way, room.right[stage], [&](int column, int k) TN_INLINE {
          return problem.right(room.base.right, room.column[column], inner[k]);
        });
  }

  /// A warp has `Near` elements side by side and 32 / Near of the other axis below each other;
  /// warps are side by side as well.
  template <int NearCount, int Near>
  TN_INLINE static void split(uint32 self, int i, int& near, int& far) {
    constexpr int kGroups = NearCount / Near, kWarps = kCopiers / 32;
    constexpr int kWide = kGroups < kWarps ? kGroups : kWarps;  // warps side by side
    constexpr int kAgain = kGroups / kWide, kBelow = kWarps / kWide, kFar = 32 / Near;
    uint32 lane = self % 32, warp = self / 32;
    near = static_cast<int>(lane % Near + warp % kWide * Near) + i % kAgain * (Near * kWide);
    far = static_cast<int>(lane / Near + warp / kWide * kFar) + i / kAgain * (kFar * kBelow);
  }

  /// Neighbouring threads bring what lies side by side; a warp writes to different banks.
  template <int Rows, bool ByRows, class Piece, class From>
  TN_INLINE static void bring_side(int way, Piece& to, From from) {
    auto self = static_cast<uint32>(copier());
    constexpr int kCount = Rows * kDepth / kCopiers;
    int row, k;
    auto bring_one = [&]() TN_INLINE {
      if constexpr (kIsCopied) {
        begin_copy<sizeof(Sum), Problem::kHasEdges>(to.at(row, k), from(row, k));
      } else {
        auto* place = from(row, k);
        *to.at(row, k) = Problem::kHasEdges && !place ? Sum(0) : Number::load(*place);
      }
    };
    if (kIsCopied && way == (ByRows ? kVectorsAcross : kVectorsAlongK)) {
      constexpr int kVectors = (ByRows ? Rows : kDepth) / kVector;
      TN_UNROLL
      for (int i = 0; i * kVector < kCount; ++i) {
        uint32 number = self + i * kCopiers;
        int near = static_cast<int>(number % kVectors) * kVector;
        int far = static_cast<int>(number / kVectors);
        row = ByRows ? near : far, k = ByRows ? far : near;
        if (kCount >= kVector || number < Rows * kDepth / kVector)
          begin_copy<16, Problem::kHasEdges>(to.at(row, k), from(row, k));
      }
    } else if (way == kAcross || way == kVectorsAcross) {
      TN_UNROLL
      for (int i = 0; i < kCount; ++i) {
        split<Rows, ByRows && Rows % 32 == 0 ? 32 : 8>(self, i, row, k);
        bring_one();
      }
    } else {
      constexpr int kNear = kDepth > 32 ? 32 : kDepth;
      TN_UNROLL
      for (int i = 0; i < kCount; ++i) {
        split<kDepth, ByRows ? 8 : kNear>(self, i, k, row);
        bring_one();
      }
    }
  }

  /// The products of a whole piece.
  TN_INLINE void add(int stage) {
    constexpr int kTogether = LeftByRows && RightByRows ? 1 : kVector;
    int row = first_row(), column = first_column();
    TN_UNROLL
    for (int first = 0; first < kDepth; first += kTogether) {
      typename Left::Elements x;
      typename Right::Elements y;
      TN_UNROLL
      for (int k = first; k < first + kTogether; ++k) {
        if (LeftByRows || k == first) x.load(room.left[stage], row, k);
        if (RightByRows || k == first) y.load(room.right[stage], column, k);
        TN_UNROLL
        for (int i = 0; i < kEachM; ++i) TN_UNROLL
        for (int j = 0; j < kEachN; ++j) sum[i][j] = Number::fma(x.at(i, k), y.at(j, k), sum[i][j]);
      }
    }
  }
  /// Those of the first `count` elements of a piece.
  TN_INLINE void add_some(int stage, int count) {
    int row = first_row(), column = first_column();
    TN_UNROLL_BY(1)
    for (int k = 0; k < count; ++k) {
      Sum x[kEachM];
      TN_UNROLL
      for (int i = 0; i < kEachM; ++i) x[i] = *room.left[stage].at(row + Left::apart(i), k);
      TN_UNROLL
      for (int j = 0; j < kEachN; ++j) {
        Sum y = *room.right[stage].at(column + Right::apart(j), k);
        TN_UNROLL
        for (int i = 0; i < kEachM; ++i) sum[i][j] = Number::fma(x[i], y, sum[i][j]);
      }
    }
  }

  /// The sum of all blocks so far; `is_first`: there is no other.
  TN_INLINE Sum total_at(int i, int j, bool is_first) const {
    if (is_first) return sum[i][j];
    if constexpr (kHasRoomForTotals)
      return Number::add(room.total[i * kEachN + j][thread()], sum[i][j]);
    else
      return Number::add(total[i][j], sum[i][j]);
  }

  /// At the end of a block of the sum, behind which there is another.
  TN_INLINE void close(bool is_first) {
    TN_UNROLL
    for (int i = 0; i < kEachM; ++i) TN_UNROLL
    for (int j = 0; j < kEachN; ++j) {
      Sum all = total_at(i, j, is_first);
      if constexpr (kHasRoomForTotals)
        room.total[i * kEachN + j][thread()] = all;
      else
        total[i][j] = all;
      sum[i][j] = Sum(0);
    }
  }

  /// Calls f(result, row, column) for all results of a thread.
  template <class F>
  TN_INLINE void for_results(F f) const {
    TN_UNROLL
    for (int i = 0; i < kEachM; ++i) TN_UNROLL
    for (int j = 0; j < kEachN; ++j)
      f(i * kEachN + j, room.base.row + first_row() + Left::apart(i),
        room.base.column + first_column() + Right::apart(j));
  }

  TN_INLINE void store_with_tail(bool is_first) {
    const TailProgram& tail = problem.p.tail;
    float x[kResults], loaded[kTailLoads][kResults];
    TN_UNROLL
    for (int l = 0; l < kTailLoads; ++l) {
      const TailLoad& load = tail.load[l];
      for_results([&](int e, int64 row, int64 column) TN_INLINE {
        bool inside = l < tail.loads && row < problem.p.m && column < problem.p.n;
        loaded[l][e] = inside ? load.first[row * load.row + column * load.column] : 0;
      });
    }
    for_results([&](int e, int64 row, int64 column) TN_INLINE {
      x[e] = total_at(e / kEachN, e % kEachN, is_first);
      if (tail.keeps_product && row < problem.p.m && column < problem.p.n)
        room.base.out[row * problem.p.n + column] = x[e];
    });
    run_tail(tail, x, loaded);
    for_results([&](int e, int64 row, int64 column) TN_INLINE {
      if (row < problem.p.m && column < problem.p.n) tail.out[row * problem.p.n + column] = x[e];
    });
  }

  TN_INLINE void store(bool is_first) {
    if constexpr (kMayHaveTail)
      if (problem.p.tail.out) return store_with_tail(is_first);
    int64 column0 = room.base.column + first_column();
    TN_UNROLL
    for (int i = 0; i < kEachM; ++i) {
      int own = first_row() + Left::apart(i);
      int64 row = room.base.row + own;
      TN_UNROLL
      for (int j = 0; j < kEachN; ++j) {
        int64 column = column0 + Right::apart(j);
        if (row >= problem.p.m || column >= problem.p.n) continue;
        *problem.out(room.base.out, room.row[own], row, column) =
            Number::store(total_at(i, j, is_first));
      }
    }
  }

  Problem problem;
  Room& room;
  Sum sum[kEachM][kEachN];
  Sum total[kHasRoomForTotals ? 1 : kEachM][kHasRoomForTotals ? 1 : kEachN];
};

/// A kernel `name` for structures `Params` that computes tiles of a problem, as TileLoop<...>.
#define TN_TILE_KERNEL(name, Params, Problem, ...) \
  TN_KERNEL(name, Params) {                        \
    using Loop = TileLoop<Problem, __VA_ARGS__>;   \
    Loop(Problem{p}, shared<Loop::Room>()).run();  \
  }
